"""Core re-scans and removals reach the text in every table of every system.

A system that adds a table or a text column without declaring it fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import ARRAY, Boolean, Column, DateTime, Table, Uuid, insert, select, text
from sqlalchemy.dialects.postgresql import JSONB

from rag_assets.plugins.registry import installed_systems
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.erasure.traces import (
    TextColumnStore,
    list_scanned_columns,
    list_text_columns,
)
from rag_assets.storage.catalog.tables import SCHEMA, list_all_tables
from tests.installation import Installation
from tests.unit.storage.catalog.erasure.test_text_columns import KEYS, OTHERS

pytestmark = pytest.mark.long


@pytest.fixture
def database(installation: Installation) -> Iterator[Database]:
    database = Database(installation.environment["RAG_ASSETS_DATABASE_URL"])
    yield database
    database.close()


def test_text_planted_in_each_table_of_a_system_is_scanned_and_removed(
    installation: Installation, database: Database
) -> None:
    installation.add_tenant("acme")
    ref = installation.session().catalog.tenants.get("acme").ref
    names = {name for system in installed_systems() for name in system.system.tables}
    tables = [table for table in list_all_tables() if table.name in names]
    assert {table.name for table in tables} == names
    planted = {text for table in tables for text in _plant(database, ref, table)}
    query = TextColumnStore(database)
    scanned = " ".join(
        stored
        for column in list_scanned_columns()
        for batch in query.iter_batches(ref, column)
        for _, stored in batch
    )
    assert {text for text in planted if text not in scanned} == set()
    installation.cli("tenants", "remove", "acme", "--yes")
    with database.begin() as connection:
        left = {
            table.name: rows
            for table in tables
            if (rows := connection.execute(select(table).where(table.c.tenant == ref.id)).all())
        }
    assert left == {}


def _plant(database: Database, ref: TenantRef, table: Table) -> list[str]:
    """Insert a row with a unique text in each text column; return these texts."""
    texts: list[str] = []
    row: dict[str, Any] = {}
    text_columns = list_text_columns(table)
    for column in table.c:
        if column.computed is not None or column.identity is not None:
            continue
        key = f"{table.name}.{column.name}"
        is_text = any(column is text_column for text_column in text_columns)
        if is_text and column.name not in KEYS and key not in OTHERS:
            texts.append(f"planted in {key}")
            row[column.name] = _wrap(column, texts[-1])
        elif not column.nullable and column.server_default is None:
            row[column.name] = _value_of(column)
    row["tenant"] = ref.id
    checks = (
        "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = CAST(:t AS regclass)"
    )
    with database.begin() as connection:
        # The row breaks foreign keys and checks; only its texts matter here.
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        name = f"{SCHEMA}.{table.name}"
        for check in connection.scalars(text(checks), {"t": name}).all():
            connection.execute(text(f'ALTER TABLE {name} DROP CONSTRAINT "{check}"'))
        connection.execute(insert(table).values(**row))
    return texts


def _wrap(column: Column[Any], planted: str) -> Any:
    if isinstance(column.type, JSONB):
        return {"text": planted}
    return [planted] if isinstance(column.type, ARRAY) else planted


def _value_of(column: Column[Any]) -> Any:
    values = {Uuid: uuid4(), DateTime: datetime.now(UTC), Boolean: False, ARRAY: [], JSONB: {}}
    for type_, value in values.items():
        if isinstance(column.type, type_):
            return value
    return {bytes: b"\x00", str: "x"}.get(column.type.python_type, 1)
