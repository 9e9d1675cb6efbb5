"""Traces of documents in Postgres and in Dagster instances that have run jobs for a tenant.

Texts in columns of the catalog and of our own Dagster's tables are streamed and replaced here, too.
Our own Dagster instance has its tables in the same database. Its records of other tenants, and
records of a team's Dagster in this database, are not changed, even if they contain the same name.

A removal deletes Dagster's records only in the instance that it uses. Every other instance stays
listed until its sensor `tenants` has deleted the records there. These rows therefore outlive
tenants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, insert

from rag_assets.dagster_tables import (
    DAGSTER_SCHEMA,
    EVENTS_NAMING_TENANT,
    EVENTS_OF_TENANT,
    TABLES,
    texts_of_tenant,
)
from rag_assets.plugins.registry import installed_systems
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    is_of_documents,
    matches_any,
)
from rag_assets.storage.catalog.tables import (
    SCHEMA,
    documents,
    list_all_tables,
    metadata,
    now_column,
    source_records,
    tenants,
)
from rag_assets.storage.catalog.uploads.model import uploads

_TENANT_CONDITION = "tenant = :tenant"
_BATCH_ROWS = 500


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column with texts of a tenant.

    Attributes:
        type: type of the column: text, jsonb, an array of texts ("array"), or text that contains
            JSON ("json").
    """

    table: str
    column: str
    type: str = "text"
    condition: str = _TENANT_CONDITION

    @property
    def name(self) -> str:
        """Return "<table>.<column>", which is also the position of the column in a scan."""
        return f"{self.table}.{self.column}"

    @property
    def value(self) -> str:
        """Return the SQL expression of the value as text; that of an array is JSON."""
        value = f"to_jsonb({self.column})" if self.type == "array" else self.column
        return f"{value}::text"


def _declare_columns(table: str, *columns: str, type_: str = "text") -> list[TextColumn]:
    return [TextColumn(f"{SCHEMA}.{table}", column, type_) for column in columns]


SCANNED: Final = (
    *_declare_columns("events", "payload", type_="jsonb"),
    *_declare_columns("check_results", "description", "error"),
    *_declare_columns("document_index", "error_message"),
    *_declare_columns("documents", "error_message"),
    *_declare_columns("embedding_batches", "error"),
    *_declare_columns("generations", "reason"),
    *_declare_columns("generations", "checks", type_="jsonb"),
    *_declare_columns("holds", "reason"),
    *_declare_columns("judged_questions", "question"),
    *_declare_columns("judged_questions", "judgements", type_="jsonb"),
    *_declare_columns("serving", "pin_reason"),
    *_declare_columns("slices", "unlisted", type_="jsonb"),
    *_declare_columns("syncs", "last_error", "held_reason"),
    *_declare_columns("syncs", "folders", type_="jsonb"),
    *_declare_columns("uploads", "file_name"),
    *_declare_columns("held_uploads", "file_name"),
    *(
        TextColumn(table, column, "json", condition)
        for (table, column), condition in texts_of_tenant(EVENTS_OF_TENANT).items()
    ),
)
"""Columns with texts that people, sources or documents wrote. Names in `documents` are not among
them: they are part of keys, and are masked together with their rows. A test lists the columns left
out, with reasons."""


def list_scanned_columns() -> tuple[TextColumn, ...]:
    """Return SCANNED, followed by the text columns that installed systems declare."""
    tables = {table.name: table for table in list_all_tables()}
    added = []
    for system in installed_systems():
        for text_column in system.system.texts:
            table, _, name = text_column.partition(".")
            added += _declare_columns(table, name, type_=_get_kind(tables[table].c[name]))
    return (*SCANNED, *added)


def _get_kind(column: sa.Column[Any]) -> str:
    if isinstance(column.type, sa.JSON):
        return "jsonb"
    return "array" if isinstance(column.type, sa.ARRAY) else "text"


def list_text_columns(table: sa.Table) -> list[sa.Column[Any]]:
    """Return the columns of a table that can contain texts: texts, JSON, and arrays of texts."""
    return [column for column in table.c if _can_contain_text(column.type)]


