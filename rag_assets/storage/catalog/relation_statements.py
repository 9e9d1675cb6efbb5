"""Statements on `symbols` and `edges`, compiled once: a walk runs several at each of its steps.

Rows are joined with the names that are asked for: Postgres looks through an array that is a
parameter of a prepared statement from its beginning for each row.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ARRAY,
    BindParameter,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Text,
    all_,
    and_,
    bindparam,
    cast,
    column,
    exists,
    func,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.types import TypeEngine

from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.code_tables import document_kinds, edges, symbols
from rag_assets.storage.catalog.database import among, texts_parameter
from rag_assets.storage.catalog.index_rows import returnable
from rag_assets.storage.catalog.statements import Statement
from rag_assets.storage.catalog.tables import document_index, documents

_TENANT = bindparam("tenant", type_=Text)
_GENERATION = bindparam("generation", type_=Integer)
_PRINCIPALS = texts_parameter("principals")
_LIMIT = bindparam("limit", type_=Integer)
_NUMBERS: TypeEngine[list[int]] = ARRAY(Integer)  # type: ignore[assignment]
_POSITIONS = bindparam("positions", type_=_NUMBERS)

_SYMBOL_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(symbols.c.symbol, symbols.c.role, symbols.c.public, symbols.c.line_start),
    *(symbols.c.line_end, symbols.c.content_hash),
    *(documents.c.document_id, documents.c.uri, documents.c.source, documents.c.access_scope),
    *(documents.c.source_type, document_kinds.c.kinds, symbols.c.short),
)
_EDGE_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(edges.c.kind, edges.c.stated_of, edges.c.target, edges.c.how, edges.c.confidence),
    *(edges.c.line_start, edges.c.line_end, edges.c.evidence, edges.c.path),
    *(documents.c.document_id, documents.c.uri, documents.c.source),
    *(documents.c.access_scope, edges.c.position),
)


def _of_readable(table: FromClause, *columns: ColumnElement[Any]) -> Select[Any]:
    same_text = and_(
        table.c.tenant == document_index.c.tenant,
        table.c.chunk_set_key == document_index.c.chunk_set_key,
    )
    return (
        returnable(_TENANT, _GENERATION, *columns)
        .join(table, same_text)
        .where(is_readable(documents, _PRINCIPALS))
    )


def _one_of(value: ColumnElement[str], parameter: str) -> ColumnElement[bool]:
    given: BindParameter[list[str]] = texts_parameter(parameter)
    return value.in_(select(func.unnest(cast(given, ARRAY(Text)))))


def _symbols(wanted: ColumnElement[bool]) -> Select[Any]:
    known = and_(
        document_kinds.c.tenant == documents.c.tenant,
        document_kinds.c.document_id == documents.c.document_id,
    )
    return (
        _of_readable(symbols, *_SYMBOL_COLUMNS)
        .outerjoin(document_kinds, known)
        .where(wanted)
        .order_by(documents.c.uri, symbols.c.position)
    )


def _edges(*ways: ColumnElement[bool]) -> Select[Any]:
    """The edges that are found in one of some ways: no index serves several of them at once."""
    only = texts_parameter("only")
    rest = and_(
        edges.c.kind != all_(texts_parameter("without")),
        or_(func.cardinality(cast(only, ARRAY(Text))) == 0, among(edges.c.kind, only)),
    )
    found = union_all(
        *(
            _of_readable(
                edges,
                literal(number).label("way"),
                *_EDGE_COLUMNS,
            )
            .where(way, rest)
            .order_by(documents.c.uri, edges.c.position)
            .limit(_LIMIT)
            for number, way in enumerate(ways)
        )
    ).subquery()
    return select(found).order_by(found.c.way, found.c.uri, found.c.position)


def _documents(wanted: ColumnElement[bool]) -> Select[Any]:
    return (
        returnable(
            _TENANT,
            _GENERATION,
            *(documents.c.document_id, documents.c.uri, documents.c.source),
            *(documents.c.access_scope, documents.c.source_type),
        )
        .where(is_readable(documents, _PRINCIPALS), wanted)
        .order_by(documents.c.uri)
    )


def _named() -> Select[Any]:
    """Definitions by their names, each once: it has a row for each name that people call it by."""
    rows = _symbols(_one_of(symbols.c.symbol, "names")).order_by(None)
    once = distinct_on(documents.c.uri, symbols.c.symbol, symbols.c.line_start)
    order = documents.c.uri, symbols.c.symbol, symbols.c.line_start, symbols.c.position
    return rows.ext(once).order_by(*order)


def _evidence() -> Select[Any]:
    given = texts_parameter("documents"), texts_parameter("texts")
    arrays = (*(cast(one, ARRAY(Text)) for one in given), cast(_POSITIONS, ARRAY(Integer)))
    wanted = (
        func.unnest(*arrays)
        .table_valued(column("document", Text), column("text", Text), column("at", Integer))
        .render_derived("wanted")
    )
    same = and_(
        wanted.c.document == document_index.c.document_id,
        wanted.c.text == edges.c.chunk_set_key,
        wanted.c.at == edges.c.position,
    )
    return _of_readable(edges, *wanted.c, edges.c.evidence).join(wanted, same)


def _holds_a_part() -> ColumnElement[bool]:
    part = func.unnest(cast(texts_parameter("parts"), ARRAY(Text))).column_valued("part")
    return exists(select(part).where(func.strpos(symbols.c.short, part) > 0))


NAMED = Statement.of(_named())
"""Definitions by `names`, as their own texts give them."""

CALLED = Statement.of(_symbols(_one_of(symbols.c.short, "names")))
"""Definitions by `names` that people call them by."""

LIKE = Statement.of(_symbols(_holds_a_part()).limit(_LIMIT))
"""Some definitions whose names hold one of `parts`."""

WITHIN = Statement.of(_symbols(_one_of(documents.c.uri, "uris")))
"""The definitions in documents."""

EDGES = Statement.of(
    _edges(
        _one_of(edges.c.stated_of, "own"),
        and_(edges.c.stated_of == "", _one_of(documents.c.uri, "uris")),
        _one_of(edges.c.target, "named"),
        and_(_one_of(documents.c.uri, "inside"), _one_of(edges.c.stated_of, "own_inside")),
        and_(_one_of(documents.c.uri, "inside"), _one_of(edges.c.target, "named_inside")),
    )
)
"""What is stated of `own` names; of files, outside of their definitions; or names `named`.

Some names are told apart by their document: those are looked for `inside` documents alone.

Which of these ways an edge was found in is its first column."""

EVIDENCE = Statement.of(_evidence())
"""What edges are stated by, by `documents`, their `texts`, and `positions` in those."""

STATED = Statement.of(_edges(edges.c.kind == bindparam("kind", type_=Text)))
"""The edges of a kind."""

DOCUMENTS_OF_TYPE = Statement.of(_documents(_one_of(documents.c.source_type, "source_types")))
DOCUMENTS_AT = Statement.of(_documents(_one_of(documents.c.uri, "uris")))
