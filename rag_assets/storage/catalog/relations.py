"""Symbols and edges of the versions that searches return, for callers who may read them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    FromClause,
    Row,
    Select,
    Text,
    and_,
    cast,
    func,
    or_,
    select,
)

from rag_assets.code.naming import (
    OWN,
    defined_name,
    local_names,
    named_by,
    own_spellings,
    spellings,
    style_of,
)
from rag_assets.code.relations import FILE, short_name
from rag_assets.ingest.sources.derived import repository_of
from rag_assets.ingest.sources.model import path_of, uri_of
from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.code_tables import document_kinds, edges, symbols
from rag_assets.storage.catalog.database import Database, among
from rag_assets.storage.catalog.index_rows import returnable
from rag_assets.storage.catalog.tables import document_index, documents

Direction: TypeAlias = Literal["out", "in", "both"]


@dataclass(frozen=True, slots=True)
class Readable:
    """The versions that a caller may read.

    Attributes:
        generation: that answers.
        principals: of the caller.
    """

    tenant_id: str
    generation: int
    principals: Collection[str]


@dataclass(frozen=True, slots=True)
class FoundSymbol:
    """A definition in a document that the caller may read.

    Attributes:
        name: qualified.
        role, public, line_start, line_end, content_hash: see rag_assets.code.relations.Symbol.
        document_id, uri, access_scope: of the document.
        source: its repository.
        document_type: the document's source type.
        kinds: what the definitions of the document are.
        local_name: as its own text gives it.
        short: the key that it was found by, of those that people call it by.
    """

    name: str
    role: str
    public: bool
    line_start: int
    line_end: int
    content_hash: str | None
    document_id: str
    uri: str
    source: str
    access_scope: str
    document_type: str
    kinds: Mapping[str, str] = field(hash=False)
    local_name: str = ""
    short: str = field(default="", compare=False)


_SYMBOL_FIELDS = tuple(each.name for each in fields(FoundSymbol))[:-2]


@dataclass(frozen=True, slots=True)
class FoundEdge:
    """An edge with its evidence, in a document that the caller may read.

    Attributes:
        kind, stated_of, target, how, confidence, line_start, line_end, evidence: see
            rag_assets.code.relations.Edge.
        path: of the file that has the evidence, where it is not the document's.
        document_id, uri, source, access_scope: as of a symbol, but for uri, which is that of the
            file that has the evidence.
    """

    kind: str
    stated_of: str
    target: str
    how: str
    confidence: float
    line_start: int
    line_end: int
    evidence: str
    path: str | None
    document_id: str
    uri: str
    source: str
    access_scope: str


_EDGE_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(edges.c.kind, edges.c.stated_of, edges.c.target, edges.c.how, edges.c.confidence),
    *(edges.c.line_start, edges.c.line_end, edges.c.evidence, edges.c.path),
    *(documents.c.document_id, documents.c.uri, documents.c.source),
    documents.c.access_scope,
)
_NAMELESS = "class@"
_RELATIVE = (_NAMELESS, FILE, OWN, ".")
"""Beginnings of names whose meaning depends on where the file lies."""


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document that the caller may read.

    Attributes:
        source: its repository.
        source_type: what its place tells.
    """

    document_id: str
    uri: str
    source: str
    access_scope: str
    source_type: str