def _can_contain_text(type_: sa.types.TypeEngine[Any]) -> bool:
    if isinstance(type_, sa.ARRAY):
        return _can_contain_text(type_.item_type)
    return isinstance(type_, sa.String | sa.JSON) and not isinstance(type_, sa.Enum)


class TextColumnStore(CatalogQueries):
    """Masks credentials in a tenant's texts in one column of a table."""

    def mask(self, ref: TenantRef, column: TextColumn, masker: Masker) -> int:
        """Mask the credentials in a tenant's texts in a column; return how many rows changed.

        A text that changed since it was read stays.
        """
        kind = "text" if column.type in {"text", "json"} else "jsonb"
        new_value = f"CAST(:new AS {kind})"
        if column.type == "array":
            new_value = f"ARRAY(SELECT jsonb_array_elements_text({new_value}))"
        statement = sa.text(
            f"UPDATE {column.table} SET {column.column} = {new_value}"  # noqa: S608 - ours
            f" WHERE ctid = CAST(:place AS tid) AND {column.value} = :old"
        )
        changed = 0
        for batch in self.iter_batches(ref, column):
            values = [_parse_stored(column, stored) for _, stored in batch]
            masker.prime(leaf for value in values for leaf in _iter_leaves(value))
            masked = [_mask_value(value, masker) for value in values]
            rows = [
                {
                    "new": new
                    if column.type == "text" or isinstance(new, str)
                    else json.dumps(new),
                    "place": place,
                    "old": stored,
                }
                for (place, stored), before, new in zip(batch, values, masked, strict=True)
                if new != before
            ]
            if rows:
                with self._database.begin_tenant(ref) as connection:
                    changed += sum(connection.execute(statement, row).rowcount for row in rows)
        return changed

    def iter_batches(
        self, ref: TenantRef, column: TextColumn
    ) -> Iterator[Sequence[sa.Row[str, str]]]:
        """Stream (ctid, text) of a column's rows; nothing if Dagster's table does not exist."""
        query = sa.text(
            f"SELECT ctid::text, {column.value} FROM {column.table}"  # noqa: S608 - ours
            f" WHERE {column.condition} AND {column.column} IS NOT NULL"
        )
        with self._database.begin() as connection:
            if _table_exists(connection, column.table):
                streaming = connection.execution_options(yield_per=_BATCH_ROWS)
                yield from streaming.execute(query, {"tenant": ref.id}).partitions()


def _parse_stored(column: TextColumn, stored: str) -> Any:
    if column.type == "text":
        return stored
    try:
        return json.loads(stored)
    except ValueError:
        return stored


def _iter_leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iter_leaves(inner)


def _mask_value(value: Any, masker: Masker) -> Any:
    """Return the value with credentials masked in its texts; field names stay."""
    if isinstance(value, str):
        return masker.text(value)
    if isinstance(value, dict):
        return {name: _mask_value(inner, masker) for name, inner in value.items()}
    return [_mask_value(inner, masker) for inner in value] if isinstance(value, list) else value


def _table_exists(connection: sa.Connection, table: str) -> bool:
    return connection.scalar(sa.text("SELECT to_regclass(:name)"), {"name": table}) is not None


PURGED: Final = "(purged)"
"""Replaces a purged name."""
_KEPT_TABLES = frozenset({"erasures", "receipts", "record_clocks", "tombstones"})
"""Tables that hold hashes of erased documents on purpose."""
_MAX_ATTEMPTS = 3
_NAME_COLUMNS: Mapping[tuple[str, str], str] = {
    (f"{SCHEMA}.events", "payload"): "tenant = :tenant",
    **texts_of_tenant(EVENTS_NAMING_TENANT),
}
"""Columns that name documents, each with the condition for one tenant's rows."""
_FORMER_HEADINGS: Final = r'("document": "\(purged\)", "heading": )"(?:[^"\\]|\\.)*"'
"""Headings of purged documents: earlier versions recorded them in the metadata of `chunks`."""
_TEXT_COLUMNS = sa.text(
    "SELECT c.table_schema, c.table_name, c.column_name, EXISTS ("
    "SELECT FROM information_schema.columns o WHERE o.table_schema = c.table_schema"
    " AND o.table_name = c.table_name AND o.column_name = 'tenant') AS of_tenants"
    " FROM information_schema.columns c"
    " JOIN information_schema.tables t USING (table_schema, table_name)"
    " WHERE t.table_type = 'BASE TABLE'"
    " AND c.table_schema NOT IN ('pg_catalog', 'information_schema')"
    " AND c.data_type IN ('text', 'character varying', 'character', 'jsonb', 'json', 'ARRAY')"
    " ORDER BY 1, 2, 3"
)


