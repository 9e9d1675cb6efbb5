"""Relations of the document versions that searches return, limited to what the caller may read.

They are read from the catalog (`RelationRows`), or from a graph in memory (`GraphRelations`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

from rag_assets.ingest.sources.model import build_uri
from rag_assets.storage.catalog.accounts.access import PUBLIC, may_read_public
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.statements import BlockingRunner, Statement
from rag_assets.systems.code_memory.catalog import relation_statements as statements
from rag_assets.systems.code_memory.catalog.found_relations import (
    Direction,
    FoundDocument,
    FoundEdge,
    FoundEdges,
    FoundNameUses,
    FoundSymbol,
    NamesByRepository,
    Permits,
    Readable,
    iter_source_spellings,
    iter_target_spellings,
    qualify_definition,
    qualify_name,
    separate_nameless,
)
from rag_assets.systems.code_memory.catalog.graph import (
    MAX_CACHED,
    NONE,
    Graph,
    GraphDocument,
    Lookup,
    Segment,
)
from rag_assets.systems.code_memory.catalog.graph_memory import RelationGraphs
from rag_assets.systems.code_memory.catalog.relation_rows import (
    READABLE_STATE,
    ReadableState,
    RelationState,
    compute_name_number,
)
from rag_assets.systems.code_memory.catalog.tables import NAME_MARKS
from rag_assets.systems.code_memory.sources.records import get_repository_source
from rag_assets.systems.code_memory.symbols.naming import SHORT_NAME_PREFIX, iter_local_names

_WAYS = ("own", "uris", "named", "inside", "own_inside", "named_inside", "only", "without")
"""Names of all list parameters of EDGES and SOME_EDGES."""


class RelationRows:
    """The definitions and edges in the document versions that a caller may read.

    Every call queries the catalog again.
    """

    def __init__(self, statements: BlockingRunner, readable: Readable) -> None:
        self.statements, self.document_versions = statements, readable

    def find_edges(
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
        """Return the edges that start or end at nodes; edges that start at them come first.

        Args:
            direction: out: edges that start at a node; in: edges that end at it.
            limit: the maximum number of edges to return for each direction, and for files.
            files: URIs of documents; edges that start at the document itself are returned too.
            only: kinds of edges to return; empty: all.
            without: kinds to omit.
            whole: whether to return no edges at all if there are more than the limit.
        """
        global_names, nameless = separate_nameless(nodes)
        values: dict[str, Any] = {"uris": [*files], "inside": [*{uri for uri, _ in nameless}]}
        inside = [*{own for _, own in nameless}]
        if direction != "in":
            values |= {
                "own": list_spellings(iter_source_spellings, global_names),
                "own_inside": inside,
            }
        if direction != "out":
            values |= {
                "named": list_spellings(iter_target_spellings, global_names),
                "named_inside": inside,
            }
        values |= {"limit": limit + 1, "only": sorted(only), "without": sorted(without)}
        # If the result would exceed the limit, no edges are returned, so any rows may be read.
        rows = self._list_edge_rows(statements.SOME_EDGES if whole else statements.EDGES, **values)
        counts: Counter[int] = Counter()
        edges: dict[FoundEdge, None] = {}
        for way, *row in rows:
            counts[way] += 1
            if counts[way] <= limit:
                edges[_read_edge_row(*row)] = None
        cut = any(count > limit for count in counts.values())
        return FoundEdges([] if cut and whole else [*edges], cut=cut)

    def add_evidence(self, edges: Sequence[FoundEdge]) -> list[FoundEdge]:
        """Return the edges with their evidence, without edges that no longer exist."""
        return [*edges]

    def list_edges_of_kind(self, kind: str, limit: int) -> list[FoundEdge]:
        """Return at most `limit` edges of a kind, whatever their target."""
        rows = self._run(statements.EDGES_OF_KIND, kind=kind, limit=limit)
        return [_read_edge_row(*row) for _, *row in rows]

    def find_edges_to(self, spellings: Sequence[str], kind: str, limit: int) -> list[FoundEdge]:
        """Return the edges of a kind with a target that is stored in one of these spellings."""
        if not spellings:
            return []
        values = {"named": [*spellings], "only": [kind], "limit": limit}
        rows = self._list_edge_rows(statements.EDGES, **values)
        return [_read_edge_row(*row) for _, *row in rows]

    def find_definitions(self, names: Sequence[str]) -> list[FoundSymbol]:
        """Return the definitions with these qualified names."""
        wanted = frozenset(names)
        plain, nameless = separate_nameless(wanted)
        definitions = self._find_by_local_names(list_spellings(iter_local_names, plain))
        if nameless:
            definitions += self.list_definitions([*{uri for uri, _ in nameless}])
        places: dict[tuple[str, str, int], FoundSymbol] = {}
        for definition in definitions:
            if definition.name in wanted:
                places.setdefault(
                    (definition.uri, definition.local_name, definition.line_start), definition
                )
        return [places[at] for at in sorted(places)]

    def _find_by_local_names(self, names: Sequence[str]) -> list[FoundSymbol]:
        return self._list_symbols(statements.DEFINITIONS_BY_NAME, names=names) if names else []

    def find_by_short_name(self, shorts: Sequence[str]) -> list[FoundSymbol]:
        """Return the definitions with these short names; see get_short_name."""
        return self._list_symbols(statements.DEFINITIONS_BY_SHORT_NAME, names=[*shorts])

    def find_names(
        self, shorts: Collection[str], permits: Permits | None
    ) -> Mapping[str, NamesByRepository]:
        """Return the qualified names of the definitions with these short names, by short name.

        Args:
            permits: returns whether a document may be read; None if no further check is needed.
        """
        rows = self._run(statements.NAMES_BY_SHORT_NAME, names=[*shorts]) if shorts else []
        names_by_short: dict[str, dict[str, set[str]]] = {}
        for short, symbol, *of_document in rows:
            placed = FoundDocument(*of_document)
            if permits is None or permits(placed):
                names = names_by_short.setdefault(short, {}).setdefault(
                    get_repository_source(placed.source), set()
                )
                names.add(qualify_definition(symbol, placed.uri))
        return dict(names_by_short)

    def find_similar(self, parts: Sequence[str], limit: int) -> list[FoundSymbol]:
        """Return at most `limit` definitions whose short name contains one of these strings."""
        return self._list_symbols(statements.SIMILAR_DEFINITIONS, parts=[*parts], limit=limit)

    def find_by_last_part(self, name: str, limit: int) -> list[FoundSymbol]:
        """Return at most `limit` definitions whose name ends with this part.

        Case and marks such as `!` are ignored, but names with the same marks come first.
        """
        marked, part = (
            name.lower().translate(str.maketrans("", "", marks)) for marks in ("_-", NAME_MARKS)
        )
        return self._list_symbols(
            statements.DEFINITIONS_BY_LAST_PART, parts=[part], marked=marked, limit=limit
        )

    def find_files(self, name: str, limit: int) -> list[FoundDocument]:
        """Return at most `limit` documents whose URI ends with this file name."""
        by_name = statements.DOCUMENTS_BY_FILE_NAME
        return self._list_documents(by_name, name=name.lower(), limit=limit)

    def find_name_uses(
        self, wanted: Collection[str], names: Collection[str], limit: int
    ) -> list[FoundNameUses]:
        """Return the uses of names, in the documents that contain at least one wanted name.

        Args:
            names: further names whose uses in these documents are returned.
            limit: the maximum to return; documents that define the name come first.
        """
        tenant = self.document_versions.tenant_id
        numbers = [compute_name_number(tenant, name) for name in wanted]
        every = [*dict.fromkeys((*wanted, *names))]
        rows = self._run(statements.NAME_USES, numbers=numbers, names=every, limit=limit)
        return [
            FoundNameUses(name, places, id_, uri, get_repository_source(source), scope, type_)
            for name, places, id_, uri, source, scope, type_ in rows
        ]

    def list_definitions(self, uris: Sequence[str]) -> list[FoundSymbol]:
        """Return the definitions in these documents, in the order of the text."""
        return self._list_symbols(statements.DEFINITIONS_OF_DOCUMENTS, uris=[*uris])

    def list_documents(
        self, source_types: Sequence[str], *, only_unscanned: bool = False
    ) -> list[FoundDocument]:
        """Return the documents of these types, sorted by URI.

        Args:
            only_unscanned: whether to return only documents whose names were not indexed yet.
        """
        unscanned, every = statements.DOCUMENTS_WITHOUT_NAMES, statements.DOCUMENTS_OF_TYPE
        statement = unscanned if only_unscanned else every
        return self._list_documents(statement, source_types=[*source_types])

    def find_documents(self, uris: Sequence[str]) -> list[FoundDocument]:
        """Return the documents with these URIs."""
        return self._list_documents(statements.DOCUMENTS_BY_URI, uris=[*uris])

    def list_first_documents(self, sources: Sequence[str]) -> list[FoundDocument]:
        """Return one readable document of each source that has any."""
        return self._list_documents(statements.FIRST_DOCUMENTS, sources=[*sources])

    def _list_edge_rows(self, statement: Statement, **values: Any) -> list[Any]:
        """Return rows of edges at nodes; list parameters that are not passed are empty."""
        return self._run(statement, **{**{name: [] for name in _WAYS}, **values})

    def _list_documents(self, statement: Statement, **values: Any) -> list[FoundDocument]:
        return [FoundDocument(*row) for row in self._run(statement, **values)]

    def _list_symbols(self, statement: Statement, **values: Any) -> list[FoundSymbol]:
        return [_read_symbol_row(*row) for row in self._run(statement, **values)]

    def _run(self, statement: Statement, **values: Any) -> list[Any]:
        values["tenant"] = self.document_versions.tenant_id
        values["generation"] = self.document_versions.generation
        values["principals"] = [*self.document_versions.principals]
        return self.statements.rows(statement, values)


_Row: TypeAlias = tuple[str, int, Segment, int, GraphDocument]
"""A row of a document: its URI and the row's position, both for sorting, and where it is stored."""

