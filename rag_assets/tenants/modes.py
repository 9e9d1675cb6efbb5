"""The search modes of tenants and requests.

A module of its own, since clients need nothing else of a tenant.
"""

from typing import Literal

SearchMode = Literal["knn", "text", "hybrid"]
"""By vectors, by words, or by both, fused."""