class TraceQuery(CatalogQueries):
    """Searches text columns for traces of erased documents, replaces names, vacuums tables."""

    def list_names(self, ref: TenantRef, document_ids: Sequence[str]) -> list[str]:
        """Return the names of documents: URIs, and ids of their chunks without the offsets."""
        of_tenant = documents.c.tenant == ref.id
        query = documents.select().where(
            of_tenant, matches_any(documents.c.document_id, document_ids)
        )
        names = []
        for row in self._database.fetch_rows(query):
            names.append(row.uri)
            source, _, path = row.uri.partition("/")
            names.append(f"{ref.id}:{path if source == row.source else row.document_id}")
        return sorted(set(names))

    def find_shared_phrases(
        self, ref: TenantRef, document_ids: Sequence[str], phrases: Sequence[str]
    ) -> set[str]:
        """Return the phrases that also occur in a pushed record of another document."""
        query = sa.text(
            f"SELECT phrase FROM unnest(:phrases) AS phrase WHERE EXISTS ("  # noqa: S608 - ours
            f"SELECT FROM {SCHEMA}.source_records WHERE tenant = :tenant"
            " AND document_id <> ALL(:ids) AND strpos(text, phrase) > 0)"
        ).bindparams(
            sa.bindparam("phrases", type_=ARRAY(sa.Text)), sa.bindparam("ids", type_=ARRAY(sa.Text))
        )
        parameters = {"tenant": ref.id, "ids": [*document_ids], "phrases": [*phrases]}
        with self._database.begin() as connection:
            return set(connection.scalars(query, parameters))

    def find_existing(self, ref: TenantRef, document_ids: Sequence[str]) -> set[str]:
        """Return which of these erased documents exist, because they were added again."""
        queries = [
            sa.select(table.c.document_id).where(is_of_documents(table.c, ref.id, document_ids))
            for table in (documents, source_records, uploads)
        ]
        queries[0] = queries[0].where(documents.c.status != "DELETED")
        with self._database.begin() as connection:
            return {id_ for query in queries for id_ in connection.scalars(query)}

    def redact(self, tenant_id: str, names: Sequence[str], phrases: Sequence[str] = ()) -> int:
        """Replace names and phrases in a tenant's events and run records.

        Returns:
            the number of changed rows.
        """
        if not names and not phrases:
            return 0
        parameters = {
            "tenant": tenant_id,
            "pattern": _build_pattern(names, phrases),
            "purged": PURGED,
        }
        parameters |= {"headings": _FORMER_HEADINGS, "heading": rf'\1"{PURGED}"'}
        changed = 0
        with self._database.begin() as connection:
            for (table, column), condition in _find_named_columns(connection).items():
                kind = "jsonb" if table.startswith(SCHEMA) else "text"
                statement = (
                    f"UPDATE {table} SET {column} = regexp_replace("  # noqa: S608 - ours
                    f"regexp_replace({column}::text, :pattern, :purged, 'g'),"
                    f" :headings, :heading, 'g')::{kind}"
                    f" WHERE {condition} AND {column}::text ~ :pattern"
                )
                changed += connection.execute(sa.text(statement), parameters).rowcount
        return changed

    def vacuum(self, rewritten: Sequence[str] = (), *, only: Sequence[str] | None = None) -> int:
        """Remove deleted rows from the tables of the catalog and of run records.

        Args:
            rewritten: tables of the catalog to rewrite completely, because pages keep the bytes of
                rows that were moved.

        Returns:
            the number of remaining deleted rows, which another transaction may still read.
        """
        with self._database.session() as connection:
            for table in rewritten:
                connection.execute(sa.text(f'VACUUM (FULL) {SCHEMA}."{table}"'))
            dead_rows = 0
            names = sa.text("SELECT tablename FROM pg_tables WHERE schemaname = :schema ORDER BY 1")
            all_tables = connection.scalars(names, {"schema": SCHEMA}) if only is None else only
            tables = [f'{SCHEMA}."{name}"' for name in all_tables]
            if only is None:
                named = {table for table, _ in _find_named_columns(connection)}
                tables += sorted(table for table in named if not table.startswith(SCHEMA))
            for _ in range(_MAX_ATTEMPTS):
                for table in tables:
                    connection.execute(sa.text(f"VACUUM {table}"))
                dead_rows = _count_dead_rows(connection, tables)
                if not dead_rows:
                    break
        return dead_rows

    def find_columns(
        self, tenant_id: str, traces: Sequence[str], names: Sequence[str]
    ) -> list[str]:
        """Return the names of the columns that contain traces of documents.

        Args:
            tenant_id: the tenant. Only its rows, and rows that name it, are searched, because
                another tenant may have an equal document.
            traces: ids, hashes, and phrases that occur nowhere else in the tenant's data. They are
                searched in every text column of every table, except in a team's Dagster.
            names: names of documents, searched only in the columns of _NAME_COLUMNS.
        """
        columns = []
        spelled = {spelling for trace in traces for spelling in (trace, *_escape_for_json(trace))}
        with self._database.begin() as connection:
            for schema, table, column, of_tenants in connection.execute(_TEXT_COLUMNS).all():
                if schema == SCHEMA and table in _KEPT_TABLES:
                    continue
                if schema not in {SCHEMA, DAGSTER_SCHEMA} and table in TABLES:
                    continue
                about = "tenant = :tenant" if of_tenants else "strpos(t::text, :tenant) > 0"
                about = _NAME_COLUMNS.get((f"{schema}.{table}", column), about)
                query = _select_trace(schema, table, column, about)
                trace_parameters = {"tenant": tenant_id, "traces": sorted(spelled)}
                if connection.execute(query, trace_parameters).first() is not None:
                    columns.append(f"{schema}.{table}.{column}")
            if not names:
                return columns
            parameters = {"tenant": tenant_id, "pattern": _build_pattern(names)}
            for (table, column), condition in _find_named_columns(connection).items():
                named = (
                    f"SELECT 1 FROM {table} WHERE {condition}"  # noqa: S608 - nothing is given
                    f" AND {column}::text ~ :pattern LIMIT 1"
                )
                if connection.execute(sa.text(named), parameters).first() is not None:
                    columns.append(f"{table}.{column}")
        return columns


