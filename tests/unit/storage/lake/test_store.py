import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.common.errors import BadVectors, DocumentRejected, ServiceUnavailable, TenantGone
from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.storage.lake.location import build_embedder_slug
from rag_assets.storage.lake.model import ChunkSetHead, ChunkSetRow, DroppedRow, LiveKeys, ParsedRow
from rag_assets.storage.lake.store import Lake, TenantLake

from .crash_writer import EMBEDDER, ROWS, batch_of

ParsedMaker = Callable[[str], ParsedRow]
ChunkSetMaker = Callable[..., ChunkSetRow]
ODD = [
    "plain",
    "\ufeffbom \x00 nul \r\n\u2028\u2029\x85\t",
    "👩‍👩‍👧‍👦 e\u0301 İıß \U0010ffff \ufffe \ue000",
    "\u202eright to left\u202c שלום",
    "quote ' \" \\ $ {} %s",
    "x",
    "長" * 50_000,
]
MINI, LARGE = "local/minilm@4+ab/cd ef", "openai/text-embedding-3-large@8"


def unit(count: int, dimensions: int = 4, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((count, dimensions), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def hashes(count: int, kind: str = "t") -> list[str]:
    return [sha256_hex(f"{kind}{n}") for n in range(count)]


def test_parsed_text_is_read_as_written(acme: TenantLake, parsed_row: ParsedMaker) -> None:
    rows = [parsed_row(text) for text in ODD]
    bare = ParsedRow("bare", "d", ParsedText("", ()))
    acme.append_parsed([*rows, bare])
    found = acme.parsed([row.key for row in rows] + ["bare", "unknown"])
    assert found == {row.key: row for row in [*rows, bare]}
    assert all(found[row.key].created_at == row.created_at for row in rows)


def test_chunk_sets_are_read_as_written(acme: TenantLake, chunk_set: ChunkSetMaker) -> None:
    full, empty = chunk_set(*ODD), ChunkSetRow("none", "digest of nothing", ())
    acme.append_chunk_sets([full, empty])
    assert acme.chunk_sets([full.key, "none", "unknown"]) == {full.key: full, "none": empty}
    assert acme.find_missing_chunk_sets(["none", full.key, "unknown"]) == {"unknown"}
    expected = {full.key: tuple(map(sha256_hex, ODD)), "none": ()}
    assert acme.read_chunk_hashes([full.key, "none", "unknown"]) == expected
    withheld = (DroppedRow(0, 0, 9, ("aws",)), DroppedRow(3, 20, 29, ("aws", "jwt")))
    acme.append_chunk_sets([replace(full, key="withheld", dropped=withheld, language="sv")])
    assert acme.chunk_set_heads([full.key, "withheld", "none", "unknown"]) == {
        full.key: ChunkSetHead(full.digest, expected[full.key], len(full.dropped)),
        "withheld": ChunkSetHead(full.digest, expected[full.key], 2, "sv"),
        "none": ChunkSetHead("digest of nothing", (), 0),
    }


def test_vectors_are_read_bit_for_bit(acme: TenantLake) -> None:
    texts, vectors = hashes(5_000), unit(5_000)
    acme.append_vectors(MINI, texts, vectors)
    wanted = [*texts[::100], "unknown"]
    found = acme.vectors(MINI, wanted)
    assert set(found.hashes) == set(texts[::100])
    assert found.vectors.dtype == np.float32
    for text, vector in found.by_hash().items():
        assert vector.tobytes() == vectors[texts.index(text)].tobytes()


def test_each_embedder_has_its_own_vectors(acme: TenantLake) -> None:
    texts = hashes(3)
    acme.append_vectors(MINI, texts, unit(3))
    acme.append_vectors(LARGE, texts[:1], unit(1, 8))
    assert acme.find_missing_vectors(MINI, texts) == set()
    assert acme.find_missing_vectors(LARGE, texts) == set(texts[1:])
    assert acme.vectors(LARGE, texts).vectors.shape == (1, 8)
    slugs = {build_embedder_slug(embedder) for embedder in (MINI, LARGE)}
    assert acme.size().keys() == {f"embeddings/{slug}" for slug in slugs}
    assert acme.read_vector_hashes(MINI) == set(texts)


def test_embedders_with_similar_names_are_separate(acme: TenantLake) -> None:
    acme.append_vectors("a/b@4", hashes(1), unit(1))
    assert acme.find_missing_vectors("a.b@4", hashes(1)) == set(hashes(1))
    assert acme.find_missing_vectors("A/B@4", hashes(1)) == set(hashes(1))


@pytest.mark.parametrize(
    "vectors",
    [
        unit(2, 5),
        unit(3),
        unit(2)[0],
        np.zeros((2, 0), np.float32),
        np.array([[1, 0, 0, 0], [1, np.nan, 0, 0]], np.float32),
        np.array([[1, 0, 0, 0], [1, np.inf, 0, 0]], np.float32),
        np.array([[1, 0, 0, 0], [0, 0, 0, 0]], np.float32),
        np.ones((2, 4), np.int32),
    ],
    ids=["dimension", "count", "flat", "none", "nan", "infinite", "zero", "integers"],
)
def test_bad_vectors_are_rejected(acme: TenantLake, vectors: np.ndarray) -> None:
    acme.append_vectors(MINI, hashes(1, "good"), unit(1))
    with pytest.raises(BadVectors):
        acme.append_vectors(MINI, hashes(2), vectors)
    assert acme.read_vector_hashes(MINI) == set(hashes(1, "good"))


def test_missing_tables_read_as_empty(acme: TenantLake, folder: Path) -> None:
    assert acme.find_missing_parsed(["a"]) == {"a"}
    assert acme.parsed(["a"]) == {}
    assert acme.chunk_sets(["a"]) == acme.read_chunk_hashes(["a"]) == {}
    assert len(acme.vectors(MINI, ["a"])) == 0
    assert acme.read_parsed_keys() == acme.read_vector_hashes(MINI) == set()
    assert acme.size() == {}
    acme.purge()
    assert not folder.exists()


@pytest.mark.slow
def test_methods_without_keys_load_no_library() -> None:
    code = """
import sys
from rag_assets.storage.lake.store import Lake
lake = Lake("nowhere").tenant("acme", 1)
assert lake.find_missing_parsed([]) == lake.find_missing_chunk_sets(()) == set()
assert lake.find_missing_vectors("e", []) == set()
assert len(lake.vectors("e", []).hashes) == 0
assert lake.parsed([]) == lake.chunk_sets([]) == lake.read_chunk_hashes([]) == {}
lake.append_parsed([]); lake.append_chunk_sets([]); lake.append_vectors("e", [], [])
assert lake.compact_due() == lake.compact() == {}
print([m for m in ("polars", "deltalake", "fsspec") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_duplicates_are_read_once(
    acme: TenantLake, parsed_row: ParsedMaker, chunk_set: ChunkSetMaker
) -> None:
    row, chunks, texts = parsed_row("twice"), chunk_set("a", "b"), hashes(2)
    for _ in range(2):  # what a crash between commit and acknowledgement leaves
        acme.append_parsed([row, row])
        acme.append_chunk_sets([chunks])
        acme.append_vectors(MINI, texts + texts, np.concatenate([unit(2), unit(2)]))
    assert acme.parsed([row.key]) == {row.key: row}
    assert acme.read_chunk_hashes([chunks.key]) == {chunks.key: (sha256_hex("a"), sha256_hex("b"))}
    assert sorted(acme.vectors(MINI, texts).hashes) == sorted(texts)
    assert acme.size()["parsed_text"].rows == 2


def test_overlapping_files_are_read_once(acme: TenantLake) -> None:
    for texts in (["a", "b"], ["a", "c"], ["b", "c"]):  # any two of these share a key
        acme.append_vectors(MINI, texts, np.ones((2, 4), np.float32))
    assert sorted(acme.vectors(MINI, ["a", "b", "c"]).hashes) == ["a", "b", "c"]


def test_tenants_are_kept_separate(lake: Lake, acme: TenantLake, parsed_row: ParsedMaker) -> None:
    row = parsed_row("ours")
    acme.append_parsed([row])
    lake.tenant("acme", 2).append_parsed([parsed_row("next incarnation")])
    lake.tenant("acme.eu", 1).append_parsed([parsed_row("theirs")])
    assert lake.tenant("acme", 2).find_missing_parsed([row.key]) == {row.key}
    assert lake.tenant("acme.eu", 1).find_missing_parsed([row.key]) == {row.key}
    assert list(lake.incarnations()) == [("acme", 1), ("acme", 2), ("acme.eu", 1)]


def test_purge_deletes_one_incarnation_completely(
    lake: Lake, acme: TenantLake, folder: Path, parsed_row: ParsedMaker
) -> None:
    acme.append_parsed([parsed_row("old")])
    acme.append_vectors(MINI, hashes(1), unit(1))
    kept = lake.tenant("acme", 2)
    kept.append_parsed([parsed_row("new")])
    acme.purge()
    assert acme.read_parsed_keys() == set()
    assert [path.name for path in (folder / "acme").iterdir()] == ["2"]
    kept.purge()
    assert list(folder.iterdir()) == []


def test_a_writer_without_its_lock_writes_nothing(
    lake: Lake, folder: Path, parsed_row: ParsedMaker, chunk_set: ChunkSetMaker
) -> None:
    purged = False

    def guard() -> None:
        if purged:
            raise TenantGone("acme was purged")

    late = lake.tenant("acme", 1, guard=guard)
    late.append_parsed([parsed_row("in time")])
    lake.tenant("acme", 1).purge()
    purged = True
    for write in (
        lambda: late.append_parsed([parsed_row("late")]),
        lambda: late.append_chunk_sets([chunk_set("late")]),
        lambda: late.append_vectors(MINI, hashes(1), unit(1)),
        late.purge,
    ):
        with pytest.raises(TenantGone):
            write()
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_a_lone_surrogate_is_rejected_without_quoting_the_text(
    acme: TenantLake, parsed_row: ParsedMaker, chunk_set: ChunkSetMaker
) -> None:
    good = parsed_row("fine")
    bad = ParsedRow("bad key", "d", ParsedText("hunter2 \ud83d", ()))
    with pytest.raises(DocumentRejected, match="bad key") as caught:
        acme.append_parsed([good, bad])
    assert "hunter2" not in repr(caught.value)
    assert good.key not in caught.value.message
    assert caught.value.__context__ is None
    chunks = chunk_set("ok")
    with pytest.raises(DocumentRejected):
        acme.append_chunk_sets([chunks, ChunkSetRow("k", "\udc80", ())])
    assert acme.read_parsed_keys() == set()
    assert acme.find_missing_chunk_sets([chunks.key]) == {chunks.key}


def test_an_unwritable_location_is_reported(tmp_path: Path, parsed_row: ParsedMaker) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(ServiceUnavailable) as caught:
        Lake(str(blocked)).tenant("acme", 1).append_parsed([parsed_row("secret text")])
    assert caught.value.hint
    assert "secret text" not in str(caught.value)


E = "local/minilm@4"


def texts(*numbers: int) -> list[str]:
    return [sha256_hex(str(number)) for number in numbers]


def append(lake: TenantLake, *numbers: int) -> None:
    vectors = [[number, 1, 1, 1] for number in numbers]
    lake.append_vectors(E, texts(*numbers), np.array(vectors, np.float32))


def held(lake: TenantLake, *numbers: int) -> list[int]:
    found = lake.vectors(E, texts(*numbers)).by_hash()
    return [n for n in numbers if found.get(sha256_hex(str(n)), [None])[0] == n]


@pytest.fixture
def other(lake: Lake, acme: TenantLake) -> TenantLake:
    """Return another writer of the same tables."""
    return lake.tenant("acme", 1)


def test_rows_of_another_writer_are_seen(acme: TenantLake, other: TenantLake) -> None:
    assert held(acme, 1) == []
    append(other, 1)
    assert held(acme, 1, 2) == [1]
    append(other, 2)
    assert held(acme, 1, 2) == [1, 2]
    assert acme.find_missing_vectors(E, texts(1, 2, 3)) == set(texts(3))


def test_files_that_another_writer_merged_are_reread(acme: TenantLake, other: TenantLake) -> None:
    for number in range(24):
        append(acme, number)
    assert len(held(acme, *range(24))) == 24
    other.compact(LiveKeys(texts=set(texts(*range(23)))))
    append(other, 30)
    assert held(acme, 5, 22, 23, 30) == [5, 22, 30]
    append(acme, 31)
    assert held(other, 5, 31) == [5, 31]


def test_a_table_that_was_deleted_and_written_again_is_opened_again(
    acme: TenantLake, other: TenantLake, folder: Path
) -> None:
    for number in range(5):
        append(acme, number)
    assert held(acme, 0, 4) == [0, 4]
    shutil.rmtree(folder)
    append(other, 9)
    assert held(acme, 0, 9) == [9]
    append(acme, 10)
    assert held(other, 0, 9, 10) == [9, 10], "no version was written to a log that had gone"


@settings(max_examples=20)
@given(data=st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=9, unique=True), max_size=6))
def test_keys_are_found_whether_their_files_are_held_in_memory_or_not(
    data: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rag_assets.storage.lake.table._MAX_KEYS", 12)
        lake = Lake(str(tmp_path_factory.mktemp("lake"))).tenant("acme", 1)
        present: set[int] = set()
        for numbers in data:
            append(lake, *numbers)
            present |= set(numbers)
            assert set(held(lake, *range(41))) == present
            missing = lake.find_missing_vectors(E, texts(*range(41)))
            assert missing == set(texts(*range(41))) - set(texts(*present))


KILLS = 25
SCRIPT = Path(__file__).with_name("crash_writer.py")


def killed_writer(server: subprocess.Popen[str], first: int, chance: random.Random) -> list[int]:
    """Start a writer at batch `first`, kill it, and return the batches that it acknowledged."""
    assert server.stdin
    assert server.stdout
    print(first, file=server.stdin, flush=True)
    pid = int(server.stdout.readline())
    acknowledged = [int(server.stdout.readline()) for _ in range(chance.randint(0, 2))]
    time.sleep(chance.uniform(0.0, 0.1))
    os.kill(pid, signal.SIGKILL)
    return acknowledged + [int(line) for line in iter(server.stdout.readline, "dead\n")]


def assert_whole(lake: TenantLake, acknowledged: set[int]) -> set[int]:
    """Check that each batch is complete or absent, and every acknowledged one complete."""
    keys, hashes = lake.read_parsed_keys(), lake.read_vector_hashes(EMBEDDER)
    for found in (keys, hashes):
        batches = {int(key.split("-")[0]) for key in found}
        assert found == {f"{batch}-{row}" for batch in batches for row in range(ROWS)}
        assert batches >= acknowledged
    return {int(key.split("-")[0]) for key in keys}


@pytest.mark.slow
def test_a_killed_writer_leaves_the_state_before_or_after_its_commit(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake")).tenant("acme", 1)
    chance = random.Random(7)
    acknowledged: set[int] = set()
    first = 0
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), str(tmp_path / "lake")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        for _ in range(KILLS):
            acknowledged.update(killed_writer(server, first, chance))
            there = assert_whole(lake, acknowledged)
            first = max(there, default=-1) + 1
        assert server.stdin
        server.stdin.close()
    assert len(acknowledged) >= KILLS // 2  # otherwise the kills came too early

    lake.compact()

    there = assert_whole(lake, acknowledged)
    rows = [row for batch in sorted(there) for row in batch_of(batch)]
    assert lake.parsed([row.key for row in rows]) == {row.key: row for row in rows}
    vectors = lake.vectors(EMBEDDER, lake.read_vector_hashes(EMBEDDER)).by_hash()
    assert all(np.all(v == int(key.split("-")[0]) + 1) for key, v in vectors.items())
    sizes = lake.size()
    assert sizes["parsed_text"].rows == len(rows)
    on_disk = [p for p in tmp_path.rglob("*") if p.is_file() and "_delta_log" not in p.parts]
    assert sum(p.stat().st_size for p in on_disk) == sum(size.bytes for size in sizes.values())
