"""Parts of routes and tables that reading the code cannot resolve, with the lines responsible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rag_assets.common.formatting import counted
from rag_assets.systems.code_memory.symbols.names import TABLE

ROUTES: Final = "routes"
TABLES: Final = "tables"
INDEXES: Final = "scip"
"""What the figures of a SCIP index are about; they are stored with unresolved statements."""


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A statement that can only be resolved by running the code.

    Attributes:
        path: POSIX path of the file within the repository.
        line: the line in the file, counted from 1.
        reason: why it is unresolved.
        about: the documents that may be wrong: ROUTES or TABLES for any of them, or the name of one
            node; "" if that is unknown; INDEXES for figures of an index.
    """

    path: str
    line: int
    reason: str
    about: str = ""

    @property
    def told(self) -> str:
        """Return place and reason as a text for people."""
        if self.about == INDEXES:
            return f"{self.path}: {self.reason}"
        return f"{self.path}:{self.line} {self.reason}" if self.path else self.reason

    @property
    def stored(self) -> list[Any]:
        """Return the statement in the form in which the catalog stores it."""
        return [self.path, self.line, self.reason, self.about]

    @classmethod
    def read(cls, stored: Any) -> Unresolved:
        """Return a statement from its stored form; old entries are only a text for people."""
        return cls("", 0, stored) if isinstance(stored, str) else cls(*stored)


def limit_unresolved(found: Sequence[Unresolved], most: int) -> list[Unresolved]:
    """Return the first statements about routes and tables; the last states how many are omitted.

    Statements that may affect any document come before those about one route or table.

    Args:
        most: maximum number about routes, and maximum number about tables.
    """
    kept = []
    for about in (TABLES, ROUTES):
        own = sorted((one for one in found if _kind(one) == about), key=lambda o: o.about != about)
        kept += own[:most]
        if more := own[most:]:
            last, said = kept.pop(), f"and {counted(len(more), 'statement')} after it"
            kept.append(Unresolved(last.path, last.line, f"{last.reason}, {said}", about))
    return kept


def _kind(one: Unresolved) -> str:
    """Return ROUTES or TABLES, depending on what a statement is about."""
    return TABLES if one.about == TABLES or one.about.startswith(TABLE) else ROUTES
