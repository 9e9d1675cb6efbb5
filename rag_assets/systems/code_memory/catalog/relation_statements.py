"""SQL statements on `symbols` and `edges`.

They are compiled once, because each step of a walk runs several.

Postgres keeps no statistics of names and paths, because they would reveal texts. It therefore
assumes thousands of rows per name and would plan to read whole tables. `OFFSET 0` prevents a join
before the rows of each name, and the texts of each row, have been looked up.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlalchemy import (
    ARRAY,
    BindParameter,
    ColumnElement,
    FromClause,
    FunctionElement,
    Integer,
    Select,
    Subquery,
    Text,
    all_,
    and_,
    bindparam,
    cast,
    column,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.types import TypeEngine

from rag_assets.storage.catalog.accounts.access import is_readable
from rag_assets.storage.catalog.database import build_texts_parameter, matches_any, matches_document
from rag_assets.storage.catalog.documents.readable import select_returnable
from rag_assets.storage.catalog.statements import Statement
from rag_assets.storage.catalog.tables import document_index, documents
from rag_assets.systems.code_memory.catalog.tables import (
    document_kinds,
    edges,
    name_uses,
    select_last_part,
    symbols,
)

_TENANT = bindparam("tenant", type_=Text)
_GENERATION = bindparam("generation", type_=Integer)
_PRINCIPALS = build_texts_parameter("principals")
_LIMIT = bindparam("limit", type_=Integer)
_NUMBERS: TypeEngine[list[int]] = ARRAY(Integer)  # type: ignore[assignment]
_POSITIONS = bindparam("positions", type_=_NUMBERS)

_Columns: TypeAlias = tuple[ColumnElement[Any], ...]
_Condition: TypeAlias = ColumnElement[bool]

_SYMBOL_COLUMNS: _Columns = (
    *(symbols.c.symbol, symbols.c.role, symbols.c.public, symbols.c.line_start),
    *(symbols.c.line_end, symbols.c.content_hash),
    *(documents.c.document_id, documents.c.uri, documents.c.source, documents.c.access_scope),
    *(documents.c.source_type, document_kinds.c.kinds, symbols.c.short),
)
_EDGE_COLUMNS: _Columns = (
    *(edges.c.kind, edges.c.stated_of, edges.c.target, edges.c.how, edges.c.confidence),
    *(edges.c.line_start, edges.c.line_end, edges.c.evidence, edges.c.path),
    *(documents.c.document_id, documents.c.uri, documents.c.source),
    *(documents.c.access_scope, edges.c.position),
)
_DOCUMENT_COLUMNS: _Columns = (
    *(documents.c.document_id, documents.c.uri, documents.c.source),
    *(documents.c.access_scope, documents.c.source_type),
)
_OFFSET_ZERO: ColumnElement[int] = literal_column("0")
"""The offset 0, which makes Postgres execute a subquery separately."""


def _unnest_parameter(parameter: str) -> FunctionElement[str]:
    texts: BindParameter[list[str]] = build_texts_parameter(parameter)
    return func.unnest(cast(texts, ARRAY(Text)))


def _select_distinct(parameter: str) -> Subquery:
    return select(_unnest_parameter(parameter).label("value")).distinct().subquery()


def _is_in_parameter(value: ColumnElement[str], parameter: str) -> _Condition:
    return value.in_(select(_unnest_parameter(parameter)))


def _select_versions(*columns: ColumnElement[Any]) -> Select[Any]:
    """Return a query for columns of the valid document versions that the caller may read."""
    versions = select_returnable(_TENANT, _GENERATION, *columns).where(
        is_readable(documents, _PRINCIPALS)
    )
    if document_kinds.c.kinds not in set(columns):
        return versions
    return versions.outerjoin(document_kinds, matches_document(document_kinds.c, documents.c))


def _join_readable(table: FromClause, *columns: ColumnElement[Any]) -> Select[Any]:
    same_text = and_(
        table.c.tenant == document_index.c.tenant,
        table.c.chunk_set_key == document_index.c.chunk_set_key,
    )
    return _select_versions(*columns).join(table, same_text)


def _select_rows_with_values(
    columns: _Columns, value: ColumnElement[str], parameter: str, *conditions: _Condition
) -> Subquery:
    """Return a query for rows with one of several values, joined to the versions of their texts.

    Args:
        columns: the columns to return; the first belongs to the table.
        value: the column that is compared with the list in `parameter`.
    """
    table = columns[0].table
    own, others = _split_by_table(columns, table)
    wanted_values = _select_distinct(parameter)
    has_value = table.c.tenant == _TENANT, value == wanted_values.c.value
    rows = (
        select(*own, table.c.chunk_set_key)
        .where(*has_value, *conditions)
        .offset(_OFFSET_ZERO)
        .lateral()
    )
    of_text = document_index.c.chunk_set_key == rows.c.chunk_set_key
    versions = _select_versions(*others).where(of_text).offset(_OFFSET_ZERO).lateral()
    joined = select(*_choose_columns(columns, rows, versions)).select_from(wanted_values)
    return joined.join(rows, true()).join(versions, true()).subquery()


def _select_rows_of_documents(
    columns: _Columns, table: FromClause, parameter: str, *conditions: _Condition
) -> Subquery:
    """Return a query for rows of a table that belong to documents with the URIs in `parameter`."""
    own, others = _split_by_table(columns, table)
    wanted_uris = _select_distinct(parameter)
    at = _select_versions(*others, document_index.c.chunk_set_key).where(
        *_build_uri_conditions(wanted_uris.c.value)
    )
    versions = at.offset(_OFFSET_ZERO).lateral()
    of_text = table.c.tenant == _TENANT, table.c.chunk_set_key == versions.c.chunk_set_key
    rows = select(*own).where(*of_text, *conditions).offset(_OFFSET_ZERO).lateral()
    joined = select(*_choose_columns(columns, rows, versions)).select_from(wanted_uris)
    return joined.join(versions, true()).join(rows, true()).subquery()


def _build_uri_conditions(uri: ColumnElement[str]) -> tuple[_Condition, ...]:
    """Return the conditions for a URI; an index can only contain the hash of a long URI."""
    return func.md5(documents.c.uri) == func.md5(uri), documents.c.uri == uri


def _split_by_table(columns: _Columns, table: FromClause) -> tuple[_Columns, _Columns]:
    own = tuple(item for item in columns if item.table is table)
    return own, tuple(item for item in columns if item.table is not table)


def _choose_columns(columns: _Columns, *rows: FromClause) -> _Columns:
    return tuple(next(row.c[c.name] for row in rows if c.name in row.c) for c in columns)


_PLACED_SYMBOLS: _Columns = (*_SYMBOL_COLUMNS, symbols.c.position)


def _select_symbols(symbol_rows: Subquery) -> Select[Any]:
    rows = select(*_choose_columns(_SYMBOL_COLUMNS, symbol_rows))
    return rows.order_by(symbol_rows.c.uri, symbol_rows.c.position)


def _select_once(symbol_rows: Subquery) -> Select[Any]:
    """Return a query for definitions without duplicates: the table has a row per short name."""
    identity = symbol_rows.c.uri, symbol_rows.c.symbol, symbol_rows.c.line_start
    rows = select(*_choose_columns(_PLACED_SYMBOLS, symbol_rows)).ext(distinct_on(*identity))
    return rows.order_by(*identity, symbol_rows.c.position)


def _select_by_name() -> Select[Any]:
    by_symbol = _select_rows_with_values(_PLACED_SYMBOLS, symbols.c.symbol, "names")
    rows = _select_once(by_symbol).subquery()
    by_name = rows.c.uri, rows.c.symbol, rows.c.line_start
    return select(*_choose_columns(_SYMBOL_COLUMNS, rows)).order_by(*by_name)


def _select_names() -> Select[Any]:
    columns = symbols.c.short, symbols.c.symbol, *_DOCUMENT_COLUMNS
    return select(*_select_rows_with_values(columns, symbols.c.short, "names").c).distinct()


def _select_similar() -> Select[Any]:
    part = _unnest_parameter("parts").column_valued("part")
    has_one = exists(select(part).where(func.strpos(symbols.c.short, part) > 0))
    return _select_symbols(
        _join_readable(symbols, *_PLACED_SYMBOLS).where(has_one).subquery()
    ).limit(_LIMIT)


def _select_by_last_part() -> Select[Any]:
    matches = _select_rows_with_values(_PLACED_SYMBOLS, select_last_part(symbols.c.short), "parts")
    has_same_marks = select_last_part(matches.c.short, without="_-") == bindparam(
        "marked", type_=Text
    )
    rows = select(*_choose_columns(_SYMBOL_COLUMNS, matches))
    return rows.order_by(has_same_marks.desc(), matches.c.uri, matches.c.position).limit(_LIMIT)


def _select_by_file_name() -> Select[Any]:
    name = bindparam("name", type_=Text)
    uri = func.lower(documents.c.uri)
    is_called = func.right(uri, func.length(name) + 1) == literal("/") + name
    versions = _select_versions(*_DOCUMENT_COLUMNS).where(is_called)
    return versions.order_by(func.length(documents.c.uri), documents.c.uri).limit(_LIMIT)


def _select_edges(*ways: Subquery, keeps_first: bool = True) -> Select[Any]:
    """Return a query that combines several queries for edges; no single index serves them all.

    Args:
        ways: the subqueries; each is limited separately.
        keeps_first: whether the limit keeps the first edges, so that all must be read.
    """
    queries = [select(literal(number).label("way"), *way.c) for number, way in enumerate(ways)]
    if keeps_first:
        queries = [
            query.order_by(query.selected_columns.uri, query.selected_columns.position)
            for query in queries
        ]
    edge_rows = union_all(*(query.limit(_LIMIT) for query in queries)).subquery()
    return select(edge_rows).order_by(edge_rows.c.way, edge_rows.c.uri, edge_rows.c.position)


def _select_edges_at_nodes() -> tuple[Subquery, ...]:
    return (
        _select_rows_with_values(_EDGE_COLUMNS, edges.c.stated_of, "own", _has_requested_kind()),
        _select_matching_edges("uris", edges.c.stated_of == ""),
        _select_rows_with_values(_EDGE_COLUMNS, edges.c.target, "named", _has_requested_kind()),
        _select_matching_edges("inside", _is_in_parameter(edges.c.stated_of, "own_inside")),
        _select_matching_edges("inside", _is_in_parameter(edges.c.target, "named_inside")),
    )


def _select_matching_edges(parameter: str, condition: _Condition) -> Subquery:
    return _select_rows_of_documents(
        _EDGE_COLUMNS, edges, parameter, condition, _has_requested_kind()
    )


def _has_requested_kind() -> _Condition:
    only = build_texts_parameter("only")
    return and_(
        edges.c.kind != all_(build_texts_parameter("without")),
        or_(func.cardinality(cast(only, ARRAY(Text))) == 0, matches_any(edges.c.kind, only)),
    )


def _select_by_type() -> Select[Any]:
    condition = _is_in_parameter(documents.c.source_type, "source_types")
    return _select_versions(*_DOCUMENT_COLUMNS).where(condition).order_by(documents.c.uri)


def _select_without_names() -> Select[Any]:
    of_text = (
        name_uses.c.tenant == document_index.c.tenant,
        name_uses.c.chunk_set_key == document_index.c.chunk_set_key,
    )
    has_names = select(name_uses.c.tenant).where(*of_text).exists()
    return _select_by_type().where(~has_names)


def _select_first_documents() -> Select[Any]:
    sources = _select_distinct("sources")
    of_source = _select_versions(*_DOCUMENT_COLUMNS).where(documents.c.source == sources.c.value)
    first = of_source.limit(1).lateral()
    return select(*first.c).select_from(sources).join(first, true())


def _select_documents_by_uri() -> Select[Any]:
    wanted_uris = _select_distinct("uris")
    at = (
        _select_versions(*_DOCUMENT_COLUMNS)
        .where(*_build_uri_conditions(wanted_uris.c.value))
        .offset(_OFFSET_ZERO)
        .lateral()
    )
    return select(*at.c).select_from(wanted_uris).join(at, true()).order_by(at.c.uri)


def _select_evidence() -> Select[Any]:
    parameters = build_texts_parameter("documents"), build_texts_parameter("texts")
    arrays = (cast(parameter, ARRAY(Text)) for parameter in parameters)
    wanted = (
        func.unnest(*arrays, cast(_POSITIONS, ARRAY(Integer)))
        .table_valued(column("document", Text), column("text", Text), column("at", Integer))
        .render_derived("wanted")
    )
    same_edge = and_(
        wanted.c.document == document_index.c.document_id,
        wanted.c.text == edges.c.chunk_set_key,
        wanted.c.at == edges.c.position,
    )
    return _join_readable(edges, *wanted.c, edges.c.evidence).join(wanted, same_edge)


def _select_name_uses() -> Select[Any]:
    condition = name_uses.c.numbers.op("&&")(
        cast(bindparam("numbers", type_=_NUMBERS), ARRAY(Integer))
    )
    # The numbers are those of one tenant's names: any other condition would use another index.
    rows = select(name_uses).where(condition).offset(_OFFSET_ZERO).subquery()
    of_text = document_index.c.chunk_set_key == rows.c.chunk_set_key
    versions = _select_versions(*_DOCUMENT_COLUMNS).where(of_text).offset(_OFFSET_ZERO).lateral()
    wanted_names = _select_distinct("names")
    name, line = wanted_names.c.value, literal("\n")
    rest = func.split_part(line + rows.c.names, line + name + "|", 2)
    places = func.split_part(rest, line, 1).label("places")
    uses = (
        select(name.label("name"), places, *versions.c)
        .select_from(rows)
        .join(versions, true())
        .join(wanted_names, true())
        .where(rows.c.tenant == _TENANT)
        .subquery()
    )
    defining = func.left(uses.c.places, 1) == "d"
    return (
        select(*uses.c)
        .where(uses.c.places != "")
        .order_by(defining.desc(), uses.c.uri, uses.c.name)
        .limit(_LIMIT)
    )


DEFINITIONS_BY_NAME = Statement(_select_by_name())
"""Definitions by `names`, in the form in which their own texts state them."""

DEFINITIONS_BY_SHORT_NAME = Statement(
    _select_symbols(_select_rows_with_values(_PLACED_SYMBOLS, symbols.c.short, "names"))
)

NAMES_BY_SHORT_NAME = Statement(_select_names())
"""The names of definitions by the short names in `names`, with their documents."""

SIMILAR_DEFINITIONS = Statement(_select_similar())
"""Some definitions with names that contain one of the texts in `parts`."""

DEFINITIONS_BY_LAST_PART = Statement(_select_by_last_part())
"""Some definitions whose last part is in `parts`, ignoring marks; those in `marked` come first."""

NAME_USES = Statement(_select_name_uses())
"""The places of `names` in documents with a name that has one of `numbers`; definitions first."""

DOCUMENTS_BY_FILE_NAME = Statement(_select_by_file_name())
"""Some documents with a URI that ends with the lower-case file name `name`."""

DEFINITIONS_OF_DOCUMENTS = Statement(
    _select_symbols(
        _select_once(_select_rows_of_documents(_PLACED_SYMBOLS, symbols, "uris")).subquery()
    )
)

EDGES = Statement(_select_edges(*_select_edges_at_nodes()))
"""Edges that start at `own` names, that end at `named` ones, or that only files at `uris` state.

Names that are unique only within their document are looked up only in the documents at `inside`.
The first column is the number of the subquery that found the edge.
"""

SOME_EDGES = Statement(_select_edges(*_select_edges_at_nodes(), keeps_first=False))
"""The same as EDGES, but any `limit` edges if a way finds more."""

EVIDENCE = Statement(_select_evidence())
"""The evidence of edges, by `documents`, their `texts`, and `positions` in the texts."""

_HAS_KIND = edges.c.kind == bindparam("kind", type_=Text)
EDGES_OF_KIND = Statement(
    _select_edges(_join_readable(edges, *_EDGE_COLUMNS).where(_HAS_KIND).subquery())
)

FIRST_DOCUMENTS = Statement(_select_first_documents())
"""One document of each of the `sources` that has documents."""

DOCUMENTS_OF_TYPE = Statement(_select_by_type())
DOCUMENTS_WITHOUT_NAMES = Statement(_select_without_names())
"""The documents of some source types that were not yet scanned for names."""
DOCUMENTS_BY_URI = Statement(_select_documents_by_uri())
