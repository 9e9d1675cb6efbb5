"""Rows of symbols, edges and names of texts: recorded, counted, and compared with their texts.

Triggers count changes of everything that determines relations: versions, documents, kinds, rows.
Two states of a tenant's relations are equal only if no relation has changed.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Integer,
    Numeric,
    Select,
    Table,
    Text,
    bindparam,
    cast,
    delete,
    exists,
    func,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.common.hashing import HashRange
from rag_assets.storage.catalog.accounts.access import select_readable_scopes
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    build_texts_parameter,
    matches_any,
)
from rag_assets.storage.catalog.documents.status import is_of_generation, is_same_document
from rag_assets.storage.catalog.statements import Statement
from rag_assets.storage.catalog.tables import document_index, documents
from rag_assets.systems.code_memory.catalog.tables import (
    edges,
    name_uses,
    relation_change_totals,
    relation_changes,
    symbols,
)
from rag_assets.systems.code_memory.relations.relations import Relations
from rag_assets.systems.code_memory.symbols.model import list_names
from rag_assets.systems.code_memory.symbols.names import (
    CONFIG,
    ENV,
    FILE,
    HANDS_ON,
    PACKAGE,
    TABLE,
    get_short_name,
)

_BATCH_ROWS = 2_000


def record_relations(
    connection: Connection, ref: TenantRef, relations: Mapping[str, Relations]
) -> None:
    """Record the definitions and edges of texts; texts that already have rows keep them.

    Args:
        connection: the connection of the transaction that makes the versions of these texts valid.
        relations: the relations, by chunk_set_key.
    """
    for table, rows_of in _ROW_ITERATORS.items():
        statement = upsert(table).on_conflict_do_nothing()
        for batch in batched(rows_of(ref, relations), _BATCH_ROWS):
            connection.execute(statement, batch)


_Row: TypeAlias = dict[str, Any]
_COPIED_FIELDS: Final = ("short", "role", "public", "content_hash", "line_start", "line_end")


def _iter_rows_of_symbols(ref: TenantRef, relations: Mapping[str, Relations]) -> Iterator[_Row]:
    for key, relation in relations.items():
        for position, symbol in enumerate(relation.symbols):
            row = {name: getattr(symbol, name) for name in _COPIED_FIELDS}
            row |= {"tenant": ref.id, "chunk_set_key": key, "position": position}
            yield {**row, "symbol": symbol.name}


def _iter_rows_of_edges(ref: TenantRef, relations: Mapping[str, Relations]) -> Iterator[_Row]:
    for key, relation in relations.items():
        for position, edge in enumerate(relation.edges):
            row = asdict(edge)
            row["stated_of"] = row.pop("source")
            yield {"tenant": ref.id, "chunk_set_key": key, "position": position, **row}


def _iter_rows_of_names(ref: TenantRef, relations: Mapping[str, Relations]) -> Iterator[_Row]:
    """Yield a row for each text, even without names: the row shows that the text was scanned."""
    for key, relation in relations.items():
        numbers = sorted({compute_name_number(ref.id, name) for name in list_names(relation.names)})
        yield {"tenant": ref.id, "chunk_set_key": key, "numbers": numbers, "names": relation.names}


_ROW_ITERATORS: Final = {
    symbols: _iter_rows_of_symbols,
    edges: _iter_rows_of_edges,
    name_uses: _iter_rows_of_names,
}
"""The function that yields the rows of texts, by the table of these rows."""


def compute_name_number(tenant_id: str, name: str) -> int:
    """Return the number under which the index lists the texts that contain a name.

    Several names may have the same number, so the caller must also compare the name.
    """
    number = zlib.crc32(f"{tenant_id}\0{name}".encode())
    return number - (1 << 32) if number >> 31 else number


@dataclass(frozen=True, slots=True)
class RelationState:
    """A state of a tenant's relations, as sums of random numbers that each change adds.

    The sum `rows` counts only changes in which existing rows of a text were recorded again.
    """

    changes: str
    rows: str


_TENANT = bindparam("tenant", type_=Text)


def _sum_changes(total: ColumnElement[Any], *conditions: ColumnElement[bool]) -> ColumnElement[Any]:
    """Return `total`, the sum of former changes, plus the random numbers of later changes."""
    former = select(total).where(relation_change_totals.c.tenant == _TENANT).scalar_subquery()
    since = (
        select(func.sum(relation_changes.c.nonce))
        .where(relation_changes.c.tenant == _TENANT, *conditions)
        .correlate_except(relation_changes)
        .scalar_subquery()
    )
    none = literal(0, Numeric)
    return cast(func.coalesce(former, none) + func.coalesce(since, none), Text)


_STATE_COLUMNS = (
    _sum_changes(relation_change_totals.c.nonce).label("changes"),
    _sum_changes(relation_change_totals.c.rows_nonce, relation_changes.c.of_rows).label(
        "row_changes"
    ),
)


@dataclass(frozen=True, slots=True)
class ReadableState:
    """The state of a tenant's relations, and the scopes that a caller may read at that moment."""

    state: RelationState
    scopes: frozenset[str]


