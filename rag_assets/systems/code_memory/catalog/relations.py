"""Symbols and edges of the document versions that searches return, if the caller may read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from rag_assets.ingest.sources.model import uri_of
from rag_assets.storage.catalog.accounts.access import PUBLIC, reads_public
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
    NamesCalled,
    Permits,
    Readable,
    defined,
    own_spellings_of,
    qualified,
    separate_nameless,
    spellings_of,
)
from rag_assets.systems.code_memory.catalog.graph.memory import RelationGraphs
from rag_assets.systems.code_memory.catalog.relation_rows import (
    MOMENT,
    RelationMoment,
    RelationState,
    number_of_name,
)
from rag_assets.systems.code_memory.catalog.tables import NAME_MARKS
from rag_assets.systems.code_memory.sources.records import repository_of
from rag_assets.systems.code_memory.symbols.naming import local_names

EvidencePlace: TypeAlias = tuple[str, str, int]

_WAYS = ("own", "uris", "named", "inside", "own_inside", "named_inside", "only", "without")
"""Names of all list parameters of EDGES and SOME_EDGES."""


class Relations(Protocol):
    """The definitions and edges that a caller may read in the document versions of a build."""

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
        """Return the edges that start or end at nodes; edges that start at them come first.

        Args:
            nodes: names as edges have them.
            direction: out: edges that start at a node; in: edges that end at it.
            limit: the maximum number of edges to return for each direction, and for files.
            files: URIs of documents; their edges that no definition states are returned too.
            only: kinds of edges to return; empty: all.
            without: kinds to leave out.
            whole: whether to return no edges at all if there are more than the limit.
        """
        ...

    def evidence(self, edges: Sequence[FoundEdge]) -> list[FoundEdge]:
        """Return the edges with their evidence; edges that no longer exist are left out."""
        ...

    def stated(self, kind: str, limit: int) -> list[FoundEdge]:
        """Return the edges of a kind, regardless of their targets."""
        ...

    def naming(self, spellings: Sequence[str], kind: str, limit: int) -> list[FoundEdge]:
        """Return the edges of a kind with a target that is stored in one of these spellings."""
        ...

    def named(self, names: Sequence[str]) -> list[FoundSymbol]:
        """Return the definitions with these qualified names."""
        ...

    def called(self, shorts: Sequence[str]) -> list[FoundSymbol]:
        """Return the definitions with these short names; see short_name."""
        ...

    def names_called(
        self, shorts: Collection[str], permits: Permits | None
    ) -> Mapping[str, NamesCalled]:
        """Return the names of the definitions with these short names, by short name.

        Args:
            shorts: see short_name; the result has no entry for a name without a definition.
            permits: narrows what the caller may read.
        """
        ...

    def like(self, parts: Sequence[str], limit: int) -> list[FoundSymbol]:
        """Return some definitions with a short name that contains one of these texts."""
        ...

    def ending(self, name: str, limit: int) -> list[FoundSymbol]:
        """Return some definitions with a name that ends with this part, ignoring case and marks.

        Names with the same marks come first: `save!` before `save`.
        """
        ...

    def files_called(self, name: str, limit: int) -> list[FoundDocument]:
        """Return some documents with a URI that ends with this file name."""
        ...

    def name_uses(
        self, wanted: Collection[str], names: Collection[str], limit: int
    ) -> list[FoundNameUses]:
        """Return the positions of names in the documents that contain certain names.

        Args:
            wanted: only documents with at least one of these names are read.
            names: the names to locate.
            limit: the maximum to return; documents that define the name come first.
        """
        ...

    def within(self, uris: Sequence[str]) -> list[FoundSymbol]:
        """Return the definitions in these documents, in the order of the text."""
        ...

    def documents(self, source_types: Sequence[str]) -> list[FoundDocument]:
        """Return the documents of these types, sorted by URI."""
        ...

    def without_names(self, source_types: Sequence[str]) -> list[FoundDocument]:
        """Return the documents of these types that were not yet scanned for names."""
        ...

    def at(self, uris: Sequence[str]) -> list[FoundDocument]:
        """Return the documents with these URIs."""
        ...

    def first_of(self, sources: Sequence[str]) -> list[FoundDocument]:
        """Return one document of each source that has documents."""
        ...


class RelationTable:
    """Queries on the tables `symbols` and `edges`.

    Attributes:
        graphs: the same relations in memory, for builds that are queried repeatedly.
    """

    def __init__(self, database: Database) -> None:
        self.graphs = RelationGraphs(database)
        self._statements = BlockingRunner(database)

    def readable(self, readable: Readable) -> RelationRows:
        """Return the relations of the document versions that a caller may read."""
        return RelationRows(self._statements, readable)

    def moment(self, tenant_id: str, principals: Collection[str]) -> RelationMoment:
        """Return the state of a tenant's relations, and the scopes that the principals may read.

        Raises:
            ServiceUnavailable: Postgres does not answer.
        """
        values = {"tenant": tenant_id, "principals": [*principals]}
        [(changes, rows, scopes)] = self._statements.rows(MOMENT, values)
        public = (PUBLIC,) if reads_public(principals) else ()
        return RelationMoment(RelationState(changes, rows), frozenset((*(scopes or ()), *public)))


class RelationRows:
    """Relations in the catalog; every call queries the database again.

    Args:
        statements: runs the SQL statements.
        readable: the document versions that the caller may read.
    """

    def __init__(self, statements: BlockingRunner, readable: Readable) -> None:
        self._statements, self._readable = statements, readable

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
        named, nameless = separate_nameless(nodes)
        rows = self._edge_rows(
            # If the result would exceed the limit, no edges are returned, so any rows may be read.
            statements.SOME_EDGES if whole else statements.EDGES,
            own=list_spellings(own_spellings_of, named) if direction != "in" else [],
            uris=[*files],
            named=list_spellings(spellings_of, named) if direction != "out" else [],
            inside=[*{one.uri for one in nameless}],
            own_inside=[*{one.own for one in nameless}] if direction != "in" else [],
            named_inside=[*{one.own for one in nameless}] if direction != "out" else [],
            limit=limit + 1,
            only=sorted(only),
            without=sorted(without),
        )
        counts: Counter[int] = Counter()
        found: dict[FoundEdge, None] = {}
        for way, *row in rows:
            counts[way] += 1
            if counts[way] <= limit:
                found[_found_edge(*row)] = None
        cut = any(count > limit for count in counts.values())
        return FoundEdges([] if cut and whole else [*found], cut=cut)

    def evidence(self, edges: Sequence[FoundEdge]) -> list[FoundEdge]:
        """See Relations. The edges already have their evidence."""
        return [*edges]

    def evidence_at(self, places: Sequence[EvidencePlace]) -> dict[EvidencePlace, str]:
        """Return the evidence at the positions that the caller may still read.

        Args:
            places: a document, the chunk_set_key of its text, and a position in that text.
        """
        rows = self._rows(
            statements.EVIDENCE,
            documents=[document for document, _, _ in places],
            texts=[text for _, text, _ in places],
            positions=[position for _, _, position in places],
        )
        return {(document, text, position): said for document, text, position, said in rows}

    def stated(self, kind: str, limit: int) -> list[FoundEdge]:
        """See Relations."""
        rows = self._rows(statements.STATED, kind=kind, limit=limit, only=[], without=[])
        return [_found_edge(*row) for _, *row in rows]

    def naming(self, spellings: Sequence[str], kind: str, limit: int) -> list[FoundEdge]:
        """See Relations."""
        if not spellings:
            return []
        given = {"named": [*spellings], "only": [kind], "limit": limit}
        rows = self._edge_rows(statements.EDGES, **given)
        return [_found_edge(*row) for _, *row in rows]

    def named(self, names: Sequence[str]) -> list[FoundSymbol]:
        """See Relations."""
        wanted = frozenset(names)
        named, nameless = separate_nameless(wanted)
        found = (
            self._symbols(statements.NAMED, names=list_spellings(local_names, named))
            if named
            else []
        )
        if nameless:
            found += self.within([*{one.uri for one in nameless}])
        places = {(one.uri, one.local_name, one.line_start): one for one in found}
        return [places[at] for at in sorted(places) if places[at].name in wanted]

    def called(self, shorts: Sequence[str]) -> list[FoundSymbol]:
        """See Relations."""
        return self._symbols(statements.CALLED, names=[*shorts])

    def names_called(
        self, shorts: Collection[str], permits: Permits | None
    ) -> Mapping[str, NamesCalled]:
        """See Relations."""
        rows = self._rows(statements.NAMES_CALLED, names=[*shorts]) if shorts else []
        found: dict[str, dict[str, set[str]]] = {}
        for short, symbol, *of_document in rows:
            placed = FoundDocument(*of_document)
            if permits is None or permits(placed):
                names = found.setdefault(short, {}).setdefault(repository_of(placed.source), set())
                names.add(defined(symbol, placed.uri))
        return dict(found)

    def like(self, parts: Sequence[str], limit: int) -> list[FoundSymbol]:
        """See Relations."""
        return self._symbols(statements.LIKE, parts=[*parts], limit=limit)

    def ending(self, name: str, limit: int) -> list[FoundSymbol]:
        """See Relations."""
        marked, part = (
            name.lower().translate(str.maketrans("", "", marks)) for marks in ("_-", NAME_MARKS)
        )
        return self._symbols(statements.ENDING, parts=[part], marked=marked, limit=limit)

    def files_called(self, name: str, limit: int) -> list[FoundDocument]:
        """See Relations."""
        rows = self._rows(statements.FILES_CALLED, name=name.lower(), limit=limit)
        return [FoundDocument(*row) for row in rows]

    def name_uses(
        self, wanted: Collection[str], names: Collection[str], limit: int
    ) -> list[FoundNameUses]:
        """See Relations."""
        tenant = self._readable.tenant_id
        rows = self._rows(
            statements.NAME_USES,
            numbers=[number_of_name(tenant, name) for name in wanted],
            names=[*dict.fromkeys((*wanted, *names))],
            limit=limit,
        )
        return [
            FoundNameUses(name, places, document_id, uri, repository_of(source), scope, type_)
            for name, places, document_id, uri, source, scope, type_ in rows
        ]

    def within(self, uris: Sequence[str]) -> list[FoundSymbol]:
        """See Relations."""
        return self._symbols(statements.WITHIN, uris=[*uris])

    def documents(self, source_types: Sequence[str]) -> list[FoundDocument]:
        """See Relations."""
        rows = self._rows(statements.DOCUMENTS_OF_TYPE, source_types=[*source_types])
        return [FoundDocument(*row) for row in rows]

    def without_names(self, source_types: Sequence[str]) -> list[FoundDocument]:
        """See Relations."""
        rows = self._rows(statements.DOCUMENTS_WITHOUT_NAMES, source_types=[*source_types])
        return [FoundDocument(*row) for row in rows]

    def at(self, uris: Sequence[str]) -> list[FoundDocument]:
        """See Relations."""
        rows = self._rows(statements.DOCUMENTS_AT, uris=[*uris])
        return [FoundDocument(*row) for row in rows]

    def first_of(self, sources: Sequence[str]) -> list[FoundDocument]:
        """See Relations."""
        rows = self._rows(statements.FIRST_OF_SOURCES, sources=[*sources])
        return [FoundDocument(*row) for row in rows]

    def _edge_rows(self, statement: Statement, **given: Any) -> list[Any]:
        """Return rows of edges at nodes; a list parameter that is not given is empty."""
        return self._rows(statement, **{**{name: [] for name in _WAYS}, **given})

    def _symbols(self, statement: Statement, **values: Any) -> list[FoundSymbol]:
        return [_found_symbol(*row) for row in self._rows(statement, **values)]

    def _rows(self, statement: Statement, **values: Any) -> list[Any]:
        values["tenant"] = self._readable.tenant_id
        values["generation"] = self._readable.generation
        values["principals"] = [*self._readable.principals]
        return self._statements.rows(statement, values)


def list_spellings(spellings: Callable[[str], Iterator[str]], names: Collection[str]) -> list[str]:
    """Return all spellings of these names, without duplicates."""
    return list(dict.fromkeys(one for name in names for one in spellings(name)))


def _found_symbol(symbol: str, role: str, public: bool, *rest: Any) -> FoundSymbol:
    """Return the definition in a row; its columns are nearly in the order of the fields."""
    first, last, content_hash, document_id, uri, source, scope, type_, kinds, short = rest
    return FoundSymbol(
        *(defined(symbol, uri), role, public, first, last, content_hash, document_id, uri),
        *(repository_of(source), scope, type_, kinds or {}, symbol, short),
    )


def _found_edge(kind: str, stated_of: str, target: str, *rest: Any) -> FoundEdge:
    """Return the edge in a row; its columns are in the order of the fields."""
    how, confidence, first, last, evidence, path, document_id, uri, source, scope, position = rest
    repository = repository_of(source)
    return FoundEdge(
        *(kind, qualified(stated_of, uri), qualified(target, uri), how, confidence),
        *(first, last, evidence, path, document_id),
        *(uri if path is None else uri_of(repository, path), repository, scope, position),
    )
