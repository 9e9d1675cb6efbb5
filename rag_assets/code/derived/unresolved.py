"""What the files of a repository do not tell of its routes and tables, with the lines of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

ROUTES: Final = "routes"
TABLES: Final = "tables"

_SEPARATOR: Final = "\t"
# The last place counts: only a path may hold what looks like another.
_TOLD: Final = re.compile(r"(?s)(?P<path>.+):(?P<line>\d+) (?P<reason>.*)")


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
        return f"{self.path}:{self.line} {self.reason}"

    @property
    def stored(self) -> str:
        """As the catalog keeps it."""
        return f"{self.told}{_SEPARATOR}{self.about}"

    @classmethod
    def read(cls, stored: str) -> Unresolved:
        """The statement that the catalog keeps so."""
        told, separator, about = stored.rpartition(_SEPARATOR)
        if not separator:
            told, about = stored, ""
        found = _TOLD.fullmatch(told)
        if found is None:
            return cls("", 0, stored)
        return cls(found["path"], int(found["line"]), found["reason"], about)
