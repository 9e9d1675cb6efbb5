"""The ways to search, by which tenants are configured and questions asked.

By itself, since programs that only ask need nothing else of what a tenant is.
"""

from typing import Literal

SearchMode = Literal["knn", "text", "hybrid"]
"""By vectors, by words, or by both fused."""
