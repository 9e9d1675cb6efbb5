import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rag_assets.ingest.chunking.model import BlockPlace, Definition, Fact
from rag_assets.ingest.parsing.model import (
    Block,
    Gap,
    ParsedText,
    compute_parsed_digest,
    from_record,
    to_record,
)
from rag_assets.storage.lake.files import iter_damaged_files
from rag_assets.storage.lake.model import ChunkSetRow, ParsedRow
from rag_assets.storage.lake.rows import (
    CHUNKS,
    CHUNKS_TABLE,
    PARSED_TEXT,
    PARSED_TEXT_TABLE,
    TableKind,
    build_chunk_sets_frame,
    build_parsed_frame,
)
from rag_assets.storage.lake.store import TenantLake
from rag_assets.storage.lake.table import KeyedTable, filter_rows
from tests.cost import assert_linear

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
    assert acme.facts(["code"], {"calls", "extends"}.__contains__) == {"code": FACTS[1:]}


def test_a_table_of_an_earlier_version_is_read_and_written_on(
    acme: TenantLake, chunk_set: ChunkSetMaker, code: ChunkSetRow
) -> None:
    former = chunk_set("of before")
    table = acme._tables.chunks()
    first = pl.Schema(
        {name: kind for name, kind in CHUNKS.items() if name not in CHUNKS_TABLE.added}
    )
    before = TableKind("key", first, 32, 16 << 20, "ZSTD")
    assert before.version == CHUNKS_TABLE.version == "9dc0441c7875"
    KeyedTable(before, table.location, lambda: None).append(
        build_chunk_sets_frame([former]).drop(*CHUNKS_TABLE.added)
    )
    assert acme.chunk_sets([former.key]) == {former.key: former}
    assert acme.facts([former.key]) == {}
    acme.append_chunk_sets([code])
    both = {former.key: former, "code": code}
    assert acme.chunk_sets(list(both)) == both
    assert list(iter_damaged_files("chunks", table)) == []
    acme.compact()
    assert acme.chunk_sets(list(both)) == both


def test_blocks_of_chunks_are_read_as_written(acme: TenantLake, chunk_set: ChunkSetMaker) -> None:
    row = chunk_set("first", "second")
    page, block = row.chunks
    page = replace(page, blocks=(BlockPlace("b1", 0), BlockPlace("b2", 7)))
    block = replace(block, blocks=(BlockPlace("b2", 7),), of_block=True)
    with_blocks = replace(row, key="page", chunks=(page, block))
    acme.append_chunk_sets([with_blocks, row])
    assert acme.chunk_sets(["page", row.key]) == {"page": with_blocks, row.key: row}


PLAIN = ParsedText("One.\n\nTwo.", (Block("paragraph", 0, 4), Block("paragraph", 6, 10)))
PAGE = replace(PLAIN, blocks=(PLAIN.blocks[0], replace(PLAIN.blocks[1], block_id="b2")))


def test_block_ids_are_read_as_written_beside_texts_of_an_earlier_version(acme: TenantLake) -> None:
    table = acme._tables.parsed()
    first = {n: kind for n, kind in PARSED_TEXT.items() if n not in PARSED_TEXT_TABLE.added}
    before = TableKind("key", pl.Schema(first), 32, 16 << 20, "ZSTD")
    assert before.version == PARSED_TEXT_TABLE.version
    rows = {
        name: ParsedRow(name, compute_parsed_digest(text), text) for name, text in TEXTS.items()
    }
    frame = build_parsed_frame([rows["plain"]]).drop(*PARSED_TEXT_TABLE.added)
    KeyedTable(before, table.location, lambda: None).append(frame)
    acme.append_parsed([rows["page"]])
    assert acme.parsed(["plain", "page"]) == rows


TEXTS = {"plain": PLAIN, "page": PAGE}


def test_digests_tell_block_ids_and_stay_as_they_were_without() -> None:
    assert [from_record(to_record(text)) for text in TEXTS.values()] == [PLAIN, PAGE]
    assert compute_parsed_digest(PLAIN) == "87758bb5965531b4df6ae488d2e47771"
    assert compute_parsed_digest(PAGE) != compute_parsed_digest(PLAIN)


@pytest.mark.parametrize("facts", [{"mark_bytes": 3}, {"gaps": (Gap(0, 9), Gap(4, 1))}])
def test_facts_of_the_source_are_read_as_written(acme: TenantLake, facts: dict[str, Any]) -> None:
    marked = replace(PLAIN, **facts)
    texts = {"a": marked, "b": PLAIN}
    rows = [ParsedRow(key, compute_parsed_digest(one), one) for key, one in texts.items()]
    acme.append_parsed(rows)
    assert acme.parsed(["a", "b"]) == dict(zip("ab", rows, strict=True))
    assert from_record(to_record(marked)) == marked
    assert compute_parsed_digest(marked) != compute_parsed_digest(PLAIN)
    assert not facts.keys() & to_record(PLAIN).keys()


GROUP = 500


def table(folder: Path, size: int) -> pl.LazyFrame:
    """Write a file of so many keys in row groups; one key occurs twice."""
    path = folder / f"{size}.parquet"
    if not path.exists():
        keys = [f"{number:064}" for number in range(size)]
        random.Random(7).shuffle(keys)
        frame = pl.DataFrame({"key": [*keys, f"{0:064}"]})
        frame.write_parquet(path, row_group_size=GROUP)
    return pl.scan_parquet(path)


@pytest.mark.parametrize("count", [3, 2_500])
def test_rows_of_few_and_of_many_keys_are_found(tmp_path: Path, count: int) -> None:
    rows = table(tmp_path, 3_000)
    wanted = {f"{number:064}" for number in range(count)} | {"unknown"}
    found = filter_rows(rows, "key", wanted).collect()
    assert sorted(map(int, found["key"])) == [0, *range(count)]


def test_the_cost_is_linear_in_keys_and_rows(tmp_path: Path) -> None:
    def work(size: int) -> None:
        wanted = [f"{number:064}" for number in range(size)]
        assert len(filter_rows(table(tmp_path, size), "key", wanted).collect()) == size + 1

    assert_linear(work, 20_000)
