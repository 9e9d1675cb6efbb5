"""A table that stays open sees the changes of other writers."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.common.hashing import sha256_hex
from rag_assets.storage.lake.model import LiveKeys
from rag_assets.storage.lake.store import Lake, TenantLake

E = "local/minilm@4"


def texts(*numbers: int) -> list[str]:
    return [sha256_hex(str(number)) for number in numbers]


def append(lake: TenantLake, *numbers: int) -> None:
    vectors = [[number, 1, 1, 1] for number in numbers]
    lake.append_vectors(E, texts(*numbers), np.array(vectors, np.float32))


def held(lake: TenantLake, *numbers: int) -> list[int]:
    found = lake.vectors(E, texts(*numbers)).by_hash()
    return [
        n for n in numbers if (row := found.get(sha256_hex(str(n)))) is not None and row[0] == n
    ]


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


def test_files_that_another_writer_merged_are_read_anew(
    acme: TenantLake, other: TenantLake
) -> None:
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
        patched.setattr("rag_assets.storage.lake.table._MOST_KEYS", 12)
        lake = Lake(str(tmp_path_factory.mktemp("lake"))).tenant("acme", 1)
        present: set[int] = set()
        for numbers in data:
            append(lake, *numbers)
            present |= set(numbers)
            assert set(held(lake, *range(41))) == present
            missing = lake.find_missing_vectors(E, texts(*range(41)))
            assert missing == set(texts(*range(41))) - set(texts(*present))
