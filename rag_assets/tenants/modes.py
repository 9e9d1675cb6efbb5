"""The search modes of tenants and requests.

This is a separate module because clients need no other part of a tenant.
"""

from typing import Literal

SearchMode = Literal["knn", "text", "hybrid"]
"""Search by vectors, by words, or by both, fused."""
