from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from deltalake import write_deltalake

from rag_assets.common.errors import TenantLocked
from rag_assets.common.hashing import sha256_hex
from rag_assets.storage.lake.files import compute_overlap_depth, select_files_to_merge
from rag_assets.storage.lake.location import build_embedder_slug
from rag_assets.storage.lake.model import ChunkSetRow, DeadKeys, LiveKeys, ParsedRow
from rag_assets.storage.lake.rows import EMBEDDINGS_TABLE
from rag_assets.storage.lake.store import Lake, TenantLake
from rag_assets.storage.lake.table import DataFile

ParsedMaker = Callable[[str], ParsedRow]
ChunkSetMaker = Callable[..., ChunkSetRow]
E, F = "local/minilm@4", "openai/small@2"


def fill(lake: TenantLake, rounds: int) -> tuple[list[str], np.ndarray]:
    texts = [sha256_hex(str(n)) for n in range(rounds * 3)]
    vectors = np.random.default_rng(1).standard_normal((len(texts), 4), dtype=np.float32)
    for n in range(0, len(texts), 3):
        lake.append_vectors(E, texts[n : n + 3], vectors[n : n + 3])
    return texts, vectors


def embedding_tables(lake: TenantLake) -> set[str]:
    return {name for name in lake.size() if name.startswith("embeddings/")}


def everything_in(folder: Path) -> str:
    """Return the contents of all files: raw bytes, and decompressed Parquet files."""
    contents = []
    for path in folder.rglob("*"):
        if path.is_file():
            contents.append(path.read_bytes().decode("latin-1"))
            if path.suffix == ".parquet":
                contents += [str(row) for row in pl.read_parquet(path).iter_rows()]
    return "\n".join(contents)


@pytest.mark.slow
def test_compaction_keeps_every_row(
    acme: TenantLake, parsed_row: ParsedMaker, chunk_set: ChunkSetMaker
) -> None:
    texts, vectors = fill(acme, 4)
    parsed = [parsed_row(f"document {n} 👍") for n in range(5)]
    chunks = [chunk_set(f"chunk {n}", "shared") for n in range(5)]
    for row, chunk in zip(parsed, chunks, strict=True):
        acme.append_parsed([row])
        acme.append_chunk_sets([chunk])
    done = acme.compact()
    assert {table: (d.before.files, d.after.files) for table, d in done.items()} == {
        "parsed_text": (5, 1),
        "chunks": (5, 1),
        next(name for name in done if name.startswith("embeddings/")): (4, 1),
    }
    assert acme.parsed([r.key for r in parsed]) == {r.key: r for r in parsed}
    assert acme.chunk_sets([c.key for c in chunks]) == {c.key: c for c in chunks}
    found = acme.vectors(E, texts).by_hash()
    assert all(np.array_equal(found[t], v) for t, v in zip(texts, vectors, strict=True))
    assert embedding_tables(acme) == {f"embeddings/{build_embedder_slug(E)}"}


def test_compaction_sorts_by_key_in_small_row_groups(acme: TenantLake, folder: Path) -> None:
    texts = [sha256_hex(str(n)) for n in range(5_000)]
    for part in (texts[:2_500], texts[2_500:]):
        acme.append_vectors(E, part, np.ones((len(part), 4), np.float32))
    acme.compact()
    (path,) = (p for p in folder.rglob("*.parquet") if "_delta_log" not in p.parts)
    assert pl.read_parquet(path)["text_sha256"].to_list() == sorted(texts)
    # The benchmark measures how much a read decodes; here only the measured layout is checked.
    assert EMBEDDINGS_TABLE.group_rows == 2_000


def test_a_second_compaction_writes_nothing(acme: TenantLake, folder: Path) -> None:
    fill(acme, 3)
    acme.compact()
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    done = acme.compact()
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before
    assert all(d.before == d.after for d in done.values())


def test_duplicates_are_dropped(acme: TenantLake, parsed_row: ParsedMaker) -> None:
    rows = [parsed_row(str(n)) for n in range(3)]
    acme.append_parsed(rows)
    acme.append_parsed(rows[:2])
    acme.append_parsed(rows[:1])
    done = acme.compact()["parsed_text"]
    assert (done.before.rows, done.after.rows, done.duplicates, done.dead) == (6, 3, 3, 0)
    assert acme.read_parsed_keys() == {row.key for row in rows}


