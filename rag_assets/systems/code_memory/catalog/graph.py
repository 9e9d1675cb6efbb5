"""The graph of one build: its documents, and the definitions and edges of their texts, in columns.

Arrays of numbers store each row of a table in a few bytes. A segment has the rows of some texts.
"""

from __future__ import annotations

import json
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rag_assets.storage.catalog.database import TenantRef
from rag_assets.systems.code_memory.catalog.found_relations import (
    FoundEdge,
    FoundSymbol,
    NamesByRepository,
)
from rag_assets.systems.code_memory.catalog.relation_rows import RelationState

NONE = -1
"""The number that represents a missing name."""


def create_column(values: Iterable[int] = ()) -> array[int]:
    """Return an array of 32-bit integers, used as a column."""
    return array("i", values)


class Names:
    """A table of distinct strings, each with a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self.bytes = 0

    def add(self, text: str | None) -> int:
        """Add a string if it is new, and return its number; NONE for None."""
        if text is None:
            return NONE
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._texts)
            self._texts.append(text)
            self.bytes += sys.getsizeof(text) + _NAME_BYTES
        return number

    def find_number(self, text: str) -> int | None:
        """Return the number of a string; None if the table does not contain it."""
        return self._numbers.get(text)

    def __getitem__(self, number: int) -> str:
        return self._texts[number]

    def __len__(self) -> int:
        return len(self._texts)


_NAME_BYTES = 110
"""Estimated bytes of a name in the list and the table, including its number and spare capacity."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """An index of a column, which finds the rows that contain a number.

    Attributes:
        order: all row numbers, sorted by the number in the column.
        begins: for each number, the position in `order` at which its rows start.
    """

    order: array[int]
    begins: array[int]

    @classmethod
    def from_column(cls, column: array[int], count: int) -> Lookup:
        """Return a lookup for a column of numbers below `count`; rows with NONE are not found."""
        values = np.frombuffer(column, dtype=np.int32)
        order = np.argsort(values, kind="stable").astype(np.int32)
        counts = np.bincount(values + 1, minlength=count + 1)
        return cls(_convert_column(order), _convert_column(np.cumsum(counts)))

    def find_rows(self, number: int) -> array[int]:
        """Return the rows with this number, in order."""
        return self.order[self.begins[number] : self.begins[number + 1]]

    @property
    def bytes(self) -> int:
        """Return the size in bytes."""
        return len(self.order) * self.order.itemsize + len(self.begins) * self.begins.itemsize


def _convert_column(values: np.ndarray[tuple[int], np.dtype[np.signedinteger]]) -> array[int]:
    column = create_column()
    column.frombytes(values.astype(np.int32).tobytes())
    return column


_NUMBER_BYTES = 4
_HASH_BYTES = 32
_NO_HASH = bytes(_HASH_BYTES)


@dataclass(slots=True)
class Edges:
    """The columns of edges; strings are stored as numbers in Names, texts as numbers of texts."""

    text: array[int] = field(default_factory=create_column)
    position: array[int] = field(default_factory=create_column)
    kind: array[int] = field(default_factory=create_column)
    stated_of: array[int] = field(default_factory=create_column)
    target: array[int] = field(default_factory=create_column)
    how: array[int] = field(default_factory=create_column)
    path: array[int] = field(default_factory=create_column)
    first: array[int] = field(default_factory=create_column)
    last: array[int] = field(default_factory=create_column)
    confidence: array[float] = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class Symbols:
    """The columns of definitions; strings are stored as numbers in Names, as in Edges."""

    text: array[int] = field(default_factory=create_column)
    position: array[int] = field(default_factory=create_column)
    symbol: array[int] = field(default_factory=create_column)
    short: array[int] = field(default_factory=create_column)
    role: array[int] = field(default_factory=create_column)
    public: array[int] = field(default_factory=create_column)
    first: array[int] = field(default_factory=create_column)
    last: array[int] = field(default_factory=create_column)
    hashes: bytearray = field(default_factory=bytearray)

    def get_content_hash(self, row: int) -> str | None:
        """Return the content hash in a row; None if it has none."""
        digest = self.hashes[row * _HASH_BYTES : (row + 1) * _HASH_BYTES]
        return None if digest == _NO_HASH else digest.hex()


class Segment:
    """The definitions and edges of some texts.

    Attributes:
        first: number of the first text; the texts are numbered consecutively.
        names: all strings in its columns.
        kinds: the number in `names` of each kind of edges.
        edges, symbols: the rows, in the order of texts and positions.
        stated_of, target, symbol, short: lookups of rows by the name in that column.
        edges_of, symbols_of: lookups of rows by text; texts are numbered from 0 in the segment.
    """

    def __init__(
        self, first: int, count: int, names: Names, edges: Edges, symbols: Symbols
    ) -> None:
        self.first, self.count, self.names = first, count, names
        self.edges, self.symbols = edges, symbols
        self.kinds = {names[number]: number for number in set(edges.kind)}
        self.stated_of = Lookup.from_column(edges.stated_of, len(names))
        self.target = Lookup.from_column(edges.target, len(names))
        self.symbol = Lookup.from_column(symbols.symbol, len(names))
        self.short = Lookup.from_column(symbols.short, len(names))
        self.edges_of, self.symbols_of = (
            Lookup.from_column(create_column(text - first for text in rows.text), count)
            for rows in (edges, symbols)
        )

    @property
    def bytes(self) -> int:
        """Return the approximate size of the segment in bytes, from the lengths of its columns."""
        numbers = len(self.edges.text) * len(Edges.__slots__)
        numbers += len(self.symbols.text) * (len(Symbols.__slots__) + _HASH_BYTES // _NUMBER_BYTES)
        lookups = [self.stated_of, self.target, self.symbol, self.short]
        lookups += [self.edges_of, self.symbols_of]
        return numbers * _NUMBER_BYTES + self.names.bytes + sum(lookup.bytes for lookup in lookups)


class SegmentBuilder:
    """A builder of a segment; `first` is the number of its first text."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._texts: dict[str, int] = {}
        self._names = Names()
        self._edges, self._symbols = Edges(), Symbols()

    def add(
        self, keys: Sequence[str], symbols: Iterable[Sequence[Any]], edges: Iterable[Sequence[Any]]
    ) -> None:
        """Add the texts with these keys, and the rows of their definitions and edges."""
        for key in keys:
            self._texts.setdefault(key, self._first + len(self._texts))
        add, columns = self._names.add, self._symbols
        for key, position, symbol, short, role, public, first, last, content_hash in symbols:
            columns.text.append(self._texts[key])
            columns.position.append(position)
            columns.symbol.append(add(symbol))
            columns.short.append(add(short))
            columns.role.append(add(role))
            columns.public.append(public)
            columns.first.append(first)
            columns.last.append(last)
            columns.hashes += _NO_HASH if content_hash is None else bytes.fromhex(content_hash)
        edge_columns = self._edges
        for key, position, kind, stated_of, target, how, confidence, first, last, path in edges:
            edge_columns.text.append(self._texts[key])
            edge_columns.position.append(position)
            edge_columns.kind.append(add(kind))
            edge_columns.stated_of.append(add(stated_of))
            edge_columns.target.append(add(target))
            edge_columns.how.append(add(how))
            edge_columns.path.append(add(path))
            edge_columns.first.append(first)
            edge_columns.last.append(last)
            edge_columns.confidence.append(confidence)

    @property
    def bytes(self) -> int:
        """Return the approximate size of the segment in bytes."""
        rows = len(self._edges.text) * (len(Edges.__slots__) + 3)
        rows += len(self._symbols.text) * (
            len(Symbols.__slots__) + _HASH_BYTES // _NUMBER_BYTES + 3
        )
        return rows * _NUMBER_BYTES + self._names.bytes

    def build(self) -> tuple[Segment, dict[str, int]]:
        """Return the segment, and the numbers of its texts by key."""
        texts = self._texts
        segment = Segment(self._first, len(texts), self._names, self._edges, self._symbols)
        return segment, texts


