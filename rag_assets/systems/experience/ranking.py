"""Ranks patterns by relevance, and the alternatives for one problem by success; never by age."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal
from uuid import UUID

from rag_assets.api.experience_responses import EntryType, Pattern

_Z = 1.959964
"""Quantile of the normal distribution for 95 %."""
_MAX_ALTERNATIVES = 3
_MOST_COMMON, _MODERATE = 5, 3


def label_of(successes: int, failures: int = 0) -> str:
    """Return the label of a solution: how common it is, or that it mostly failed."""
    if has_mostly_failed(successes, failures):
        return "Mostly Failed"
    if successes >= _MOST_COMMON:
        return "Most Common"
    return "Moderate" if successes >= _MODERATE else "Less Common"


def has_mostly_failed(successes: int, failures: int) -> bool:
    """Return whether a solution failed more often than it succeeded."""
    return failures > successes


def quality_of(entry_type: EntryType) -> Literal["HIGH", "HIGHEST"]:
    """Return the quality of a type of entry: a person's decision at a gate ranks above a test."""
    return "HIGH" if entry_type == "failure_solution" else "HIGHEST"


def wilson_bound(successes: int, failures: int) -> float:
    """Return the lower bound of a success rate at 95 % confidence.

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
    """Return patterns by the relevance of their problems, then by success within one problem.

    Success orders only the alternatives for one problem, because success at one problem says
    nothing about another: how often a gate was passed is irrelevant to a migration. Patterns about
    changed code follow all others, and patterns that mostly failed are last.

    Args:
        patterns: the patterns to rank.
        problems: the problem of each pattern; equal for alternatives.
        exact: patterns with exactly the same error as the question; their problems come first.
    """
    relevance: dict[UUID, tuple[bool, float]] = {}
    for pattern, problem in zip(patterns, problems, strict=True):
        own = (pattern.id in exact, pattern.score or 0.0)
        relevance[problem] = max(own, relevance.get(problem, own))

    def place(pair: tuple[Pattern, UUID]) -> tuple[object, ...]:
        pattern, problem = pair
        is_exact, score = relevance[problem]
        return (
            has_mostly_failed(pattern.success_count, pattern.failure_count),
            bool(pattern.stale_paths),
            *(not is_exact, -score, str(problem)),
            -wilson_bound(pattern.success_count, pattern.failure_count),
            pattern.quality != "HIGHEST",
            *(-(pattern.score or 0.0), str(pattern.id)),
        )

    pairs = sorted(zip(patterns, problems, strict=True), key=place)
    return [pattern for pattern, _ in pairs]


def with_conflicts(patterns: Sequence[Pattern], problems: Sequence[object]) -> list[Pattern]:
    """Keep at most three alternatives for each problem; add to each the ids of the others.

    Args:
        patterns: the patterns in their order.
        problems: the problem of each pattern; equal for alternatives.
    """
    seen: Counter[object] = Counter()
    kept: list[tuple[Pattern, object]] = []
    for pattern, problem in zip(patterns, problems, strict=True):
        seen[problem] += 1
        if seen[problem] <= _MAX_ALTERNATIVES:
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
