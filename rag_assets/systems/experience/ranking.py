"""The order of patterns: by relevance and, of one problem, by success; never by their age."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal
from uuid import UUID

from rag_assets.api.experience_responses import EntryType, Pattern

_Z = 1.959964
"""Of the normal distribution, for 95 %."""
_MOST_ALTERNATIVES = 3
_MOST_COMMON, _MODERATE = 5, 3


def label_of(successes: int, failures: int = 0) -> str:
    """Return how common a solution is, in the description's words, unless it mostly failed."""
    if mostly_failed(successes, failures):
        return "Mostly Failed"
    if successes >= _MOST_COMMON:
        return "Most Common"
    return "Moderate" if successes >= _MODERATE else "Less Common"


def mostly_failed(successes: int, failures: int) -> bool:
    """Return whether a solution failed more often than it succeeded: it is not recommended."""
    return failures > successes


def quality_of(entry_type: EntryType) -> Literal["HIGH", "HIGHEST"]:
    """How sure an entry of a type is: a person's word at a gate goes before a test."""
    return "HIGH" if entry_type == "failure_solution" else "HIGHEST"


def wilson_bound(successes: int, failures: int) -> float:
    """The lower bound of a rate of success, at 95 %.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    Journal of the American Statistical Association 22 (1927).
    """
    trials = successes + failures
    if not trials:
        return 0.0
    rate, spread = successes / trials, _Z**2 / trials
    margin = _Z * math.sqrt(rate * (1 - rate) / trials + spread / (4 * trials))
    return (rate + spread / 2 - margin) / (1 + spread)


def rank(
    patterns: Sequence[Pattern],
    problems: Sequence[UUID],
    exact: Collection[UUID] = (),
) -> list[Pattern]:
    """Return patterns by the relevance of their problems, of one problem by their success.

    Success decides only between different advice on one problem: that a gate was often passed says
    nothing about a migration. What is about code that has changed comes after all fresh patterns,
    what mostly failed after everything.

    Args:
        patterns: that were found.
        problems: what each of them solves: equal for alternatives.
        exact: patterns with the very error of the question; their problems come first.
    """
    relevance: dict[UUID, tuple[bool, float]] = {}
    for pattern, problem in zip(patterns, problems, strict=True):
        own = (pattern.id in exact, pattern.score or 0.0)
        relevance[problem] = max(own, relevance.get(problem, own))

    def place(pair: tuple[Pattern, UUID]) -> tuple[object, ...]:
        pattern, problem = pair
        is_exact, score = relevance[problem]
        return (
            mostly_failed(pattern.success_count, pattern.failure_count),
            bool(pattern.stale_paths),
            *(not is_exact, -score, str(problem)),
            -wilson_bound(pattern.success_count, pattern.failure_count),
            pattern.quality != "HIGHEST",
            *(-(pattern.score or 0.0), str(pattern.id)),
        )

    pairs = sorted(zip(patterns, problems, strict=True), key=place)
    return [pattern for pattern, _ in pairs]


def with_conflicts(patterns: Sequence[Pattern], problems: Sequence[object]) -> list[Pattern]:
    """At most three alternatives for one problem, each naming the others.

    Args:
        patterns: in their order.
        problems: what each of them solves: equal for alternatives.
    """
    seen: Counter[object] = Counter()
    kept: list[tuple[Pattern, object]] = []
    for pattern, problem in zip(patterns, problems, strict=True):
        seen[problem] += 1
        if seen[problem] <= _MOST_ALTERNATIVES:
            kept.append((pattern, problem))
    return [
        replace(
            pattern,
            conflicts_with=tuple(
                other.id for other, same in kept if same == problem and other.id != pattern.id
            ),
        )
        for pattern, problem in kept
    ]
