"""A derived document, and what it states of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from rag_assets.code.derived.unresolved import Unresolved
from rag_assets.code.nodes import GROUP
from rag_assets.code.relations import How

DerivedType: TypeAlias = Literal["route", "table"]

MEDIA_TYPE: Final = "text/x-derived"
"""What the text of a derived document is."""

ROUTE: Final = "route:"
"""The prefix of a route's node: `route:GET /invoices/{invoice}`."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a line of the repository's files states of a node.

    Attributes:
        kind: of the relation.
        source: the node that it is stated of; "" for the derived document's own.
        target: the node that it names.
        how: stated, by convention, or inferred.
        path: POSIX path of the file within the repository.
        line_start, line_end: in it, counted from 1.
        evidence: the text there, credentials masked, in one line.
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
    """A route or a table.

    Attributes:
        source_type: which of them.
        name: of its node.
        called: keys by which it is found; see rag_assets.code.names.
        lines: what it is, line by line; the first one is its heading.
        statements: what tells so.
    """

    source_type: DerivedType
    name: str
    called: tuple[str, ...]
    lines: tuple[str, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Derivation:
    """What a repository's files result in together.

    Attributes:
        documents: routes in the router's order, then tables by name.
        unresolved: what may add to them or change them, and is computed.
    """

    documents: tuple[DerivedDocument, ...]
    unresolved: tuple[Unresolved, ...]


def in_groups(places: Iterable[Statement]) -> Iterator[Statement]:
    """That a route is in groups, and each of these in the one around it.

    Args:
        places: what states the groups, from the outermost on; kind, source and target are ignored.
    """
    outer = ""
    for place in places:
        name = f"{GROUP}{place.path}:{place.line_start}"
        # Groups that begin on one line are told apart by how deep they are.
        name += "'" * (len(outer) - len(name) + 1) if outer.rstrip("'") == name else ""
        yield replace(place, kind="in_group", source="", target=name)
        if outer:
            yield replace(place, kind="in_group", source=name, target=outer)
        outer = name
