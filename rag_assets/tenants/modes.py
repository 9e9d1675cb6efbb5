"""The search modes of tenants and requests.

A module of its own, since clients need no other part of a tenant.
"""

from typing import Literal

SearchMode = Literal["knn", "text", "hybrid"]
"""By vectors, by words, or by both, fused."""