_BY_PLACE = itemgetter(0, 1)

_Found = TypeVar("_Found", FoundEdge, FoundSymbol)


_Kinds: TypeAlias = Callable[[Segment], frozenset[int]]
"""Returns the numbers of the requested kinds of edges in a segment."""


class GraphRelations(RelationRows):
    """Relations of an in-memory graph, equal to the catalog's relations in the same state.

    Queries that the graph cannot answer read the current data of the catalog, through `rows`.
    """

    def __init__(self, graph: Graph, scopes: frozenset[str], rows: RelationRows) -> None:
        super().__init__(rows.statements, rows.document_versions)
        self._graph, self._scopes = graph, scopes

    def find_edges(
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
        """See RelationRows."""
        edges: dict[tuple[str, int], FoundEdge] = {}
        names, nameless = separate_nameless(nodes)
        own_names = list_spellings(iter_source_spellings, names) if direction != "in" else []
        target_names = list_spellings(iter_target_spellings, names) if direction != "out" else []
        target_names = [name for name in target_names if self._may_mean_one(name)]

        def find_kind_numbers(segment: Segment) -> frozenset[int]:
            wanted_kinds = {*(only or segment.kinds)} - {*without}
            return frozenset(segment.kinds[kind] for kind in segment.kinds.keys() & wanted_kinds)

        cache = self._graph.edge_cache
        cut = False
        for rows in (
            self._iter_edge_rows(own_names, "stated_of", find_kind_numbers),
            self._iter_edge_rows_inside(
                ((uri, "") for uri in files), "stated_of", find_kind_numbers
            ),
            self._iter_edge_rows(target_names, "target", find_kind_numbers),
            self._iter_edge_rows_inside(
                nameless if direction != "in" else (), "stated_of", find_kind_numbers
            ),
            self._iter_edge_rows_inside(
                nameless if direction != "out" else (), "target", find_kind_numbers
            ),
        ):
            ordered = [*islice(rows, limit + 1)] if whole else [*rows]
            cut = cut or len(ordered) > limit
            if cut and whole:
                return FoundEdges([], cut=True)
            ordered.sort(key=_BY_PLACE)
            for row in ordered[:limit]:
                key = row[-1].document_id, row[1]
                if key not in edges:
                    edges[key] = _read_cached(cache, _build_edge, row)
        return FoundEdges([*edges.values()], cut=cut)

    def add_evidence(self, edges: Sequence[FoundEdge]) -> list[FoundEdge]:
        """See RelationRows."""
        by_id = self._graph.by_id
        places = [(id_ := edge.document_id, by_id[id_].text_key, edge.position) for edge in edges]
        if not places:
            return []
        ids, texts, positions = zip(*dict.fromkeys(places), strict=True)
        rows = self._run(
            statements.EVIDENCE, documents=[*ids], texts=[*texts], positions=[*positions]
        )
        read = {(id_, text, position): evidence for id_, text, position, evidence in rows}
        return [
            edge._replace(evidence=read[place])
            for edge, place in zip(edges, places, strict=True)
            if place in read
        ]

    def _find_by_local_names(self, names: Sequence[str]) -> list[FoundSymbol]:
        return self._read_symbols(self._iter_symbol_rows(names, "symbol"))

    def find_by_short_name(self, shorts: Sequence[str]) -> list[FoundSymbol]:
        """See RelationRows."""
        return self._read_symbols(self._iter_symbol_rows(dict.fromkeys(shorts), "short"))

    def find_names(
        self, shorts: Collection[str], permits: Permits | None
    ) -> Mapping[str, NamesByRepository]:
        """See RelationRows."""
        if permits is None:
            names_by_short = {short: self._find_names(short) for short in shorts}
        else:
            rows = {short: self._iter_symbol_rows([short], "short") for short in shorts}
            names_by_short = {
                short: _group_names(matches, permits) for short, matches in rows.items()
            }
        return {short: names for short, names in names_by_short.items() if names}

    def list_definitions(self, uris: Sequence[str]) -> list[FoundSymbol]:
        """See RelationRows."""
        rows: list[_Row] = []
        for document in self._graph.iter_readable(uris, self._scopes):
            segment = self._graph.find_segment(document.text)
            for row in segment.symbols_of.find_rows(document.text - segment.first):
                position = segment.symbols.position[row]
                rows.append((document.uri, position, segment, row, document))
        # A definition has a row for each of its short names.
        return [*dict.fromkeys(self._read_symbols(rows))]

    def find_documents(self, uris: Sequence[str]) -> list[FoundDocument]:
        """See RelationRows."""
        documents = sorted(self._graph.iter_readable(uris, self._scopes), key=lambda item: item.uri)
        return [
            FoundDocument(
                document.document_id,
                document.uri,
                document.source,
                document.access_scope,
                document.source_type,
            )
            for document in documents
        ]

    def _may_mean_one(self, name: str) -> bool:
        """Return whether a name at the end of an edge can mean exactly one definition.

        Thousands of edges may use a short name that several definitions of a repository have.
        """
        if not name.startswith(SHORT_NAME_PREFIX):
            return True
        by_repository = self._find_names(name.removeprefix(SHORT_NAME_PREFIX))
        return any(len(names) == 1 for names in by_repository.values())

    def _find_names(self, short: str) -> NamesByRepository:
        cache = self._graph.name_cache
        names = cache.get(self._scopes, short)
        if names is None:
            names = _group_names(self._iter_symbol_rows([short], "short"), None)
            cache.put(self._scopes, short, names)
        return names

    def _read_symbols(self, rows: Iterable[_Row]) -> list[FoundSymbol]:
        """Return the definitions in rows, sorted by URI and position."""
        cache = self._graph.symbol_cache
        return [_read_cached(cache, _build_symbol, row) for row in sorted(rows, key=_BY_PLACE)]

    def _iter_edge_rows(self, names: Iterable[str], column: str, wanted: _Kinds) -> Iterator[_Row]:
        holders, scopes = self._graph.holders, self._scopes
        for segment in self._graph.segments:
            edges, lookup = segment.edges, getattr(segment, column)
            counts = wanted(segment)
            texts, kinds, positions = edges.text, edges.kind, edges.position
            for row in _iter_rows_with_names(segment, lookup, names):
                if kinds[row] not in counts:
                    continue
                for document in holders.get(texts[row], ()):
                    if document.access_scope in scopes:
                        yield document.uri, positions[row], segment, row, document

    def _iter_edge_rows_inside(
        self, places: Iterable[tuple[str, str]], column: str, kinds: _Kinds
    ) -> Iterator[_Row]:
        """Yield the edges at names that are only valid within one document, given by its URI."""
        for uri, own in places:
            for document in self._graph.iter_readable([uri], self._scopes):
                segment = self._graph.find_segment(document.text)
                edges, counts = segment.edges, kinds(segment)
                name = segment.names.find_number(own)
                names = edges.stated_of if column == "stated_of" else edges.target
                for row in segment.edges_of.find_rows(document.text - segment.first):
                    if names[row] == name and edges.kind[row] in counts:
                        yield document.uri, edges.position[row], segment, row, document

    def _iter_symbol_rows(self, names: Iterable[str], column: str) -> Iterator[_Row]:
        holders, scopes = self._graph.holders, self._scopes
        for segment in self._graph.segments:
            symbols = segment.symbols
            for row in _iter_rows_with_names(segment, getattr(segment, column), names):
                for document in holders.get(symbols.text[row], ()):
                    if document.access_scope in scopes:
                        yield document.uri, symbols.position[row], segment, row, document


def _read_cached(
    cache: dict[tuple[int, int, str], _Found],
    build: Callable[[Segment, int, GraphDocument], _Found],
    row_of_document: _Row,
) -> _Found:
    """Return the edge or definition in a row, cached while the cache has room."""
    _, _, segment, row, document = row_of_document
    key = segment.first, row, document.document_id
    cached = cache.get(key)
    if cached is None:
        cached = build(segment, row, document)
        if len(cache) < MAX_CACHED:
            cache[key] = cached
    return cached


def _group_names(rows: Iterable[_Row], permits: Permits | None) -> NamesByRepository:
    """Return the names of the definitions in rows that a caller may read, by repository."""
    names_by_repository: dict[str, set[str]] = {}
    for uri, _, segment, row, document in rows:
        if permits is None or permits(document):
            name = qualify_definition(segment.names[segment.symbols.symbol[row]], uri)
            names_by_repository.setdefault(document.repository, set()).add(name)
    return {repository: tuple(names) for repository, names in names_by_repository.items()}


def _iter_rows_with_names(segment: Segment, lookup: Lookup, names: Iterable[str]) -> Iterator[int]:
    for name in names:
        number = segment.names.find_number(name)
        if number is not None:
            yield from lookup.find_rows(number)


def _build_edge(segment: Segment, row: int, document: GraphDocument) -> FoundEdge:
    edges, names = segment.edges, segment.names
    return _read_edge_row(
        *(names[edges.kind[row]], names[edges.stated_of[row]], names[edges.target[row]]),
        *(names[edges.how[row]], edges.confidence[row], edges.first[row], edges.last[row]),
        *(None, None if edges.path[row] == NONE else names[edges.path[row]]),
        *(document.document_id, document.uri, document.source, document.access_scope),
        edges.position[row],
    )


def _build_symbol(segment: Segment, row: int, document: GraphDocument) -> FoundSymbol:
    symbols, names = segment.symbols, segment.names
    return _read_symbol_row(
        *(names[symbols.symbol[row]], names[symbols.role[row]], bool(symbols.public[row])),
        *(symbols.first[row], symbols.last[row], symbols.get_content_hash(row)),
        *(document.document_id, document.uri, document.source, document.access_scope),
        *(document.source_type, document.kinds, names[symbols.short[row]]),
    )


class RelationTable:
    """Queries on the relations of builds, in the catalog and in memory."""

    def __init__(self, database: Database) -> None:
        self.graphs = RelationGraphs(database)
        self._statements = BlockingRunner(database)

    def select_readable(self, readable: Readable) -> RelationRows:
        """Return the relations of the document versions that a caller may read."""
        return RelationRows(self._statements, readable)

    def read_readable_state(self, tenant_id: str, principals: Collection[str]) -> ReadableState:
        """Return the state of a tenant's relations, and the scopes that principals may read."""
        values = {"tenant": tenant_id, "principals": [*principals]}
        [(changes, rows, scopes)] = self._statements.rows(READABLE_STATE, values)
        public = (PUBLIC,) if may_read_public(principals) else ()
        return ReadableState(RelationState(changes, rows), frozenset((*(scopes or ()), *public)))


def list_spellings(spellings: Callable[[str], Iterator[str]], names: Collection[str]) -> list[str]:
    """Return all spellings of these names, without duplicates."""
    return list(dict.fromkeys(spelling for name in names for spelling in spellings(name)))


def _read_symbol_row(symbol: str, role: str, is_public: bool, *rest: Any) -> FoundSymbol:
    """Return the definition in an SQL row, whose columns are nearly in the order of the fields."""
    first, last, content_hash, document_id, uri, source, scope, type_, kinds, short = rest
    return FoundSymbol(
        *(qualify_definition(symbol, uri), role, is_public, first, last, content_hash),
        *(document_id, uri, get_repository_source(source), scope, type_, kinds or {}),
        *(symbol, short),
    )


def _read_edge_row(kind: str, stated_of: str, target: str, *rest: Any) -> FoundEdge:
    """Return the edge in an SQL row, whose columns are in the order of the fields."""
    how, confidence, first, last, evidence, path, document_id, uri, source, scope, position = rest
    repository = get_repository_source(source)
    return FoundEdge(
        *(kind, qualify_name(stated_of, uri), qualify_name(target, uri), how, confidence),
        *(first, last, evidence, path, document_id),
        *(uri if path is None else build_uri(repository, path), repository, scope, position),
    )
