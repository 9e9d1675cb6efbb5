"""Segments: the definitions and edges of some texts, in immutable columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_assets.systems.code_memory.catalog.graph.columns import Lookup, Names, numbers

_NUMBER = 4
_HASH = 32
_NO_HASH = bytes(_HASH)


@dataclass(slots=True)
class Edges:
    """The columns of edges: numbers of names, and the number of the text that states each edge."""

    text: array[int] = field(default_factory=numbers)
    position: array[int] = field(default_factory=numbers)
    kind: array[int] = field(default_factory=numbers)
    stated_of: array[int] = field(default_factory=numbers)
    target: array[int] = field(default_factory=numbers)
    how: array[int] = field(default_factory=numbers)
    path: array[int] = field(default_factory=numbers)
    first: array[int] = field(default_factory=numbers)
    last: array[int] = field(default_factory=numbers)
    confidence: array[float] = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class Symbols:
    """The columns of definitions: numbers of names, and of the text that each is in."""

    text: array[int] = field(default_factory=numbers)
    position: array[int] = field(default_factory=numbers)
    symbol: array[int] = field(default_factory=numbers)
    short: array[int] = field(default_factory=numbers)
    role: array[int] = field(default_factory=numbers)
    public: array[int] = field(default_factory=numbers)
    first: array[int] = field(default_factory=numbers)
    last: array[int] = field(default_factory=numbers)
    hashes: bytearray = field(default_factory=bytearray)

    def content_hash(self, row: int) -> str | None:
        """Return the content hash in a row; None if it has none."""
        found = self.hashes[row * _HASH : (row + 1) * _HASH]
        return None if found == _NO_HASH else found.hex()


@dataclass(frozen=True, slots=True)
class Segment:
    """The definitions and edges of some texts.

    Attributes:
        first: number of the first of its texts, which are numbered consecutively.
        count: the number of texts.
        names: all strings in its columns.
        kinds: the number of each kind of edges.
        edges, symbols: the rows, in the order of texts and positions.
        stated_of, target, symbol, short: lookups of rows by the name in that column.
        edges_of, symbols_of: lookups of rows by text; texts are numbered from 0 in the segment.
    """

    first: int
    count: int
    names: Names
    kinds: Mapping[str, int]
    edges: Edges
    symbols: Symbols
    stated_of: Lookup
    target: Lookup
    symbol: Lookup
    short: Lookup
    edges_of: Lookup
    symbols_of: Lookup

    @property
    def bytes(self) -> int:
        """Return the approximate size of the segment in bytes, without reading all data."""
        rows = len(self.edges.text) * len(Edges.__slots__)
        rows += len(self.symbols.text) * (len(Symbols.__slots__) + _HASH // _NUMBER)
        lookups = (self.stated_of, self.target, self.symbol, self.short)
        of_texts = (self.edges_of, self.symbols_of)
        return rows * _NUMBER + self.names.bytes + sum(one.bytes for one in (*lookups, *of_texts))


class SegmentBuilder:
    """Builds a segment; its texts may be added in any order.

    Args:
        first: the number of its first text.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._texts: dict[str, int] = {}
        self._names = Names()
        self._edges, self._symbols = Edges(), Symbols()

    def add(
        self,
        keys: Sequence[str],
        symbols: Iterable[Sequence[Any]],
        edges: Iterable[Sequence[Any]],
    ) -> None:
        """Add texts.

        Args:
            keys: the keys of the texts.
            symbols: rows of their definitions as in the catalog: key, position and the other
                columns.
            edges: rows of their edges as in the catalog.
        """
        for key in keys:
            self._texts.setdefault(key, self._first + len(self._texts))
        self._add_symbols(symbols)
        self._add_edges(edges)

    def _add_symbols(self, rows: Iterable[Sequence[Any]]) -> None:
        add, to = self._names.add, self._symbols
        for key, position, symbol, short, role, public, first, last, content_hash in rows:
            to.text.append(self._texts[key])
            to.position.append(position)
            to.symbol.append(add(symbol))
            to.short.append(add(short))
            to.role.append(add(role))
            to.public.append(public)
            to.first.append(first)
            to.last.append(last)
            to.hashes += _NO_HASH if content_hash is None else bytes.fromhex(content_hash)

    def _add_edges(self, rows: Iterable[Sequence[Any]]) -> None:
        add, to = self._names.add, self._edges
        for key, position, kind, stated_of, target, how, confidence, first, last, path in rows:
            to.text.append(self._texts[key])
            to.position.append(position)
            to.kind.append(add(kind))
            to.stated_of.append(add(stated_of))
            to.target.append(add(target))
            to.how.append(add(how))
            to.path.append(add(path))
            to.first.append(first)
            to.last.append(last)
            to.confidence.append(confidence)

    @property
    def bytes(self) -> int:
        """Return the approximate size of the segment in bytes."""
        rows = len(self._edges.text) * (len(Edges.__slots__) + 3)
        rows += len(self._symbols.text) * (len(Symbols.__slots__) + _HASH // _NUMBER + 3)
        return rows * _NUMBER + self._names.bytes

    def done(self) -> tuple[Segment, dict[str, int]]:
        """Return the segment, and the numbers of its texts by key."""
        edges, symbols, names = self._edges, self._symbols, len(self._names)
        segment = Segment(
            *(self._first, len(self._texts), self._names),
            {self._names[number]: number for number in set(edges.kind)},
            *(edges, symbols),
            stated_of=Lookup.of(edges.stated_of, names),
            target=Lookup.of(edges.target, names),
            symbol=Lookup.of(symbols.symbol, names),
            short=Lookup.of(symbols.short, names),
            edges_of=self._of_texts(edges.text),
            symbols_of=self._of_texts(symbols.text),
        )
        return segment, self._texts

    def _of_texts(self, column: array[int]) -> Lookup:
        return Lookup.of(numbers(text - self._first for text in column), len(self._texts))
