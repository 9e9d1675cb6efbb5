"""The graph of one build: its documents, and the definitions and edges of their texts."""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rag_assets.storage.catalog.database import TenantRef
from rag_assets.systems.code_memory.catalog.found_relations import (
    FoundEdge,
    FoundSymbol,
    NamesCalled,
)
from rag_assets.systems.code_memory.catalog.graph.segment import Segment
from rag_assets.systems.code_memory.catalog.relation_state import RelationState

MOST_MET = 20_000
"""Maximum number of edges, and of definitions, that are cached when walks read them.

Most walks read the same few edges, and the same few definitions with many relations.
"""

_BYTES_OF_DOCUMENT = 420
"""Estimated bytes of a document in memory, including table entries but not its texts."""
_BYTES_OF_MET = 400
"""Estimated bytes of a cached edge or definition."""
_BYTES_OF_NAME_MET = 150


MOST_NAMES_MET = 100_000
"""Maximum number of definition names in the cache of short names."""


class NamesMet:
    """Cached names of definitions, by scopes of the readers and by short name."""

    def __init__(self) -> None:
        self._found: dict[tuple[frozenset[str], str], NamesCalled] = {}
        self._count = 0

    def get(self, scopes: frozenset[str], short: str) -> NamesCalled | None:
        """Return the names for one short name; None if it is not cached."""
        return self._found.get((scopes, short))

    def keep(self, scopes: frozenset[str], short: str, found: NamesCalled) -> None:
        """Cache the names for one short name; if the cache would get too large, clear it first."""
        count = 1 + sum(len(names) for names in found.values())
        if self._count + count > MOST_NAMES_MET:
            self._found, self._count = {}, 0
        if count <= MOST_NAMES_MET:
            self._found[scopes, short] = found
            self._count += count


@dataclass(slots=True, eq=False)
class GraphDocument:
    """A document with a version that searches return.

    Attributes:
        uri, source, access_scope, source_type: the same values as in the catalog.
        repository: the repository of its source.
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
        """Return the kinds of the definitions in the document."""
        if self._kinds is None:
            self._kinds = json.loads(self.kinds_json) if self.kinds_json else {}
        return self._kinds


@dataclass(frozen=True, slots=True)
class GraphKey:
    """The build that a graph belongs to."""

    ref: TenantRef
    generation: int


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The immutable graph of a build in one state of the relations.

    Attributes:
        key, state: its build and the state of the relations.
        segments: segments with the rows of its texts, and possibly of texts that it no longer has.
        texts: numbers of its texts, by chunk_set_key.
        by_id: its documents by id.
        holders, by_uri: its documents by the number of their text, and by their URI.
        bytes: its size in memory.
        edges_met, symbols_met: cached results of walks, by segment, row and document; see MOST_MET.
        names_met: cached names of definitions by their short names.
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
        """Return the segment that contains a text."""
        return self.segments[bisect_right(self._firsts, text) - 1]

    def at(self, uris: Iterable[str], scopes: frozenset[str]) -> Iterator[GraphDocument]:
        """Yield the readable documents with these URIs."""
        for uri in dict.fromkeys(uris):
            yield from (one for one in self.by_uri.get(uri, ()) if one.access_scope in scopes)


def _bytes_of(segment: Segment) -> int:
    met = sum(min(MOST_MET, len(rows)) for rows in (segment.edges.text, segment.symbols.text))
    names = min(MOST_NAMES_MET, len(segment.symbols.text))
    return segment.bytes + met * _BYTES_OF_MET + names * _BYTES_OF_NAME_MET
