"""The graph of one build: its documents, and what their texts define and state."""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.found_relations import FoundEdge, FoundSymbol, NamesCalled
from rag_assets.storage.catalog.relation_graph.segment import Segment
from rag_assets.storage.catalog.relation_state import RelationState

MOST_MET = 20_000
"""Edges, and definitions, that are kept as walks read them.

Most walks meet the same few that much is related to.
"""

_BYTES_OF_DOCUMENT = 420
"""Of a document in memory, with its places in tables, beside its texts."""
_BYTES_OF_MET = 400
"""Of an edge or a definition as walks read it."""
_BYTES_OF_NAME_MET = 150


MOST_NAMES_MET = 100_000
"""Names that are kept by what people call them."""


class NamesMet:
    """Names of definitions by what people call them, for the readers of some scopes."""

    def __init__(self) -> None:
        self._found: dict[tuple[frozenset[str], str], NamesCalled] = {}
        self._count = 0

    def get(self, scopes: frozenset[str], short: str) -> NamesCalled | None:
        """Those of one name; None where it was not met."""
        return self._found.get((scopes, short))

    def keep(self, scopes: frozenset[str], short: str, found: NamesCalled) -> None:
        """Keep those of one name; all others are let go where they become too many."""
        count = 1 + sum(len(names) for names in found.values())
        if self._count + count > MOST_NAMES_MET:
            self._found, self._count = {}, 0
        if count <= MOST_NAMES_MET:
            self._found[scopes, short] = found
            self._count += count


@dataclass(slots=True, eq=False)
class GraphDocument:
    """A document whose version answers.

    Attributes:
        uri, source, access_scope, source_type: as the catalog has them.
        repository: that its source is of.
        text_key, text: chunk_set_key and number of its text.
    """

    document_id: str
    uri: str
    source: str
    repository: str
    access_scope: str
    source_type: str
    kinds_json: str | None
    text_key: str
    text: int
    _kinds: Mapping[str, str] | None = None

    @property
    def kinds(self) -> Mapping[str, str]:
        """What its definitions are."""
        if self._kinds is None:
            self._kinds = json.loads(self.kinds_json) if self.kinds_json else {}
        return self._kinds


@dataclass(frozen=True, slots=True)
class GraphKey:
    """Of which build a graph is."""

    ref: TenantRef
    generation: int


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The graph of a build in one state; it does not change.

    Attributes:
        key, state: which build, and when.
        segments: with the rows of its texts, and perhaps of some that it no longer has.
        texts: numbers of its texts, by chunk_set_key.
        by_id: its documents.
        holders, by_uri: they by their text and by their uri.
        bytes: what it takes.
        edges_met, symbols_met: those that walks met, by segment, row and document; see MOST_MET.
        names_met: names of definitions by what people call them, as walks met them.
    """

    key: GraphKey
    state: RelationState
    segments: tuple[Segment, ...]
    texts: Mapping[str, int]
    by_id: Mapping[str, GraphDocument]
    holders: Mapping[int, Sequence[GraphDocument]] = field(init=False)
    by_uri: Mapping[str, Sequence[GraphDocument]] = field(init=False)
    bytes: int = field(init=False)
    edges_met: dict[tuple[int, int, str], FoundEdge] = field(default_factory=dict)
    symbols_met: dict[tuple[int, int, str], FoundSymbol] = field(default_factory=dict)
    names_met: NamesMet = field(default_factory=NamesMet)
    _firsts: Sequence[int] = field(init=False)

    def __post_init__(self) -> None:
        holders: dict[int, list[GraphDocument]] = {}
        by_uri: dict[str, list[GraphDocument]] = {}
        size = 0
        for one in self.by_id.values():
            by_uri.setdefault(one.uri, []).append(one)
            holders.setdefault(one.text, []).append(one)
            size += sys.getsizeof(one.uri) + sys.getsizeof(one.kinds_json) + _BYTES_OF_DOCUMENT
        for name, value in (
            ("holders", holders),
            ("by_uri", by_uri),
            ("bytes", size + sum(_bytes_of(one) for one in self.segments)),
            ("_firsts", [one.first for one in self.segments]),
        ):
            object.__setattr__(self, name, value)

    def segment_of(self, text: int) -> Segment:
        """The segment that has a text."""
        return self.segments[bisect_right(self._firsts, text) - 1]

    def at(self, uris: Iterable[str], scopes: frozenset[str]) -> Iterator[GraphDocument]:
        """The readable documents at some uris."""
        for uri in dict.fromkeys(uris):
            yield from (one for one in self.by_uri.get(uri, ()) if one.access_scope in scopes)


def _bytes_of(segment: Segment) -> int:
    met = sum(min(MOST_MET, len(rows)) for rows in (segment.edges.text, segment.symbols.text))
    names = min(MOST_NAMES_MET, len(segment.symbols.text))
    return segment.bytes + met * _BYTES_OF_MET + names * _BYTES_OF_NAME_MET
