"""A derived document and its statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from rag_assets.systems.code_memory.derived.unresolved import Unresolved
from rag_assets.systems.code_memory.relations.relations import How
from rag_assets.systems.code_memory.symbols.names import GROUP

DerivedType: TypeAlias = Literal["route", "table", "scip"]
"""Types of derived documents; scip: the references of one file, from a SCIP index."""

MEDIA_TYPE: Final = "text/x-derived"
"""Media type of a derived document's text."""

ROUTE: Final = "route:"
"""Prefix of a route's node: `route:GET /invoices/{invoice}`."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement about a node, supported by lines of a repository file.

    Attributes:
        kind: the kind of the relation.
        source: the node that the statement is about; "" for the derived document's own node.
        target: the node that the statement names.
        how: see relations.relations.How.
        path: POSIX path of the file within the repository.
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


@dataclass(frozen=True, slots=True)
class DerivedDocument:
    """A route or a table, or the references of a file.

    Attributes:
        source_type: its type.
        name: the name of its node.
        called: keys by which it is found; see rag_assets.systems.code_memory.symbols.names.
        lines: its description; the first line is its heading.
        statements: the statements that support it.
    """

    source_type: DerivedType
    name: str
    called: tuple[str, ...]
    lines: tuple[str, ...]
    statements: tuple[Statement, ...]


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
