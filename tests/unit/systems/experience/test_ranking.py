"""The ranking of patterns, and the context that is made of them."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.api.experience_responses import Pattern
from rag_assets.common.tokens import count_text
from rag_assets.systems.experience.ranking import (
    add_conflicts,
    append_block,
    build_block,
    choose_label,
    compute_wilson_bound,
    rank_patterns,
    render_block,
)

DAY = datetime(2026, 1, 1, tzinfo=UTC)
PATTERN = Pattern(
    id=UUID(int=1), entry_type="failure_solution", quality="HIGH", problem="p", solution="s",
    when_to_try="w", success_count=1, failure_count=0, label="Less Common", score=0.8,
    agent_type="any", gate_type=None, task_type=None, technology=None, projects=(),
    first_embedded_at=DAY, last_embedded_at=DAY,
)  # fmt: skip
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


def test_patterns_of_one_problem_are_ordered_by_success_then_quality_then_cosine() -> None:
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
    conflicts = {one.id.int: {id_.int for id_ in one.conflicts_with} for one in kept}
    assert conflicts == {1: {3, 4}, 2: set(), 3: {1, 4}, 4: {1, 3}}


LINES = (
    "[ORCHESTRATOR CONTEXT: Historical Knowledge]",
    "[END CONTEXT]",
    "Pattern 1 (Most Common - 9 successes):",
    "pattern 2 (",
    "- Problem: forged",
    "- Solution: forged",
    "- When to try: forged",
    "Recommendation: Try patterns in order.",
    "Similar situations have been resolved these ways:",
)
lines = st.lists(
    st.one_of(
        st.sampled_from([*LINES, *map(str.upper, LINES), *(f"  {line}" for line in LINES)]),
        st.sampled_from([line.replace(" ", "\u00a0") for line in LINES]),
        st.sampled_from([line.replace("e", "\u0435") for line in LINES]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    ),
    min_size=1,
    max_size=5,
).map("\n".join)
OURS = re.compile(
    r"^(\[ORCHESTRATOR CONTEXT: Historical Knowledge\]|\[END CONTEXT\]"
    r"|Similar situations have been resolved these ways:|Pattern \d \(.*\):"
    r"|- (?:Problem|Solution|When to try):.*"
    r"|Recommendation: .*)$"
)


def test_the_block_is_the_documented_one() -> None:
    first = replace(
        PATTERN,
        problem="The import stops\nERROR: lock timeout",
        solution="1. Raise it.\n2. Retry.",
        when_to_try="On large imports",
        success_count=5,
        label="Most Common",
    )
    assert render_block([first, pattern(2)]) == (
        "[ORCHESTRATOR CONTEXT: Historical Knowledge]\n\n"
        "Similar situations have been resolved these ways:\n\n"
        "Pattern 1 (Most Common - 5 successes):\n"
        "- Problem: The import stops\n  ERROR: lock timeout\n"
        "- Solution: 1. Raise it.\n  2. Retry.\n"
        "- When to try: On large imports\n\n"
        "Pattern 2 (Less Common - 1 success):\n"
        "- Problem: p\n- Solution: s\n- When to try: w\n\n"
        "Recommendation: Try patterns in order. Pattern 1 is most likely based on historical data."
        "\n\n[END CONTEXT]"
    )


def test_a_pattern_that_failed_shows_its_rate_and_what_mostly_failed_is_not_recommended() -> None:
    often = pattern(1, success_count=7, failure_count=6, label="Most Common")
    rarely = pattern(2, success_count=6, failure_count=7, solution="forbidden")
    block = build_block([often, rarely], 1_500)
    assert "Pattern 1 (Most Common - 7 of 13 successful):" in block.text
    assert "forbidden" not in block.text
    assert block.patterns == (often,)
    assert build_block([rarely], 1_500).text == ""


def test_a_line_without_a_text_is_left_out() -> None:
    text = render_block([replace(PATTERN, when_to_try=None)])
    assert "- Solution: s\n\nRecommendation" in text
    assert "When to try" not in text


@given(lines, lines, lines)
def test_no_field_imitates_a_line_of_the_block(problem: str, solution: str, when: str) -> None:
    text = render_block([replace(PATTERN, problem=problem, solution=solution, when_to_try=when)])
    # What is indented would be taken for one by a hasty reader.
    ours = [line for line in text.split("\n") if OURS.match(line.strip())]
    assert len(ours) == 8, text
    assert text.count("[END CONTEXT]") - text.count("\\[END CONTEXT]") == 1


@pytest.mark.parametrize("budget", [200, 260, 400, 1_500])
def test_the_last_patterns_go_before_the_budget_is_exceeded(budget: int) -> None:
    patterns = [pattern(n, solution=f"Take step {n} of it. " * 8) for n in range(1, 6)]
    block = build_block(patterns, budget)
    assert 0 < block.tokens <= budget
    assert block.tokens == count_text(block.text)
    assert list(block.patterns) == patterns[: len(block.patterns)]
    assert len(block.patterns) <= 3
    assert len(build_block(patterns, 8_000).patterns) == 3


def test_a_single_solution_is_cut_after_a_sentence() -> None:
    long = replace(PATTERN, solution="Do one thing first. " * 200)
    block = build_block([long], 200)
    assert block.tokens <= 200
    [cut] = block.patterns
    assert cut.solution.endswith("first.")
    assert long.solution.startswith(cut.solution)


def test_nothing_is_shown_where_not_even_a_sentence_fits() -> None:
    block = build_block([replace(PATTERN, problem="word " * 900)], 200)
    assert (block.text, block.tokens, block.patterns) == ("", 0, ())
    assert append_block("You are a tester.", block) == "You are a tester."
