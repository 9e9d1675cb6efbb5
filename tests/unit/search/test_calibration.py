"""The threshold of a question is above random passages' scores, and below relevant ones'."""

from __future__ import annotations

import random

import pytest

from rag_assets.search.scoring import compute_question_floor, compute_threshold


def chance(seed: int, count: int = 40, middle: float = 0.1, spread: float = 0.05) -> list[float]:
    generator = random.Random(seed)
    return [generator.gauss(middle, spread) for _ in range(count)]


@pytest.mark.parametrize("middle", [-0.2, 0.1, 0.7])
def test_a_floor_moves_with_the_embedders_cosines(middle: float) -> None:
    floors = [compute_question_floor(chance(seed, middle=middle)) for seed in range(30)]
    assert compute_threshold(floors) == pytest.approx(middle + 0.05, abs=0.01)


def test_relevant_passages_among_the_random_ones_raise_a_floor_little() -> None:
    alone = compute_threshold([compute_question_floor(chance(seed)) for seed in range(30)])
    mixed = compute_threshold(
        [compute_question_floor([*chance(seed), 0.6, 0.65, 0.7]) for seed in range(30)]
    )
    assert alone <= mixed < alone + 0.02


def test_equal_cosines_are_their_own_floor() -> None:
    assert compute_question_floor([0.3] * 5) == 0.3
    assert compute_question_floor([0.3]) == 0.3
