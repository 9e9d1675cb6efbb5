"""Lost and damaged files are named and skipped by checks, and their rows are recovered."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from rag_assets.common.errors import LakeDamaged, ServiceUnavailable
from rag_assets.common.hashing import HashRange, sha256_hex
from rag_assets.storage.lake.location import build_embedder_slug
from rag_assets.storage.lake.model import LiveKeys
from rag_assets.storage.lake.store import Lake, TenantLake

EMBEDDER = "local/minilm@4"


def hashes(first: int, count: int) -> list[str]:
    return [sha256_hex(f"text {n}") for n in range(first, first + count)]


def fill(lake: TenantLake) -> None:
    """Write two files of vectors."""
    for first in (0, 5):
        lake.append_vectors(EMBEDDER, hashes(first, 5), vectors(first, 5))


def vectors(first: int, count: int) -> np.ndarray:
    numbers = np.random.default_rng(7).standard_normal((20, 4), dtype=np.float32)
    return numbers[first : first + count]


def data_files(folder: Path) -> list[Path]:
    table = folder / "acme" / "1" / "embeddings" / build_embedder_slug(EMBEDDER)
    return sorted(table.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)


def logs(folder: Path) -> list[Path]:
    table = folder / "acme" / "1" / "embeddings" / build_embedder_slug(EMBEDDER)
    return sorted((table / "_delta_log").glob("*.json"))


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 10)


def garble(file: Path) -> None:
    file.write_bytes(b"x" * file.stat().st_size)


@pytest.mark.parametrize(
    ("damage", "fault"), [(Path.unlink, "missing"), (cut, "cut"), (garble, "unreadable")]
)
def test_a_damaged_file_is_named_left_out_and_dropped(
    lake: Lake, folder: Path, damage: Callable[[Path], None], fault: str
) -> None:
    acme = lake.tenant("acme", 1)
    fill(acme)
    assert acme.find_damaged_files(HashRange()) == []
    first = data_files(folder)[0]
    size = first.stat().st_size
    damage(first)
    fresh = lake.tenant("acme", 1)
    with pytest.raises(ServiceUnavailable) as raised:
        fresh.read_vector_hashes(EMBEDDER)
    assert "--repair" in (raised.value.hint or "")
    [found] = fresh.find_damaged_files()
    assert (found.path, found.fault, found.bytes) == (first.name, fault, size)
    kept = set(hashes(5, 5))
    assert fresh.readable().read_vector_hashes(EMBEDDER) == kept
    assert fresh.readable().find_missing_vectors(EMBEDDER, hashes(0, 10)) == set(hashes(0, 5))
    fresh.drop_damaged([found])
    assert fresh.read_vector_hashes(EMBEDDER) == kept
    assert fresh.find_damaged_files() == []


@pytest.mark.parametrize("value", ["hash", "vector"])
@pytest.mark.parametrize("bits", [1, 255])
def test_altered_bytes_name_their_file(lake: Lake, folder: Path, value: str, bits: int) -> None:
    fill(lake.tenant("acme", 1))
    first = data_files(folder)[0]
    content = bytearray(first.read_bytes())
    written = {"hash": hashes(2, 1)[0].encode(), "vector": vectors(2, 1).tobytes()}
    at = content.index(written[value]) + 4
    content[at : at + 8] = bytes(byte ^ bits for byte in content[at : at + 8])
    first.write_bytes(content)
    [found] = lake.tenant("acme", 1).find_damaged_files(HashRange())
    assert found.path == first.name
    readable = lake.tenant("acme", 1).readable().vectors(EMBEDDER, hashes(0, 10)).by_hash()
    right = dict(zip(hashes(0, 10), vectors(0, 10), strict=True))
    assert all(np.array_equal(readable[key], right[key]) for key in readable)
    with pytest.raises(LakeDamaged, match=first.name):
        lake.tenant("acme", 1).read_packed_vectors(EMBEDDER, HashRange())


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_altered_log_is_damage(lake: Lake, folder: Path, share: float) -> None:
    fill(lake.tenant("acme", 1))
    log = logs(folder)[-1]
    content = bytearray(log.read_bytes())
    at = int(len(content) * share)
    content[at : at + 8] = bytes(byte ^ 255 for byte in content[at : at + 8])
    log.write_bytes(content)
    acme = lake.tenant("acme", 1)
    with pytest.raises(LakeDamaged, match="_delta_log"):
        acme.read_vector_hashes(EMBEDDER)
    assert acme.readable().read_vector_hashes(EMBEDDER) == set()
    acme.drop_damaged(acme.find_damaged_files())
    acme.salvage(LiveKeys(texts=frozenset(hashes(0, 10))), EMBEDDER, 4)
    assert acme.read_vector_hashes(EMBEDDER) == set(hashes(0, 10))


def test_rows_without_checksums_are_read(lake: Lake, folder: Path) -> None:
    acme = lake.tenant("acme", 1)
    acme.append_vectors(EMBEDDER, hashes(0, 5), vectors(0, 5))
    [file] = data_files(folder)
    table = DeltaTable(str(file.parent))
    former = pl.read_parquet(file).drop("checksum")
    write_deltalake(table, former, mode="overwrite", schema_mode="overwrite")
    acme = lake.tenant("acme", 1)
    assert acme.read_vector_hashes(EMBEDDER) == set(hashes(0, 5))
    acme.append_vectors(EMBEDDER, hashes(5, 5), vectors(5, 5))
    assert acme.vectors(EMBEDDER, hashes(0, 10)).vectors.shape == (10, 4)
    acme.compact()
    stored = acme.stored_vectors(EMBEDDER, hashes(0, 10))
    assert stored["checksum"].null_count() == 0


def test_damage_within_a_file_is_found_by_reading_it_whole(lake: Lake, folder: Path) -> None:
    acme = lake.tenant("acme", 1)
    acme.append_vectors(EMBEDDER, hashes(0, 5), vectors(0, 5))
    [file] = data_files(folder)
    with file.open("r+b") as opened:
        opened.seek(4)
        opened.write(b"\xff" * 200)
    assert lake.tenant("acme", 1).find_damaged_files() == []
    [found] = lake.tenant("acme", 1).find_damaged_files(HashRange())
    assert found.fault == "unreadable"


@pytest.mark.parametrize("how", ["cut", "removed", "newest removed"])
def test_rows_are_saved_when_the_log_is_damaged(lake: Lake, folder: Path, how: str) -> None:
    fill(lake.tenant("acme", 1))
    if how == "cut":
        os.truncate(logs(folder)[0], 10)
    else:
        for log in logs(folder)[-1 if how == "newest removed" else 0 :]:
            log.unlink()
    acme = lake.tenant("acme", 1)
    damaged = acme.find_damaged_files()
    fault = {"cut": ["unreadable"], "removed": ["missing"], "newest removed": []}[how]
    assert [file.fault for file in damaged] == fault
    readable = acme.readable().read_vector_hashes(EMBEDDER)
    assert readable == (set(hashes(0, 5)) if how == "newest removed" else set())
    acme.drop_damaged(damaged)
    wanted = set(hashes(0, 8)) - readable
    acme.salvage(LiveKeys(texts=wanted), EMBEDDER, 4)
    assert acme.read_vector_hashes(EMBEDDER) == set(hashes(0, 8)), "only what is asked for"
    assert acme.find_damaged_files() == []
    found = acme.vectors(EMBEDDER, hashes(0, 8)).by_hash()
    expected = dict(zip(hashes(0, 8), vectors(0, 8), strict=True))
    assert all(np.array_equal(found[key], expected[key]) for key in expected)
    # Its dimensions are known again.
    acme.append_vectors(EMBEDDER, hashes(15, 1), vectors(15, 1))


def test_vectors_are_read_by_ranges_of_hashes(lake: Lake) -> None:
    acme = lake.tenant("acme", 1)
    assert acme.read_packed_vectors(EMBEDDER, HashRange()) == {}
    fill(acme)
    parts = [acme.read_packed_vectors(EMBEDDER, part) for part in HashRange().parts(3)]
    assert sorted(key for part in parts for key in part) == sorted(hashes(0, 10))
    assert parts[0][min(hashes(0, 10))] in {row.astype("<f4").tobytes() for row in vectors(0, 10)}


def test_a_note_is_kept_beside_the_tables(lake: Lake, folder: Path) -> None:
    notes, name = lake.notes, "acme/1/catalog_mark.json"
    assert notes.read(name) is None
    notes.write(name, "7")
    notes.write(name, "8")
    assert lake.notes.read(name) == "8"
    assert lake.tenant("acme", 1).is_empty()
    assert [file.name for file in (folder / "acme" / "1").iterdir()] == ["catalog_mark.json"]
    notes.delete(name)
    notes.delete(name)
    assert notes.read(name) is None
