"""Rows of symbols and edges, recorded together with the version whose text states them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.systems.code_memory.catalog.tables import edges, name_uses, symbols
from rag_assets.systems.code_memory.relations.relations import Relations
from rag_assets.systems.code_memory.symbols.model import names_of

_BATCH = 2_000


def record_relations(
    connection: Connection, ref: TenantRef, relations: Mapping[str, Relations]
) -> None:
    """Record the definitions and edges of texts; existing rows of a text stay.

    Args:
        connection: the connection of the transaction that makes the versions of these texts valid.
        relations: the relations, by chunk_set_key.
    """
    for table, rows in (
        (symbols, rows_of_symbols(ref, relations)),
        (edges, rows_of_edges(ref, relations)),
        (name_uses, rows_of_names(ref, relations)),
    ):
        statement = upsert(table).on_conflict_do_nothing()
        for batch in batched(rows, _BATCH):
            connection.execute(statement, batch)


def rows_of_symbols(ref: TenantRef, relations: Mapping[str, Relations]) -> Iterator[dict[str, Any]]:
    """Yield the rows of texts' definitions."""
    for key, found in relations.items():
        for position, one in enumerate(found.symbols):
            yield {
                "tenant": ref.id,
                "chunk_set_key": key,
                "position": position,
                "symbol": one.name,
                "short": one.short,
                "role": one.role,
                "public": one.public,
                "content_hash": one.content_hash,
                "line_start": one.line_start,
                "line_end": one.line_end,
            }


def rows_of_edges(ref: TenantRef, relations: Mapping[str, Relations]) -> Iterator[dict[str, Any]]:
    """Yield the rows of texts' edges."""
    for key, found in relations.items():
        for position, one in enumerate(found.edges):
            row = asdict(one)
            row["stated_of"] = row.pop("source")
            yield {"tenant": ref.id, "chunk_set_key": key, "position": position, **row}


def rows_of_names(ref: TenantRef, relations: Mapping[str, Relations]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the names in texts; a scanned text without names also has a row."""
    for key, found in relations.items():
        numbers = sorted({number_of_name(ref.id, name) for name in names_of(found.names)})
        yield {"tenant": ref.id, "chunk_set_key": key, "numbers": numbers, "names": found.names}


def number_of_name(tenant_id: str, name: str) -> int:
    """Return the number by which the texts of a tenant that contain a name are found.

    Several names may have the same number, so the caller must also compare the name.
    """
    number = zlib.crc32(f"{tenant_id}\0{name}".encode())
    return number - (1 << 32) if number >> 31 else number
