"""Judge a complete build before it is published.

Checks depend on Dagster and the pipeline does not, so it receives a function that evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.catalog.builds.generations import Generation


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check on a build.

    Attributes:
        check: its full name, such as "search_index.drift".
        description: one line for people.
        blocks: whether the build must not be published.
    """

    check: str
    passed: bool
    description: str
    blocks: bool = False

    def as_row(self) -> dict[str, Any]:
        """Return the finding as stored in the build's row."""
        return {"check": self.check, "passed": self.passed, "description": self.description}


Judge: TypeAlias = Callable[[TenantContext, Generation], Sequence[Finding]]
"""Evaluates the checks that a build must pass; takes the context of stages that work on the
build."""
