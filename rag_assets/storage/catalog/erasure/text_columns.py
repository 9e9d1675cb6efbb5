"""Texts in columns of the catalog and of our Dagster's tables, streamed and replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, text
from sqlalchemy.dialects.postgresql import JSONB

from rag_assets.dagster_tables import EVENTS_OF_TENANT, texts_of_tenant
from rag_assets.plugins.registry import installed_systems
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tables import SCHEMA, all_tables

_OF_TENANT = "tenant = :tenant"
_BATCH = 500


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column with texts of a tenant.

    Attributes:
        table: the table's name, with its schema.
        type: type of the column: text, jsonb, or text that contains JSON ("json").
        condition: SQL condition for the tenant's rows.
    """

    table: str
    column: str
    type: str = "text"
    condition: str = _OF_TENANT

    @property
    def name(self) -> str:
        """Return its name, which also gives its position in a scan."""
        return f"{self.table}.{self.column}"


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


def scanned_columns() -> tuple[TextColumn, ...]:
    """Return SCANNED, and the columns that installed systems declare."""
    tables = {table.name: table for table in all_tables()}
    added = []
    for found in installed_systems():
        for text_column in found.system.texts:
            table, _, name = text_column.partition(".")
            is_json = isinstance(tables[table].c[name].type, JSONB)
            added += _declare_columns(table, name, type_="jsonb" if is_json else "text")
    return (*SCANNED, *added)


@dataclass(frozen=True, slots=True)
class StoredText:
    """A text in a row.

    Attributes:
        place: the row's position in its table.
    """

    place: str
    text: str


class TextColumnStore:
    """Reads and replaces a tenant's texts in one column of a table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def batches(self, ref: TenantRef, column: TextColumn) -> Iterator[list[StoredText]]:
        """Stream the texts of a tenant in one column; empty if Dagster's table does not exist."""
        query = text(
            f"SELECT ctid::text, {column.column}::text FROM {column.table}"  # noqa: S608 - ours
            f" WHERE {column.condition} AND {column.column} IS NOT NULL"
        )
        with self._database.begin() as connection:
            if not _exists(connection, column.table):
                return
            rows = connection.execution_options(yield_per=_BATCH).execute(query, {"tenant": ref.id})
            for batch in rows.partitions():
                yield [StoredText(*row) for row in batch]

    def replace(
        self, ref: TenantRef, column: TextColumn, texts: Sequence[tuple[StoredText, str]]
    ) -> int:
        """Replace texts that have not changed since they were read; return how many.

        Args:
            texts: the texts as they were read, and their replacements.
        """
        kind = "jsonb" if column.type == "jsonb" else "text"
        statement = text(
            f"UPDATE {column.table} SET {column.column} = CAST(:new AS {kind})"  # noqa: S608 - ours
            f" WHERE ctid = CAST(:place AS tid) AND {column.column}::text = :old"
        )
        with self._database.begin_tenant(ref) as connection:
            return sum(
                connection.execute(
                    statement, {"new": new, "place": stored.place, "old": stored.text}
                ).rowcount
                for stored, new in texts
            )


def mask_column(query: TextColumnStore, ref: TenantRef, column: TextColumn, masker: Masker) -> int:
    """Mask the credentials in a column; return the number of changed rows."""
    changed = 0
    for batch in query.batches(ref, column):
        values = [_parse_stored(column, stored.text) for stored in batch]
        masker.prime(leaf for value in values for leaf in _leaves(value))
        masked = [_mask_value(value, masker) for value in values]
        found = [
            (stored, _format_stored(column, after))
            for stored, before, after in zip(batch, values, masked, strict=True)
            if after != before
        ]
        changed += query.replace(ref, column, found) if found else 0
    return changed


def _parse_stored(column: TextColumn, stored: str) -> Any:
    if column.type == "text":
        return stored
    try:
        return json.loads(stored)
    except ValueError:
        return stored


def _format_stored(column: TextColumn, value: Any) -> str:
    return value if column.type == "text" or isinstance(value, str) else json.dumps(value)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)


def _mask_value(value: Any, masker: Masker) -> Any:
    """Return the value with credentials masked in its texts; field names stay."""
    if isinstance(value, str):
        return masker.text(value)
    if isinstance(value, dict):
        return {name: _mask_value(inner, masker) for name, inner in value.items()}
    return [_mask_value(inner, masker) for inner in value] if isinstance(value, list) else value


def _exists(connection: Connection, table: str) -> bool:
    return connection.scalar(text("SELECT to_regclass(:name)"), {"name": table}) is not None