class RelationQuery:
    """Queries on `symbols` and `edges`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def edges(
        self,
        readable: Readable,
        nodes: Sequence[str],
        direction: Direction,
        limit: int,
        without: Collection[str] = (),
    ) -> list[FoundEdge]:
        """The edges that begin or end at nodes.

        Args:
            readable: the versions that count.
            nodes: names as edges have them.
            direction: out: that are stated of a node; in: that name one.
            limit: the most to return.
            without: kinds that are left out.
        """
        found: dict[FoundEdge, None] = {}
        # One end each: no index serves either of two columns.
        if direction != "in":
            wanted = _one_of(edges.c.stated_of, _all(_own_spellings, nodes))
            found |= dict.fromkeys(self._edges(readable, wanted, limit, without))
        if direction != "out":
            wanted = _one_of(edges.c.target, _all(_spellings, nodes))
            found |= dict.fromkeys(self._edges(readable, wanted, limit, without))
        return list(found)[:limit]

    def of_files(
        self, readable: Readable, uris: Sequence[str], limit: int, without: Collection[str] = ()
    ) -> list[FoundEdge]:
        """The edges that documents state outside of their definitions; arguments as of edges."""
        own = and_(edges.c.stated_of == "", among(documents.c.uri, uris))
        return self._edges(readable, own, limit, without)

    def stated(self, readable: Readable, kind: str, limit: int) -> list[FoundEdge]:
        """The edges of a kind, whatever they name."""
        return self._edges(readable, edges.c.kind == kind, limit)

    def _edges(
        self,
        readable: Readable,
        wanted: ColumnElement[bool],
        limit: int,
        without: Collection[str] = (),
    ) -> list[FoundEdge]:
        query = (
            _of_readable(readable, edges, *_EDGE_COLUMNS)
            .where(wanted)
            .order_by(documents.c.uri, edges.c.position)
            .limit(limit)
        )
        if without:
            query = query.where(edges.c.kind.not_in(sorted(without)))
        with self._database.begin() as connection:
            return [_found_edge(*row) for row in connection.execute(query)]

    def named(self, readable: Readable, names: Sequence[str]) -> list[FoundSymbol]:
        """The definitions with these qualified names."""
        wanted = frozenset(names)
        found = self._symbols(readable, _one_of(symbols.c.symbol, _all(_local_names, wanted)))
        return [one for one in found if one.name in wanted]

    def called(self, readable: Readable, shorts: Sequence[str]) -> list[FoundSymbol]:
        """The definitions that people call by these names; see short_name."""
        return self._symbols(readable, _one_of(symbols.c.short, shorts))

    def like(self, readable: Readable, parts: Sequence[str], limit: int) -> list[FoundSymbol]:
        """Some definitions whose names, as people call them, hold one of these parts."""
        found = or_(*(symbols.c.short.contains(part, autoescape=True) for part in parts))
        return self._symbols(readable, found, limit) if parts else []

    def within(self, readable: Readable, uris: Sequence[str]) -> list[FoundSymbol]:
        """The definitions in documents, in the order of the text."""
        return self._symbols(readable, among(documents.c.uri, uris))

    def documents(self, readable: Readable, source_types: Sequence[str]) -> list[FoundDocument]:
        """The documents of these types, by uri."""
        return self._documents(readable, among(documents.c.source_type, source_types))

    def at(self, readable: Readable, uris: Sequence[str]) -> list[FoundDocument]:
        """The documents with these uris."""
        return self._documents(readable, among(documents.c.uri, uris))

    def _documents(self, readable: Readable, wanted: ColumnElement[bool]) -> list[FoundDocument]:
        query = (
            returnable(
                readable.tenant_id,
                readable.generation,
                *(documents.c.document_id, documents.c.uri, documents.c.source),
                *(documents.c.access_scope, documents.c.source_type),
            )
            .where(is_readable(documents, [*readable.principals]))
            .where(wanted)
            .order_by(documents.c.uri)
        )
        with self._database.begin() as connection:
            return [FoundDocument(*row) for row in connection.execute(query)]

    def _symbols(
        self, readable: Readable, wanted: ColumnElement[bool], limit: int | None = None
    ) -> list[FoundSymbol]:
        known = and_(
            document_kinds.c.tenant == documents.c.tenant,
            document_kinds.c.document_id == documents.c.document_id,
        )
        query = (
            _of_readable(
                readable,
                symbols,
                *(symbols.c.symbol, symbols.c.role, symbols.c.public, symbols.c.line_start),
                *(symbols.c.line_end, symbols.c.content_hash),
                *(documents.c.document_id, documents.c.uri),
                *(documents.c.source, documents.c.access_scope, documents.c.source_type),
                *(document_kinds.c.kinds, symbols.c.short),
            )
            .outerjoin(document_kinds, known)
            .where(wanted)
            .order_by(documents.c.uri, symbols.c.position)
            .limit(limit)
        )
        with self._database.begin() as connection:
            return [_found(row) for row in connection.execute(query)]


def _one_of(column: ColumnElement[str], values: Collection[str]) -> ColumnElement[bool]:
    """The condition that a column has one of many values.

    Rows are joined with the values: Postgres looks through an array that is a parameter of a
    prepared statement from its beginning for each row.
    """
    given = cast(list(values), ARRAY(Text))
    return column.in_(select(func.unnest(given)))


def _of_readable(
    readable: Readable, table: FromClause, *columns: ColumnElement[Any]
) -> Select[Any]:
    same_text = and_(
        table.c.tenant == document_index.c.tenant,
        table.c.chunk_set_key == document_index.c.chunk_set_key,
    )
    return (
        returnable(readable.tenant_id, readable.generation, *columns)
        .join(table, same_text)
        .where(is_readable(documents, [*readable.principals]))
    )


def _found(row: Row[Any]) -> FoundSymbol:
    values = dict(zip(_SYMBOL_FIELDS, row, strict=False))
    name = _defined(row.symbol, row.uri)
    source = repository_of(row.source)
    return FoundSymbol(
        **{**values, "name": name, "source": source, "kinds": row.kinds or {}},
        local_name=row.symbol,
        short=row.short,
    )


def _found_edge(kind: str, stated_of: str, target: str, *rest: Any) -> FoundEdge:
    """The edge of a row, whose columns are in the order of its fields."""
    how, confidence, first, last, evidence, path, document_id, uri, source, access_scope = rest
    repository = repository_of(source)
    return FoundEdge(
        kind,
        _qualified(stated_of, uri),
        _qualified(target, uri),
        how=how,
        confidence=confidence,
        line_start=first,
        line_end=last,
        evidence=evidence,
        path=path,
        document_id=document_id,
        uri=uri if path is None else uri_of(repository, path),
        source=repository,
        access_scope=access_scope,
    )


def _all(spelled: Callable[[str], Iterator[str]], names: Collection[str]) -> list[str]:
    return list(dict.fromkeys(one for name in names for one in spelled(name)))


def _qualified(name: str, uri: str) -> str:
    """What a name in a document means in its repository."""
    if not name.startswith(_RELATIVE):
        return name  # Nearly all are: nothing of the uri need be read.
    if name.startswith(_NAMELESS):
        return f"{uri}#{name}"  # A class without a name is called after its line.
    if name.startswith(FILE):
        repository = repository_of(unquote(uri.partition("/")[0]))
        return FILE + uri_of(repository, name.removeprefix(FILE))
    return named_by(name, path_of(uri))


def _defined(name: str, uri: str) -> str:
    """The name in its repository of what a document defines."""
    if name.startswith(_NAMELESS):
        return f"{uri}#{name}"
    return name if style_of(uri) == "none" else defined_name(name, path_of(uri))


def _spellings(name: str) -> Iterator[str]:
    """The names by which documents may speak of a node."""
    if name.startswith(FILE):
        yield FILE + path_of(name.removeprefix(FILE))
    elif _is_nameless(name):
        yield name.rpartition("#")[2]
    else:
        yield from spellings(name, short_name(name))


def _own_spellings(name: str) -> Iterator[str]:
    """The names under which documents state something of a node."""
    if name.startswith(FILE):
        yield FILE + path_of(name.removeprefix(FILE))
    else:
        yield from own_spellings(name) if not _is_nameless(name) else _local_names(name)


def _local_names(name: str) -> Iterator[str]:
    yield from (name.rpartition("#")[2],) if _is_nameless(name) else local_names(name)


def _is_nameless(name: str) -> bool:
    uri, separator, own = name.rpartition("#")
    return bool(uri and separator) and own.startswith(_NAMELESS)