def _select_trace(schema: str, table: str, column: str, condition: str) -> sa.TextClause:
    return sa.text(
        f'SELECT 1 FROM "{schema}"."{table}" AS t WHERE {condition}'  # noqa: S608 - nothing given
        " AND EXISTS (SELECT FROM unnest(:traces) AS trace"
        f' WHERE strpos("{column}"::text, trace) > 0) LIMIT 1'
    ).bindparams(sa.bindparam("traces", type_=ARRAY(sa.Text)))


def _find_named_columns(connection: sa.Connection) -> dict[tuple[str, str], str]:
    """Return the _NAME_COLUMNS of tables that exist, each with the condition for its rows.

    Dagster may not have created its tables yet.
    """
    return {
        place: condition
        for place, condition in _NAME_COLUMNS.items()
        if _table_exists(connection, place[0])
    }


def _count_dead_rows(connection: sa.Connection, tables: Sequence[str]) -> int:
    query = sa.text(
        "SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables"
        " WHERE relid = ANY(ARRAY(SELECT to_regclass(name) FROM unnest(:tables) AS name)::oid[])"
    ).bindparams(sa.bindparam("tables", type_=ARRAY(sa.Text)))
    return int(connection.scalar(query, {"tables": [*tables]}) or 0)


def _build_pattern(names: Sequence[str], phrases: Sequence[str] = ()) -> str:
    """Return a Postgres regular expression that finds names and phrases within JSON."""
    patterns = []
    if names:
        patterns.append(rf"(?<![\w./-])(?:{_build_alternatives(names)})(?![\w/-]|\.\w)")
    if phrases:
        patterns.append(_build_alternatives(phrases))
    return "|".join(patterns)


