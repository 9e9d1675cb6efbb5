from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from rag_assets.storage.lake.table import filter_rows
from tests.cost import assert_linear

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
