"""How reliably entries are recognized as equal, on pairs that were not used for tuning."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.merging import CHOSEN_ON, HELD_OUT, MODEL, compute_rates, read_pairs
from rag_assets.systems.experience.assignment import BOUNDS

LEAST_PRECISION, LEAST_RECALL = 0.98, 0.3


def test_merges_of_held_out_pairs_are_precise() -> None:
    found = compute_rates(read_pairs(HELD_OUT), BOUNDS[MODEL])
    assert found["precision"] >= LEAST_PRECISION
    assert found["recall"] >= LEAST_RECALL


def test_held_out_pairs_share_no_solution_with_tuning_pairs() -> None:
    assert texts(CHOSEN_ON).isdisjoint(texts(HELD_OUT))


def texts(path: Path) -> set[str]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row[side]["solution"] for row in rows for side in "ab"}
