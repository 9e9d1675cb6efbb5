"""What the files of a repository do not tell of its routes and tables, with the lines of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rag_assets.code.nodes import TABLE
from rag_assets.common.formatting import counted

ROUTES: Final = "routes"
TABLES: Final = "tables"


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A statement that only running it would tell.

    Attributes:
        path: POSIX path of the file within the repository.
        line: in it, counted from 1.
        reason: why it is not told.
        about: what may be other than it seems: ROUTES or TABLES, any of them, or the name of one
            node; "" where that is not known.
    """

    path: str
    line: int
    reason: str
    about: str = ""

    @property
    def told(self) -> str:
        """Place and reason, for people."""
        return f"{self.path}:{self.line} {self.reason}" if self.path else self.reason

    @property
    def stored(self) -> list[Any]:
        """As the catalog keeps it."""
        return [self.path, self.line, self.reason, self.about]

    @classmethod
    def read(cls, stored: Any) -> Unresolved:
        """The statement that the catalog keeps so; formerly it kept a text for people."""
        return cls("", 0, stored) if isinstance(stored, str) else cls(*stored)


def first_of(found: Sequence[Unresolved], most: int) -> list[Unresolved]:
    """The first statements about routes and about tables; the last one of many says how many more.

    Those that may add anything come before those about one route or table.

    Args:
        found: statements.
        most: how many about routes, and about tables.
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
    """ROUTES or TABLES."""
    return TABLES if one.about == TABLES or one.about.startswith(TABLE) else ROUTES