def _build_alternatives(texts: Sequence[str]) -> str:
    spelled = {spelling for text_ in texts for spelling in _escape_for_json(text_)}
    return "|".join(re.escape(text_) for text_ in sorted(spelled, key=len, reverse=True))


def _escape_for_json(text_: str) -> set[str]:
    """Return the escaped forms of a text: in a JSON string, and in JSON within a JSON string."""
    once = {json.dumps(text_, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
    return once | {json.dumps(text_)[1:-1] for text_ in once}


dagster_histories = sa.Table(
    "dagster_histories",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("incarnation", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("instance", sa.Text, primary_key=True),
    sa.Column("place", sa.Text, nullable=False),
    now_column("last_run_at"),
)
"""Dagster instances that have run jobs for a tenant.

There is no foreign key: a row stays until the instance has deleted its records of the tenant.
"""


@dataclass(frozen=True, slots=True)
class DagsterHistory:
    """A Dagster instance that has run jobs for a tenant."""

    instance: str
    place: str
    last_run_at: datetime


class DagsterHistoryTable(CatalogQueries):
    """Records which Dagster instances have run jobs for a tenant, in `dagster_histories`."""

    def record(self, tenant_id: str | None, instance: str, place: str) -> None:
        """Record that an instance runs a job for a tenant, or for all tenants.

        Args:
            tenant_id: None for a job over all tenants.
        """
        ran = sa.select(
            *(tenants.c.id, tenants.c.incarnation),
            *(sa.literal(instance), sa.literal(place), sa.func.now()),
        ).where(tenants.c.state != "REMOVING")
        if tenant_id is not None:
            ran = ran.where(tenants.c.id == tenant_id)
        names = ["tenant", "incarnation", "instance", "place", "last_run_at"]
        # In a fixed order, because several processes may record the same tenants at once.
        statement = insert(dagster_histories).from_select(names, ran.order_by(tenants.c.id))
        columns = dagster_histories.c
        statement = statement.on_conflict_do_update(
            index_elements=[columns.tenant, columns.incarnation, columns.instance],
            set_={name: statement.excluded[name] for name in ("place", "last_run_at")},
        )
        with self._database.begin() as connection:
            connection.execute(statement)

    def instances(self, tenant_id: str) -> list[DagsterHistory]:
        """Return the Dagster instances that may still have records of this tenant.

        Records of earlier tenants with the same id count, too.
        """
        columns = dagster_histories.c
        last = sa.func.max(columns.last_run_at)
        query = (
            sa.select(columns.instance, sa.func.max(columns.place), last)
            .where(columns.tenant == tenant_id)
            .group_by(columns.instance)
            .order_by(last.desc(), columns.instance)
        )
        return [DagsterHistory(*row) for row in self._database.fetch_rows(query)]

    def tenants(self, instance: str) -> set[str]:
        """Return the tenants, including removed ones, whose records an instance may have."""
        columns = dagster_histories.c
        query = sa.select(columns.tenant).where(columns.instance == instance).distinct()
        return set(self._database.fetch_values(query))

    def forget(self, tenant_id: str, instance: str) -> None:
        """Delete the row of an instance that has deleted its records of a tenant."""
        columns = dagster_histories.c
        with self._database.begin() as connection:
            connection.execute(
                sa.delete(dagster_histories).where(
                    columns.tenant == tenant_id, columns.instance == instance
                )
            )
