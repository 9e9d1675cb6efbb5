"""Relations of an in-memory graph for one caller; its answers equal the catalog's in that state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TypeAlias, TypeVar

from rag_assets.ingest.sources.model import uri_of
from rag_assets.systems.code_memory.catalog.found_relations import (
    Direction,
    FoundDocument,
    FoundEdge,
    FoundEdges,
    FoundNameUses,
    FoundSymbol,
    Nameless,
    NamesCalled,
    Permits,
    defined,
    own_spellings_of,
    qualified,
    separate_nameless,
    spellings_of,
)
from rag_assets.systems.code_memory.catalog.graph.graph import (
    MOST_MET,
    NONE,
    Graph,
    GraphDocument,
    Lookup,
    Segment,
)
from rag_assets.systems.code_memory.catalog.relations import RelationRows, list_spellings
from rag_assets.systems.code_memory.symbols.naming import CALLED, local_names

_Row: TypeAlias = tuple[str, int, Segment, int, GraphDocument]
"""A row of a document: its URI and the row's position, both for sorting, and where it is stored."""

_BY_PLACE = itemgetter(0, 1)

_Found = TypeVar("_Found", FoundEdge, FoundSymbol)


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The requested kinds of edges: only some kinds, or all except some."""

    only: frozenset[str]
    without: frozenset[str]

    def of(self, segment: Segment) -> frozenset[int]:
        """Return the numbers of these kinds in a segment."""
        return frozenset(
            number
            for kind, number in segment.kinds.items()
            if kind not in self.without and (not self.only or kind in self.only)
        )


class GraphRelations:
    """Relations of a graph that a caller may read.

    Args:
        graph: the graph of the requested build and state.
        scopes: the access scopes that the caller may read.
        catalog: answers what the graph does not store, from the current data.
    """

    def __init__(self, graph: Graph, scopes: frozenset[str], catalog: RelationRows) -> None:
        self._graph, self._scopes, self._catalog = graph, scopes, catalog

    def edges(
        self,
        nodes: Sequence[str],
        direction: Direction,
        limit: int,
        *,
        files: Sequence[str] = (),
        only: Collection[str] = (),
        without: Collection[str] = (),
        whole: bool = False,
    ) -> FoundEdges:
        """See Relations."""
        found: dict[tuple[str, int], FoundEdge] = {}
        names, nameless = separate_nameless(nodes)
        own = list_spellings(own_spellings_of, names) if direction != "in" else []
        named = list_spellings(spellings_of, names) if direction != "out" else []
        named = [name for name in named if self._may_mean_one(name)]
        kinds = _Kinds(frozenset(only), frozenset(without))
        cut = False
        for rows in (
            self._edge_rows(own, "stated_of", kinds),
            self._edges_of_files(files, kinds),
            self._edge_rows(named, "target", kinds),
            self._edges_inside(nameless if direction != "in" else (), "stated_of", kinds),
            self._edges_inside(nameless if direction != "out" else (), "target", kinds),
        ):
            ordered = [*islice(rows, limit + 1)] if whole else [*rows]
            cut = cut or len(ordered) > limit
            if cut and whole:
                return FoundEdges([], cut=True)
            ordered.sort(key=_BY_PLACE)
            for _, position, segment, row, document in ordered[:limit]:
                key = document.document_id, position
                if key not in found:
                    found[key] = self._edge(segment, row, document)
        return FoundEdges([*found.values()], cut=cut)

    def evidence(self, edges: Sequence[FoundEdge]) -> list[FoundEdge]:
        """See Relations."""
        held = self._graph.by_id
        places = [(id_ := one.document_id, held[id_].text_key, one.position) for one in edges]
        read = self._catalog.evidence_at(list(dict.fromkeys(places))) if places else {}
        return [
            one._replace(evidence=read[place])
            for one, place in zip(edges, places, strict=True)
            if place in read
        ]

    def named(self, names: Sequence[str]) -> list[FoundSymbol]:
        """See Relations."""
        wanted = frozenset(names)
        found: dict[tuple[str, str, int], FoundSymbol] = {}
        names, nameless = separate_nameless(wanted)
        rows = self._symbol_rows(list_spellings(local_names, names), "symbol")
        by_name = [
            self._symbol(segment, row, document)
            for _, _, segment, row, document in sorted(rows, key=_BY_PLACE)
        ]
        for one in (*by_name, *self.within([uri for uri, _ in nameless])):
            if one.name in wanted:
                found.setdefault((one.uri, one.local_name, one.line_start), one)
        return [found[key] for key in sorted(found)]

    def called(self, shorts: Sequence[str]) -> list[FoundSymbol]:
        """See Relations."""
        rows = self._symbol_rows(dict.fromkeys(shorts), "short")
        return [
            self._symbol(segment, row, document)
            for _, _, segment, row, document in sorted(rows, key=_BY_PLACE)
        ]

    def names_called(
        self, shorts: Collection[str], permits: Permits | None
    ) -> Mapping[str, NamesCalled]:
        """See Relations."""
        if permits is None:
            found = {short: self._names_called(short) for short in shorts}
        else:
            rows = {short: self._symbol_rows([short], "short") for short in shorts}
            found = {short: _names(of_short, permits) for short, of_short in rows.items()}
        return {short: names for short, names in found.items() if names}

    def within(self, uris: Sequence[str]) -> list[FoundSymbol]:
        """See Relations."""
        found: list[_Row] = []
        for document in self._graph.at(uris, self._scopes):
            segment = self._graph.segment_of(document.text)
            for row in segment.symbols_of.rows(document.text - segment.first):
                place = document.uri, segment.symbols.position[row]
                found.append((*place, segment, row, document))
        found.sort(key=_BY_PLACE)
        return [self._symbol(segment, row, document) for _, _, segment, row, document in found]

    def at(self, uris: Sequence[str]) -> list[FoundDocument]:
        """See Relations."""
        found = sorted(self._graph.at(uris, self._scopes), key=lambda one: one.uri)
        return [
            FoundDocument(one.document_id, one.uri, one.source, one.access_scope, one.source_type)
            for one in found
        ]

    def stated(self, kind: str, limit: int) -> list[FoundEdge]:
        """See Relations."""
        return self._catalog.stated(kind, limit)

    def naming(self, spellings: Sequence[str], kind: str, limit: int) -> list[FoundEdge]:
        """See Relations."""
        return self._catalog.naming(spellings, kind, limit)

    def like(self, parts: Sequence[str], limit: int) -> list[FoundSymbol]:
        """See Relations."""
        return self._catalog.like(parts, limit)

    def ending(self, name: str, limit: int) -> list[FoundSymbol]:
        """See Relations."""
        return self._catalog.ending(name, limit)

    def files_called(self, name: str, limit: int) -> list[FoundDocument]:
        """See Relations."""
        return self._catalog.files_called(name, limit)

    def name_uses(
        self, wanted: Collection[str], names: Collection[str], limit: int
    ) -> list[FoundNameUses]:
        """See Relations."""
        return self._catalog.name_uses(wanted, names, limit)

    def documents(self, source_types: Sequence[str]) -> list[FoundDocument]:
        """See Relations."""
        return self._catalog.documents(source_types)

    def without_names(self, source_types: Sequence[str]) -> list[FoundDocument]:
        """See Relations."""
        return self._catalog.without_names(source_types)

    def first_of(self, sources: Sequence[str]) -> list[FoundDocument]:
        """See Relations."""
        return self._catalog.first_of(sources)

    def _may_mean_one(self, name: str) -> bool:
        """Return whether an edge with this name can lead to a definition.

        A short name that several definitions of a repository have refers to none of them. Thousands
        of edges may use such a name, so they are not read.
        """
        if not name.startswith(CALLED):
            return True
        return any(
            len(names) == 1 for names in self._names_called(name.removeprefix(CALLED)).values()
        )

    def _names_called(self, short: str) -> NamesCalled:
        met = self._graph.names_met
        found = met.get(self._scopes, short)
        if found is None:
            found = _names(self._symbol_rows([short], "short"), None)
            met.keep(self._scopes, short, found)
        return found

    def _edge(self, segment: Segment, row: int, document: GraphDocument) -> FoundEdge:
        return _read_cached(self._graph.edges_met, _edge, segment, row, document)

    def _symbol(self, segment: Segment, row: int, document: GraphDocument) -> FoundSymbol:
        return _read_cached(self._graph.symbols_met, _symbol, segment, row, document)

    def _edge_rows(self, names: Iterable[str], column: str, wanted: _Kinds) -> Iterator[_Row]:
        holders, scopes = self._graph.holders, self._scopes
        for segment in self._graph.segments:
            edges, lookup = segment.edges, getattr(segment, column)
            counts = wanted.of(segment)
            texts, kinds, positions = edges.text, edges.kind, edges.position
            for row in _rows(segment, lookup, names):
                if kinds[row] not in counts:
                    continue
                for document in holders.get(texts[row], ()):
                    if document.access_scope in scopes:
                        yield document.uri, positions[row], segment, row, document

    def _edges_of_files(self, uris: Iterable[str], wanted: _Kinds) -> Iterator[_Row]:
        for document in self._graph.at(uris, self._scopes):
            segment = self._graph.segment_of(document.text)
            edges, of_file = segment.edges, segment.names.of("")
            counts = wanted.of(segment)
            for row in segment.edges_of.rows(document.text - segment.first):
                if edges.stated_of[row] == of_file and edges.kind[row] in counts:
                    yield document.uri, edges.position[row], segment, row, document

    def _edges_inside(
        self, nameless: Iterable[Nameless], column: str, wanted: _Kinds
    ) -> Iterator[_Row]:
        for uri, own in nameless:
            for document in self._graph.at([uri], self._scopes):
                segment = self._graph.segment_of(document.text)
                edges, name, counts = segment.edges, segment.names.of(own), wanted.of(segment)
                names = edges.stated_of if column == "stated_of" else edges.target
                for row in segment.edges_of.rows(document.text - segment.first):
                    if names[row] == name and edges.kind[row] in counts:
                        yield document.uri, edges.position[row], segment, row, document

    def _symbol_rows(self, names: Iterable[str], column: str) -> Iterator[_Row]:
        holders, scopes = self._graph.holders, self._scopes
        for segment in self._graph.segments:
            symbols = segment.symbols
            for row in _rows(segment, getattr(segment, column), names):
                for document in holders.get(symbols.text[row], ()):
                    if document.access_scope in scopes:
                        yield document.uri, symbols.position[row], segment, row, document


def _read_cached(
    met: dict[tuple[int, int, str], _Found],
    made: Callable[[Segment, int, GraphDocument], _Found],
    segment: Segment,
    row: int,
    document: GraphDocument,
) -> _Found:
    """Return the result for a row: from the cache, else computed and cached if there is room."""
    key = segment.first, row, document.document_id
    found = met.get(key)
    if found is None:
        found = made(segment, row, document)
        if len(met) < MOST_MET:
            met[key] = found
    return found


def _names(rows: Iterable[_Row], permits: Permits | None) -> NamesCalled:
    """Return the names of the definitions in rows, grouped by repository."""
    found: dict[str, set[str]] = {}
    for uri, _, segment, row, document in rows:
        if permits is None or permits(document):
            name = defined(segment.names[segment.symbols.symbol[row]], uri)
            found.setdefault(document.repository, set()).add(name)
    return {repository: tuple(names) for repository, names in found.items()}


def _rows(segment: Segment, lookup: Lookup, names: Iterable[str]) -> Iterator[int]:
    number = segment.names.of
    for name in names:
        found = number(name)
        if found is not None:
            yield from lookup.rows(found)


def _edge(segment: Segment, row: int, document: GraphDocument) -> FoundEdge:
    edges, names, uri = segment.edges, segment.names, document.uri
    path = None if edges.path[row] == NONE else names[edges.path[row]]
    return FoundEdge(
        names[edges.kind[row]],
        qualified(names[edges.stated_of[row]], uri),
        qualified(names[edges.target[row]], uri),
        names[edges.how[row]],
        edges.confidence[row],
        edges.first[row],
        edges.last[row],
        None,
        path,
        document.document_id,
        uri if path is None else uri_of(document.repository, path),
        document.repository,
        document.access_scope,
        edges.position[row],
    )


def _symbol(segment: Segment, row: int, document: GraphDocument) -> FoundSymbol:
    symbols, names = segment.symbols, segment.names
    symbol = names[symbols.symbol[row]]
    return FoundSymbol(
        defined(symbol, document.uri),
        names[symbols.role[row]],
        bool(symbols.public[row]),
        symbols.first[row],
        symbols.last[row],
        symbols.content_hash(row),
        document.document_id,
        document.uri,
        document.repository,
        document.access_scope,
        document.source_type,
        document.kinds,
        symbol,
        names[symbols.short[row]],
    )
