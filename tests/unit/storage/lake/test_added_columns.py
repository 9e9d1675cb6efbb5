"""Definitions and facts of source code in the lake, beside chunk sets of earlier versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from rag_assets.code.model import Fact
from rag_assets.ingest.chunking.model import Definition
from rag_assets.storage.lake.damage import damaged_files
from rag_assets.storage.lake.model import ChunkSetRow
from rag_assets.storage.lake.rows import chunk_sets_frame
from rag_assets.storage.lake.schemas import CHUNKS, CHUNKS_TABLE, OF_CODE, TableKind
from rag_assets.storage.lake.store import TenantLake
from rag_assets.storage.lake.table import KeyedTable

ChunkSetMaker = Callable[..., ChunkSetRow]

FACTS = (
    Fact("declares", 0, 9, "A::b", {"role": "method", "parameters": [{"name": "x"}]}, 1, 2, "b()"),
    Fact("calls", 3, 5, "A::b", {"name": "é😀"}, 2, 2),
)


@pytest.fixture
def code(chunk_set: ChunkSetMaker) -> ChunkSetRow:
    row = chunk_set("first", "second")
    definition = Definition("method", "App\\A::b", "function b()")
    chunks = tuple(replace(chunk, definition=definition) for chunk in row.chunks)
    return replace(row, key="code", chunks=chunks, facts=FACTS)


def test_definitions_and_facts_are_read_as_written(acme: TenantLake, code: ChunkSetRow) -> None:
    without = replace(code, key="without", facts=())
    acme.append_chunk_sets([code, without])
    assert acme.chunk_sets(["code", "without"]) == {"code": code, "without": without}
    assert acme.facts(["code", "without", "unknown"]) == {"code": FACTS}


def test_a_table_of_an_earlier_version_is_read_and_written_on(
    acme: TenantLake, chunk_set: ChunkSetMaker, code: ChunkSetRow
) -> None:
    former = chunk_set("of before")
    table = acme._tables.chunks()
    first = pl.Schema({name: kind for name, kind in CHUNKS.items() if name not in OF_CODE})
    before = TableKind("key", first, 32, 16 << 20, "ZSTD")
    assert before.version == CHUNKS_TABLE.version == "9dc0441c7875"
    KeyedTable(before, table.location, lambda: None).append(
        chunk_sets_frame([former]).drop(*OF_CODE)
    )
    assert acme.chunk_sets([former.key]) == {former.key: former}
    assert acme.facts([former.key]) == {}
    acme.append_chunk_sets([code])
    both = {former.key: former, "code": code}
    assert acme.chunk_sets(list(both)) == both
    assert list(damaged_files("chunks", table)) == []
    acme.compact()
    assert acme.chunk_sets(list(both)) == both
