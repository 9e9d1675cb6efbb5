"""Compares recorded symbols and edges with their texts, and records them again if they differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Table, delete, exists, func, select

from rag_assets.common.batches import batched
from rag_assets.common.hashing import HashRange
from rag_assets.storage.catalog.database import Database, TenantRef, is_any_of
from rag_assets.storage.catalog.documents.status import is_same_document
from rag_assets.storage.catalog.tables import document_index, documents
from rag_assets.systems.code_memory.catalog.relation_rows import (
    record_relations,
    rows_of_edges,
    rows_of_names,
    rows_of_symbols,
)
from rag_assets.systems.code_memory.catalog.relation_state import mark_rows_replaced
from rag_assets.systems.code_memory.catalog.tables import edges, name_uses, symbols
from rag_assets.systems.code_memory.relations.relations import Relations

_BATCH = 1_000
_TABLES = (symbols, edges, name_uses)
_OF_TEXT = frozenset({"tenant", "chunk_set_key"})

RecordedRows: TypeAlias = frozenset[tuple[Any, ...]]
"""Rows of one text, in no particular order."""


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text that belongs to at least one build.

    Attributes:
        media_type: media type of a document that has it.
        document_id: id of that document.
    """

    chunk_set_key: str
    media_type: str | None
    document_id: str


class RelationDriftQuery:
    """Queries on the tables with rows of texts: `symbols`, `edges` and `name_uses`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def texts(self, tenant_id: str, compared: HashRange) -> list[IndexedText]:
        """Return the texts of all builds whose keys are in a range, without duplicates."""
        held = document_index.c
        wanted = [held.tenant == tenant_id, held.chunk_set_key >= compared.first]
        if compared.end is not None:
            wanted.append(held.chunk_set_key < compared.end)
        query = (
            select(
                held.chunk_set_key,
                func.min(documents.c.media_type),
                func.min(documents.c.document_id),
            )
            .select_from(document_index)
            .join(documents, is_same_document())
            .where(*wanted)
            .group_by(held.chunk_set_key)
            .order_by(held.chunk_set_key)
        )
        with self._database.begin() as connection:
            return [IndexedText(*row) for row in connection.execute(query)]

    def recorded(self, tenant_id: str, keys: Collection[str]) -> dict[str, RecordedRows]:
        """Return the rows of texts, by chunk_set_key; texts without rows are left out."""
        found: dict[str, set[tuple[Any, ...]]] = {}
        with self._database.begin() as connection:
            for table in _TABLES:
                of_texts = table.c.tenant == tenant_id, is_any_of(table.c.chunk_set_key, [*keys])
                query = select(table.c.chunk_set_key, *_columns_of_text(table)).where(*of_texts)
                for key, *row in connection.execute(query):
                    found.setdefault(key, set()).add((table.name, *map(_hashable, row)))
        return {key: frozenset(rows) for key, rows in found.items()}

    def nobodys(self, tenant_id: str) -> list[str]:
        """Return the chunk_set_keys of rows whose text does not belong to any build."""
        found: set[str] = set()
        held = document_index.c
        with self._database.begin() as connection:
            for table in _TABLES:
                key = table.c.chunk_set_key
                kept = exists().where(held.tenant == table.c.tenant, held.chunk_set_key == key)
                query = select(key).where(table.c.tenant == tenant_id, ~kept).group_by(key)
                found.update(connection.scalars(query))
        return sorted(found)

    def replace_rows(self, ref: TenantRef, relations: Mapping[str, Relations]) -> None:
        """Replace the rows of texts by rows of their current definitions and edges.

        If a text belongs to no build, its rows are only deleted: it may have been erased in the
        meantime.

        Raises:
            TenantGone: the tenant was removed.
        """
        for batch in batched(sorted(relations), _BATCH):
            keys = list(batch)
            with self._database.begin_for(ref) as connection:
                for table in _TABLES:
                    of_texts = table.c.tenant == ref.id, is_any_of(table.c.chunk_set_key, keys)
                    connection.execute(delete(table).where(*of_texts))
                mark_rows_replaced(connection, ref)
                # A concurrent deletion of such a version waits, and then deletes the new rows too.
                held = (
                    select(document_index.c.chunk_set_key)
                    .where(
                        document_index.c.tenant == ref.id,
                        is_any_of(document_index.c.chunk_set_key, keys),
                    )
                    .with_for_update(read=True)
                )
                kept = sorted(set(connection.scalars(held)))
                record_relations(connection, ref, {key: relations[key] for key in kept})


def rows_to_record(ref: TenantRef, relations: Mapping[str, Relations]) -> dict[str, RecordedRows]:
    """Return the rows that these relations should have, in the format of `recorded`."""
    found: dict[str, set[tuple[Any, ...]]] = {}
    for table, rows in (
        (symbols, rows_of_symbols(ref, relations)),
        (edges, rows_of_edges(ref, relations)),
        (name_uses, rows_of_names(ref, relations)),
    ):
        for row in rows:
            told = (_hashable(row[column.name]) for column in _columns_of_text(table))
            found.setdefault(row["chunk_set_key"], set()).add((table.name, *told))
    return {key: frozenset(rows) for key, rows in found.items()}


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _columns_of_text(table: Table) -> Iterator[ColumnElement[Any]]:
    return (column for column in table.columns if column.name not in _OF_TEXT)