STATE = select(*_STATE_COLUMNS)
"""SQL query that returns only the state."""

_SCOPES = select_readable_scopes(
    _TENANT, build_texts_parameter("principals"), literal(None, Integer)
)
READABLE_STATE = Statement(select(*_STATE_COLUMNS, _SCOPES.scalar_subquery()))
"""SQL query that returns the state, and the scopes that principals may read."""


_RESOLVED_PREFIXES = (TABLE, CONFIG, ENV, PACKAGE, FILE)
_COUNT_BATCH = 5_000
_DRIFT_BATCH = 1_000
_TEXT_COLUMNS = frozenset({"tenant", "chunk_set_key"})

RecordedRows: TypeAlias = set[tuple[Any, ...]]
"""Rows of one text, in no particular order."""


class RelationRowTable(CatalogQueries):
    """Queries that count and replace rows, and compare rows with their texts."""

    def count_symbols(self, tenant_id: str, generation: int) -> int:
        """Return the number of definitions in the distinct texts of a build."""
        texts = _select_texts(tenant_id, generation)
        conditions = symbols.c.tenant == tenant_id, symbols.c.chunk_set_key.in_(texts)
        query = select(func.count()).select_from(symbols).where(*conditions)
        return self._database.fetch_value(query) or 0

    def count_relations(self, tenant_id: str, generation: int) -> list[tuple[str, int, int]]:
        """Return each kind of relation in a build with two counts, the most frequent kind first.

        The first counts all edges. The second counts only edges that lead to a definition in the
        tenant's repositories, or to a table, a setting, a file or a package.
        """
        texts = _select_texts(tenant_id, generation)
        defined_names = select(symbols.c.symbol, symbols.c.short).where(
            symbols.c.tenant == tenant_id, symbols.c.chunk_set_key.in_(texts)
        )
        targets = (
            select(edges.c.kind, edges.c.target, func.count())
            .where(edges.c.tenant == tenant_id, edges.c.chunk_set_key.in_(texts))
            .where(edges.c.kind != HANDS_ON)
            .group_by(edges.c.kind, edges.c.target)
        )
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        with self._database.begin() as connection:
            defined = frozenset(name for row in connection.execute(defined_names) for name in row)
            rows = connection.execution_options(yield_per=_COUNT_BATCH).execute(targets)
            for kind, target, count in rows:
                counts[kind][0] += count
                name = target if "\\" in target else get_short_name(target)
                if target.startswith(_RESOLVED_PREFIXES) or name in defined:
                    counts[kind][1] += count
        relation_counts = [(kind, total, resolved) for kind, (total, resolved) in counts.items()]
        return sorted(relation_counts, key=lambda item: (-item[1], item[0]))

    def list_texts(self, tenant_id: str, compared: HashRange) -> Sequence[Any]:
        """Return the texts of all builds whose chunk_set_keys are in a range, each once.

        Rows have chunk_set_key, media_type, and the document_id of one document with the text.
        """
        index = document_index.c
        conditions = [index.tenant == tenant_id, index.chunk_set_key >= compared.first]
        if compared.end is not None:
            conditions.append(index.chunk_set_key < compared.end)
        text_columns = documents.c.media_type, documents.c.document_id
        first = (func.min(column).label(column.name) for column in text_columns)
        query = (
            select(index.chunk_set_key, *first)
            .select_from(document_index)
            .join(documents, is_same_document())
            .where(*conditions)
            .group_by(index.chunk_set_key)
            .order_by(index.chunk_set_key)
        )
        return self._database.fetch_rows(query)

    def read_rows(self, tenant_id: str, keys: Collection[str]) -> dict[str, RecordedRows]:
        """Return the recorded rows of texts, by chunk_set_key; texts without rows are left out."""
        rows_by_key: dict[str, RecordedRows] = {}
        with self._database.begin() as connection:
            for table in _ROW_ITERATORS:
                conditions = (
                    table.c.tenant == tenant_id,
                    matches_any(table.c.chunk_set_key, [*keys]),
                )
                query = select(table.c.chunk_set_key, *_iter_columns_of_text(table)).where(
                    *conditions
                )
                for key, *row in connection.execute(query):
                    rows_by_key.setdefault(key, set()).add((table.name, *map(_to_hashable, row)))
        return rows_by_key

    def list_orphaned_texts(self, tenant_id: str) -> list[str]:
        """Return the chunk_set_keys of rows whose text does not belong to any build."""
        keys: set[str] = set()
        index = document_index.c
        with self._database.begin() as connection:
            for table in _ROW_ITERATORS:
                key = table.c.chunk_set_key
                is_kept = exists().where(index.tenant == table.c.tenant, index.chunk_set_key == key)
                query = select(key).where(table.c.tenant == tenant_id, ~is_kept).group_by(key)
                keys.update(connection.scalars(query))
        return sorted(keys)

    def replace_rows(self, ref: TenantRef, relations: Mapping[str, Relations]) -> None:
        """Replace the recorded rows of texts by rows of their current definitions and edges.

        If a text belongs to no build, its rows are only deleted: it may have been erased meanwhile.

        Raises:
            TenantGone: the tenant was removed.
        """
        for batch in batched(sorted(relations), _DRIFT_BATCH):
            keys = list(batch)
            with self._database.begin_tenant(ref) as connection:
                for table in _ROW_ITERATORS:
                    of_texts = table.c.tenant == ref.id, matches_any(table.c.chunk_set_key, keys)
                    connection.execute(delete(table).where(*of_texts))
                counted = func.rag_catalog.count_relation_change(ref.id, literal(True, Boolean))
                connection.execute(select(counted))
                # A concurrent deletion of such a version waits, and then deletes the new rows too.
                index = document_index.c
                conditions = index.tenant == ref.id, matches_any(index.chunk_set_key, keys)
                indexed = select(index.chunk_set_key).where(*conditions).with_for_update(read=True)
                indexed_keys = sorted(set(connection.scalars(indexed)))
                record_relations(connection, ref, {key: relations[key] for key in indexed_keys})


def _select_texts(tenant_id: str, generation: int) -> Select[Any]:
    return select(document_index.c.chunk_set_key).where(
        is_of_generation(tenant_id, generation), document_index.c.chunk_set_key.is_not(None)
    )


def build_rows(ref: TenantRef, relations: Mapping[str, Relations]) -> dict[str, RecordedRows]:
    """Return the rows that texts with these relations should have, in the format of `read_rows`."""
    rows_by_key: dict[str, RecordedRows] = {}
    for table, rows_of in _ROW_ITERATORS.items():
        for row in rows_of(ref, relations):
            values = (_to_hashable(row[column.name]) for column in _iter_columns_of_text(table))
            rows_by_key.setdefault(row["chunk_set_key"], set()).add((table.name, *values))
    return rows_by_key


def _to_hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _iter_columns_of_text(table: Table) -> Iterator[ColumnElement[Any]]:
    return (column for column in table.columns if column.name not in _TEXT_COLUMNS)
