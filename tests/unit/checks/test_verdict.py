"""Cutting work into bounded batches, and what a verdict looks like to Dagster."""

from __future__ import annotations

import dagster as dg
from hypothesis import given
from hypothesis import strategies as st

from checks.results import result_of
from checks.verdict import Compared, Verdict, batches
from rag_assets.common.formatting import counted


@given(
    st.lists(st.integers(0, 100), max_size=60),
    st.integers(1, 10),
    st.integers(1, 200),
)
def test_batches_keep_order_and_bounds(weights: list[int], size: int, most: int) -> None:
    items = list(range(len(weights)))
    cut = list(batches(items, size, weights, most))
    assert [item for batch in cut for item in batch] == items
    for batch in cut:
        assert 1 <= len(batch) <= size
        assert len(batch) == 1 or sum(weights[item] for item in batch) <= most


def test_batches_without_weights_are_full() -> None:
    assert [list(batch) for batch in batches("abcde", 2)] == [["a", "b"], ["c", "d"], ["e"]]


def test_counted() -> None:
    assert counted(1, "entry", "entries") == "1 entry"
    assert counted(2_000, "entry", "entries") == "2,000 entries"
    assert counted(0, "chunk") == "0 chunks"


def test_a_result_shows_expected_against_actual_and_fifty_offenders() -> None:
    verdict = Verdict(
        passed=False,
        description="60 wrong",
        compared=(Compared("wrong", 0, 60), Compared("uuid", "a", None)),
        columns=("document", "fault"),
        offenders=tuple((f"files/{n}.md", n) for n in range(60)),
        severity="WARN",
        notes={"data docs": "/data-docs/team/chunks/index.html", "rows": 3},
    )
    result = result_of(verdict)
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    metadata = result.metadata
    compared = metadata["expected and actual"]
    assert isinstance(compared, dg.TableMetadataValue)
    assert [dict(record.data) for record in compared.records] == [
        {"what": "wrong", "expected": "0", "actual": "60"},
        {"what": "uuid", "expected": "a", "actual": "none"},
    ]
    offenders = metadata["first offenders"]
    assert isinstance(offenders, dg.TableMetadataValue)
    assert len(offenders.records) == 50
    assert metadata["offenders"] == dg.MetadataValue.int(60)
    assert metadata["data docs"] == dg.MetadataValue.url("/data-docs/team/chunks/index.html")
    assert metadata["rows"] == dg.MetadataValue.int(3)
