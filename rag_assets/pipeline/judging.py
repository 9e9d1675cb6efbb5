"""Judging a complete build before it is published.

Checks know Dagster, and the pipeline does not: it is given a function that evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.catalog.generations import Generation


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found in a build.

    Attributes:
        check: its full name, such as "search_index.drift".
        description: one line for people.
        blocks: whether the build may not be published.
    """

    check: str
    passed: bool
    description: str
    blocks: bool = False

    def as_row(self) -> dict[str, Any]:
        """The finding as the build's row keeps it."""
        return {"check": self.check, "passed": self.passed, "description": self.description}


Judge: TypeAlias = Callable[[TenantContext, Generation], Sequence[Finding]]
"""Evaluates the checks that a build must pass; the context is that of stages that work on it."""
