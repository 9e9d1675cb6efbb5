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
    exists,
    func,
    literal,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import distinct_on

from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.code_tables import document_kinds, edges, symbols
from rag_assets.storage.catalog.database import texts_parameter
from rag_assets.storage.catalog.index_rows import returnable
from rag_assets.storage.catalog.statements import Statement
from rag_assets.storage.catalog.tables import document_index, documents

_TENANT = bindparam("tenant", type_=Text)
_GENERATION = bindparam("generation", type_=Integer)
_PRINCIPALS = texts_parameter("principals")
_LIMIT = bindparam("limit", type_=Integer)

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
    documents.c.access_scope,
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


def _one_of(column: ColumnElement[str], parameter: str) -> ColumnElement[bool]:
    given: BindParameter[list[str]] = texts_parameter(parameter)
    return column.in_(select(func.unnest(cast(given, ARRAY(Text)))))


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
    rest = edges.c.kind != all_(texts_parameter("without"))
    found = union_all(
        *(
            _of_readable(
                edges,
                literal(number).label("way"),
                *(edges.c.position.label("position"), *_EDGE_COLUMNS),
            )
            .where(way, rest)
            .order_by(documents.c.uri, edges.c.position)
            .limit(_LIMIT)
            for number, way in enumerate(ways)
        )
    ).subquery()
    columns = found.c
    kept = [column for column in columns if column.name not in {"way", "position"}]
    return select(*kept).order_by(columns.way, columns.uri, columns.position)


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
    )
)
"""What is stated of `own` names; of files, outside of their definitions; or names `named`."""

STATED = Statement.of(_edges(edges.c.kind == bindparam("kind", type_=Text)))
"""The edges of a kind."""

DOCUMENTS_OF_TYPE = Statement.of(_documents(_one_of(documents.c.source_type, "source_types")))
DOCUMENTS_AT = Statement.of(_documents(_one_of(documents.c.uri, "uris")))
