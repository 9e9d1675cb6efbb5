"""Derived documents, the statements that support them, and what could not be resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from rag_assets.common.formatting import format_count
from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.relations.relations import How
from rag_assets.systems.code_memory.symbols.names import GROUP, TABLE

DerivedType: TypeAlias = Literal["route", "table", "scip"]
"""Types of derived documents; scip: the references of one file, from a SCIP index."""

MEDIA_TYPE: Final = "text/x-derived"
"""Media type of a derived document's text."""

ROUTE: Final = "route:"
"""Prefix of a route's node: `route:GET /invoices/{invoice}`."""
DESCRIBED: Final = "framework: API description"
"""The line of a route that only an API description states; its paths may lack a server's prefix."""

ROUTES: Final = "routes"
TABLES: Final = "tables"
INDEXES: Final = "scip"
"""What the figures of a SCIP index are about; they are stored with unresolved statements."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement about a node, supported by lines of a repository file.

    Attributes:
        source: the node that the statement is about; "" for the derived document's own node.
        how: see relations.relations.How.
        line_start, line_end: first and last line in the file, counted from 1.
        evidence: the text of these lines on one line, with credentials masked.
    """

    kind: str
    source: str
    target: str
    how: How
    path: str
    line_start: int
    line_end: int
    evidence: str

    @classmethod
    def from_fact(
        cls, kind: str, target: str, path: str, fact: Fact, *, source: str = "", how: How = "stated"
    ) -> Statement:
        """Return the statement that a fact of the file at this path supports."""
        lines = fact.line_start, fact.line_end
        return cls(kind, source, target, how, path, *lines, fact.evidence)


@dataclass(frozen=True, slots=True)
class DerivedDocument:
    """A route or a table, or the references of a file.

    Attributes:
        called: keys by which it is found; see symbols.names.
        lines: its description; the first line is its heading.
    """

    source_type: DerivedType
    name: str
    called: tuple[str, ...]
    lines: tuple[str, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A statement that can only be resolved by running the code.

    Attributes:
        about: the documents that may be wrong: ROUTES or TABLES for any of them, or the name of one
            node; "" if that is unknown; INDEXES for figures of an index.
    """

    path: str
    line: int
    reason: str
    about: str = ""

    @property
    def description(self) -> str:
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


@dataclass(frozen=True, slots=True)
class Derivation:
    """The documents derived from a repository's files.

    Attributes:
        documents: routes in the router's order, then tables by name.
        unresolved: computed statements that may add to the documents or change them.
    """

    documents: tuple[DerivedDocument, ...]
    unresolved: tuple[Unresolved, ...]


def link_groups(places: Iterable[Statement]) -> Iterator[Statement]:
    """Yield statements that put a route into its group, and each group into its enclosing group.

    Args:
        places: statements of the groups, outermost first; kind, source and target are ignored.
    """
    outer = ""
    for place in places:
        name = f"{GROUP}{place.path}:{place.line_start}"
        # Groups that start on the same line are distinguished by their depth.
        name += "'" * (len(outer) - len(name) + 1) if outer.rstrip("'") == name else ""
        yield replace(place, kind="in_group", source="", target=name)
        if outer:
            yield replace(place, kind="in_group", source=name, target=outer)
        outer = name


def limit_unresolved(found: Sequence[Unresolved], most: int) -> list[Unresolved]:
    """Return the first statements about routes and tables; the last states how many are omitted.

    Statements that may affect any document come before those about one route or table.

    Args:
        most: maximum number about routes, and maximum number about tables.
    """
    kept = []
    for about in (TABLES, ROUTES):
        own = [one for one in found if _is_about_tables(one) == (about == TABLES)]
        own.sort(key=lambda one: one.about != about)
        kept += own[:most]
        if more := own[most:]:
            last, said = kept.pop(), f"and {format_count(len(more), 'statement')} after it"
            kept.append(Unresolved(last.path, last.line, f"{last.reason}, {said}", about))
    return kept


def _is_about_tables(one: Unresolved) -> bool:
    return one.about == TABLES or one.about.startswith(TABLE)
