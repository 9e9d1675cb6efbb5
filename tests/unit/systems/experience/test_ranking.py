"""The order of patterns, and which of them refer to each other."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.api.experience_responses import Pattern
from rag_assets.systems.experience.ranking import (
    add_conflicts,
    choose_label,
    compute_wilson_bound,
    rank_patterns,
)

DAY = datetime(2026, 1, 1, tzinfo=UTC)
PATTERN = Pattern(
    id=UUID(int=1),
    entry_type="failure_solution",
    quality="HIGH",
    problem="p",
    solution="s",
    when_to_try="w",
    success_count=1,
    failure_count=0,
    label="Less Common",
    score=0.8,
    agent_type="any",
    gate_type=None,
    task_type=None,
    technology=None,
    projects=(),
    first_embedded_at=DAY,
    last_embedded_at=DAY,
)
counts = st.integers(0, 2_000)


def pattern(number: int, **changes: object) -> Pattern:
    return replace(PATTERN, id=UUID(int=number), **changes)


@pytest.mark.parametrize(
    ("successes", "label"),
    [(1, "Less Common"), (2, "Less Common"), (3, "Moderate"), (4, "Moderate"), (5, "Most Common")],
)
def test_labels_begin_at_three_and_five(successes: int, label: str) -> None:
    assert choose_label(successes) == label
    assert choose_label(successes, successes) == label
    assert choose_label(successes, successes + 1) == "Mostly Failed"


@pytest.mark.parametrize(
    ("successes", "failures", "bound"),
    # Of the interval of Wilson for 1 of 1, 5 of 5, 8 of 10 and 0 of 3, at 95 %.
    [(1, 0, 0.2065), (5, 0, 0.5655), (8, 2, 0.4902), (0, 3, 0.0), (0, 0, 0.0)],
)
def test_the_bound_is_that_of_wilson(successes: int, failures: int, bound: float) -> None:
    assert compute_wilson_bound(successes, failures) == pytest.approx(bound, abs=1e-4)


@given(counts, counts)
def test_a_success_lifts_and_a_failure_lowers_the_bound(successes: int, failures: int) -> None:
    bound = compute_wilson_bound(successes, failures)
    assert 0.0 <= bound <= 1.0
    assert compute_wilson_bound(successes + 1, failures) > bound or bound == 1.0
    if successes:
        assert compute_wilson_bound(successes, failures + 1) < bound


def test_of_one_problem_success_goes_before_quality_and_quality_before_cosine() -> None:
    order = [
        pattern(5, success_count=4, failure_count=0, score=0.76),
        pattern(4, quality="HIGHEST", score=0.77),
        pattern(3, score=0.9),
        pattern(1, score=0.8),
        pattern(2, score=0.8),
        pattern(6, success_count=3, failure_count=3, score=0.99),
        pattern(7, success_count=9, stale_paths=("gone.py",), score=0.99),
        pattern(8, success_count=6, failure_count=7, score=0.99),
    ]
    for shuffled in itertools.islice(itertools.permutations(order), 0, 40_000, 797):
        assert rank_patterns(shuffled, [UUID(int=0)] * len(order)) == order


def test_problems_are_ordered_by_relevance_however_often_others_were_solved() -> None:
    gate = pattern(1, quality="HIGHEST", success_count=40, score=-0.03)
    lessons = [pattern(2, score=0.23), pattern(3, success_count=2, score=0.21)]
    other = pattern(4, success_count=9, score=0.22)
    one, two, three = (UUID(int=number) for number in range(3))
    found = [gate, *lessons, other]
    # The best lesson of the nearest problem is not its nearest one.
    assert rank_patterns(found, [one, two, two, three]) == [lessons[1], lessons[0], other, gate]
    # The very error of the question goes before what is nearer.
    assert rank_patterns(found, [one, two, two, three], exact={gate.id})[0] == gate


def test_the_age_of_entries_changes_no_order() -> None:
    problems = [UUID(int=number // 2) for number in range(6)]
    patterns = [pattern(number + 1, success_count=number) for number in range(6)]
    order = [one.id for one in rank_patterns(patterns, problems)]
    for days in itertools.permutations(range(6)):
        aged = [
            replace(one, first_embedded_at=DAY, last_embedded_at=DAY + timedelta(days=60 * age))
            for one, age in zip(patterns, days, strict=True)
        ]
        assert [one.id for one in rank_patterns(aged, problems)] == order


def test_at_most_three_alternatives_stay_and_name_each_other() -> None:
    patterns = [pattern(number) for number in range(1, 6)]
    kept = add_conflicts(patterns, ["same", "other", "same", "same", "same"])
    assert [one.id.int for one in kept] == [1, 2, 3, 4]
    assert {one.id.int: {id_.int for id_ in one.conflicts_with} for one in kept} == {
        1: {3, 4},
        2: set(),
        3: {1, 4},
        4: {1, 3},
    }