@pytest.mark.slow
def test_dead_rows_leave_no_bytes_in_any_file(
    acme: TenantLake, folder: Path, parsed_row: ParsedMaker, chunk_set: ChunkSetMaker
) -> None:
    kept, dead = parsed_row("keepsake prose " * 9), parsed_row("forbidden prose " * 9)
    kept_set, dead_set = chunk_set("keepsake chunk"), chunk_set("forbidden chunk", "also forbidden")
    kept_hash, dead_hash = sha256_hex("keepsake"), sha256_hex("forbidden")
    needle = np.array([[0.123, 0.456, 0.789, 0.321]], np.float32)
    acme.append_parsed([kept, dead])
    acme.append_chunk_sets([dead_set])
    acme.append_chunk_sets([kept_set])
    acme.append_vectors(E, [kept_hash], np.ones((1, 4), np.float32))
    acme.append_vectors(E, [dead_hash], needle)
    acme.append_vectors(F, [kept_hash], np.ones((1, 2), np.float32))
    packed = needle.tobytes().decode("latin-1")
    before = everything_in(folder)
    assert "forbidden prose" in before
    assert "forbidden chunk" in before
    assert packed in before

    done = acme.compact(LiveKeys({kept.key}, {kept_set.key}, {kept_hash}, {E}))

    after = everything_in(folder)
    for trace in ("forbidden", packed, dead.key, dead_set.key, dead_hash, "openai"):
        assert trace not in after
    assert done["parsed_text"].dead == done["chunks"].dead == 1
    assert acme.parsed([kept.key, dead.key]) == {kept.key: kept}
    assert acme.chunk_sets([kept_set.key, dead_set.key]) == {kept_set.key: kept_set}
    assert acme.vectors(E, [kept_hash, dead_hash]).hashes == (kept_hash,)
    assert embedding_tables(acme) == {f"embeddings/{build_embedder_slug(E)}"}


def test_incomplete_files_vanish(acme: TenantLake, folder: Path, parsed_row: ParsedMaker) -> None:
    acme.append_parsed([parsed_row("a")])
    (table,) = folder.glob("acme/1/parsed_text/*")
    left = [
        table / "part-00000-x-c000.zstd.parquet",  # written, never committed
        table / "part-00000-y-c000.zstd.parquet#1",  # not renamed yet
        table / "_delta_log" / "00000000000000000001.json#2",
    ]
    for path in left:
        path.write_text("forbidden")
    acme.compact()
    assert [path for path in left if path.exists()] == []
    assert acme.read_parsed_keys() == {parsed_row("a").key}


def test_a_table_can_lose_all_its_rows(acme: TenantLake, parsed_row: ParsedMaker) -> None:
    acme.append_parsed([parsed_row("a")])
    acme.compact(LiveKeys(parsed=set()))
    assert acme.read_parsed_keys() == set()
    assert acme.parsed(["a"]) == {}
    assert acme.find_missing_parsed(["a"]) == {"a"}
    assert acme.size()["parsed_text"].rows == 0
    acme.append_parsed([parsed_row("a")])
    assert acme.read_parsed_keys() == {parsed_row("a").key}


@pytest.mark.slow
def test_the_log_contains_no_text_or_vectors(
    acme: TenantLake, folder: Path, parsed_row: ParsedMaker, chunk_set: ChunkSetMaker
) -> None:
    vector = np.full((1, 4), 0.123, np.float32)
    for n in range(45):  # past two checkpoints
        acme.append_parsed([parsed_row(f"forbidden {n}")])
    acme.append_chunk_sets([chunk_set("forbidden chunk")])
    acme.append_vectors(E, [sha256_hex("x")], vector)
    logs = [log for log in folder.rglob("_delta_log") if log.is_dir()]
    contents = "".join(map(everything_in, logs))
    assert len(logs) == 3
    assert any(p.name.endswith(".checkpoint.parquet") for log in logs for p in log.iterdir())
    assert parsed_row("forbidden 44").key in contents  # proves that the search works
    assert "forbidden" not in contents
    assert vector[0, :1].tobytes().decode("latin-1") not in contents


@pytest.mark.slow
def test_many_small_files_make_compaction_due(lake: Lake, acme: TenantLake) -> None:
    assert acme.due() == []
    texts, _ = fill(acme, 31)
    assert acme.due() == []
    acme.append_vectors(E, [sha256_hex("more")], np.ones((1, 4), np.float32))
    [name] = acme.due()
    assert name.startswith("embeddings/")
    assert lake.tenant("acme", 1).due() == []  # no table was used: none is opened for it
    [(compacted, result)] = acme.compact_due().items()
    assert compacted == name
    assert (result.before.files, result.after.files, result.dead) == (32, 1, 0)
    assert acme.due() == []
    assert acme.compact_due() == {}
    assert acme.find_missing_vectors(E, texts) == set()