MAX_CACHED = 20_000
"""Maximum number of cached edges, and of cached definitions; most walks read the same few."""

_DOCUMENT_BYTES = 420
"""Estimated bytes of a document in memory, including table entries but not its texts."""
_CACHED_ROW_BYTES = 400
"""Estimated bytes of a cached edge or definition."""
_CACHED_NAME_BYTES = 150


MAX_CACHED_NAMES = 100_000
"""Maximum number of definition names in the cache of short names."""


class NameCache:
    """A cache of the names of definitions, by readable scopes and short name."""

    def __init__(self) -> None:
        self._found: dict[tuple[frozenset[str], str], NamesByRepository] = {}
        self._count = 0

    def get(self, scopes: frozenset[str], short: str) -> NamesByRepository | None:
        """Return the cached names of the definitions with a short name, if any."""
        return self._found.get((scopes, short))

    def put(
        self, scopes: frozenset[str], short: str, names_by_repository: NamesByRepository
    ) -> None:
        """Cache the names for a short name; clear the cache first if it would get too large."""
        count = 1 + sum(len(names) for names in names_by_repository.values())
        if self._count + count > MAX_CACHED_NAMES:
            self._found, self._count = {}, 0
        if count <= MAX_CACHED_NAMES:
            self._found[scopes, short] = names_by_repository
            self._count += count