@pytest.mark.slow
def test_large_tables_become_ranges(acme: TenantLake, monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(EMBEDDINGS_TABLE, file_bytes=4_000)
    monkeypatch.setattr("rag_assets.storage.lake.rows.EMBEDDINGS_TABLE", small)
    texts, _ = fill(acme, 40)
    (done,) = (d for name, d in acme.compact().items() if name.startswith("embeddings/"))
    assert 4 < done.after.files < done.before.files
    assert done.after.rows == len(texts)
    assert acme.read_vector_hashes(E) == set(texts)


def test_large_files_lose_needless_rows(acme: TenantLake, monkeypatch: pytest.MonkeyPatch) -> None:
    large = replace(EMBEDDINGS_TABLE, file_bytes=2)  # no file is small
    monkeypatch.setattr("rag_assets.storage.lake.rows.EMBEDDINGS_TABLE", large)
    for texts in (["a"], ["b"], ["a", "c"], ["dead"]):
        acme.append_vectors(E, texts, np.ones((len(texts), 4), np.float32))
    (done,) = acme.compact(LiveKeys(texts={"a", "b", "c"})).values()
    assert (done.duplicates, done.dead, done.before.rows, done.after.rows) == (1, 1, 5, 3)
    assert acme.read_vector_hashes(E) == {"a", "b", "c"}


def test_only_keys_have_statistics(acme: TenantLake, parsed_row: ParsedMaker) -> None:
    acme.append_parsed([parsed_row("a")])
    table = acme._tables.parsed().open()
    assert table is not None
    assert table.metadata().configuration["delta.dataSkippingStatsColumns"] == "key"
    statistics = pl.DataFrame(table.get_add_actions(flatten=True)).columns
    bounds = {name for name in statistics if name.startswith(("min.", "max."))}
    assert bounds == {"min.key", "max.key"}


def test_a_lost_lock_stops_compaction_without_losing_rows(lake: Lake, acme: TenantLake) -> None:
    texts, _ = fill(acme, 6)
    for allowed in range(5):
        left = allowed

        def guard() -> None:
            nonlocal left
            if left == 0:
                raise TenantLocked("the lock was lost")
            left -= 1

        writer = lake.tenant("acme", 1, guard=guard)
        try:
            writer.compact()
        except TenantLocked:
            assert acme.find_missing_vectors(E, texts) == set()
            continue
        break
    else:
        pytest.fail("compaction never ended")
    assert allowed == 3  # 1 leaves duplicate rows, 2 unreferenced files, 3 completes
    assert acme.read_vector_hashes(E) == set(texts)


def file(name: str, size: int, first: str = "0", last: str = "f") -> DataFile:
    return DataFile(name, size, 1, first, last)


def test_large_files_are_not_rewritten_until_they_overlap() -> None:
    small = [file("s1", 1), file("s2", 2)]
    ranges = [file(f"r{n}", 90, str(n), f"{n}z") for n in range(9)]
    assert {f.path for f in select_files_to_merge([*small, *ranges], 100, set())} == {"s1", "s2"}
    assert select_files_to_merge([small[0], *ranges], 100, set()) == []
    assert [f.path for f in select_files_to_merge(ranges, 100, {"r3"})] == ["r3"]
    layered = [file(f"l{n}", 90) for n in range(9)]
    assert len(select_files_to_merge([small[0], *layered], 100, set())) == 10
    assert select_files_to_merge(layered[:8], 100, set()) == []


def test_overlap_depth() -> None:
    assert compute_overlap_depth([]) == 0
    assert compute_overlap_depth([file("a", 1, "0", "3"), file("b", 1, "4", "7")]) == 1
    two_deep = [file("a", 1, "0", "4"), file("b", 1, "4", "7"), file("c", 1, "5", "6")]
    assert compute_overlap_depth(two_deep) == 2


def test_a_table_with_former_columns_is_ignored_until_compaction_deletes_it(
    acme: TenantLake, folder: Path, parsed_row: ParsedMaker
) -> None:
    former = folder / "acme/1/parsed_text/0123456789ab"
    write_deltalake(str(former), pl.DataFrame({"key": ["a"], "text": ["of an earlier release"]}))
    row = parsed_row("a")
    assert acme.find_missing_parsed([row.key]) == {row.key}
    acme.append_parsed([row])
    assert acme.parsed([row.key]) == {row.key: row}
    assert former.exists()
    acme.compact()
    assert not former.exists()
    assert acme.parsed([row.key]) == {row.key: row}


@pytest.mark.parametrize("has_tables", [True, False])
def test_spooled_vectors_outlive_only_compaction(acme: TenantLake, has_tables: bool) -> None:
    if has_tables:
        fill(acme, 1)

    def spool_a_call() -> None:
        spool = acme.spool(E, 4)
        assert spool is not None
        spool.reserve(1).fill([sha256_hex("paid")], np.ones((1, 4), dtype=np.float32))

    spool_a_call()
    acme.compact(LiveKeys())
    assert acme.store_spooled(E, 4) == 1
    assert acme.store_spooled(E, 4) == 0, "once"
    spool_a_call()
    acme.compact(LiveKeys(), DeadKeys())
    assert acme.store_spooled(E, 4) == 0