@dataclass(slots=True, eq=False)
class GraphDocument:
    """A document with a version that searches return.

    Attributes:
        repository: the repository of its source.
        text_key, text: chunk_set_key of its text, and the number of that text in the graph.
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
    """The build that a graph describes."""

    ref: TenantRef
    generation: int


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The immutable graph of a build in one state of the relations.

    Attributes:
        segments: segments with the rows of its texts, and possibly of texts no longer in the build.
        texts: numbers of its texts, by chunk_set_key.
        by_id, by_uri, holders: its documents by id, by URI, and by the number of their text.
        bytes: its size in memory.
        edge_cache, symbol_cache: rows that walks have read, by segment, row and document.
    """

    key: GraphKey
    state: RelationState
    segments: tuple[Segment, ...]
    texts: Mapping[str, int]
    by_id: Mapping[str, GraphDocument]
    holders: Mapping[int, Sequence[GraphDocument]] = field(init=False)
    by_uri: Mapping[str, Sequence[GraphDocument]] = field(init=False)
    bytes: int = field(init=False)
    edge_cache: dict[tuple[int, int, str], FoundEdge] = field(default_factory=dict)
    symbol_cache: dict[tuple[int, int, str], FoundSymbol] = field(default_factory=dict)
    name_cache: NameCache = field(default_factory=NameCache)
    _firsts: Sequence[int] = field(init=False)

    def __post_init__(self) -> None:
        holders: dict[int, list[GraphDocument]] = {}
        by_uri: dict[str, list[GraphDocument]] = {}
        size = sum(map(_estimate_bytes, self.segments))
        for item in self.by_id.values():
            by_uri.setdefault(item.uri, []).append(item)
            holders.setdefault(item.text, []).append(item)
            size += sys.getsizeof(item.uri) + sys.getsizeof(item.kinds_json) + _DOCUMENT_BYTES
        firsts = [segment.first for segment in self.segments]
        values = {"holders": holders, "by_uri": by_uri, "bytes": size, "_firsts": firsts}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def find_segment(self, text: int) -> Segment:
        """Return the segment that contains the text with this number."""
        return self.segments[bisect_right(self._firsts, text) - 1]

    def iter_readable(self, uris: Iterable[str], scopes: frozenset[str]) -> Iterator[GraphDocument]:
        """Yield the documents with these URIs whose access scope is in `scopes`."""
        for uri in dict.fromkeys(uris):
            for document in self.by_uri.get(uri, ()):
                if document.access_scope in scopes:
                    yield document


def _estimate_bytes(segment: Segment) -> int:
    edges, symbols = len(segment.edges.text), len(segment.symbols.text)
    rows = min(MAX_CACHED, edges) + min(MAX_CACHED, symbols)
    names = min(MAX_CACHED_NAMES, symbols)
    return segment.bytes + rows * _CACHED_ROW_BYTES + names * _CACHED_NAME_BYTES
