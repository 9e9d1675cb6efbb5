"""The order of patterns: by what is known of their success, never by their age."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from rag_assets.api.experience_responses import EntryType, Pattern

_Z = 1.959964
"""Of the normal distribution, for 95 %."""
_MOST_ALTERNATIVES = 3
_MOST_COMMON, _MODERATE = 5, 3


def label_of(successes: int) -> str:
    """How common a solution is, in the description's words."""
    if successes >= _MOST_COMMON:
        return "Most Common"
    return "Moderate" if successes >= _MODERATE else "Less Common"


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


def ranked(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Patterns in their order: fresh ones, then by success, quality, cosine and id.

    Without failures the bound grows with the successes, so that one rule orders all.
    """
    return sorted(patterns, key=_place)


def _place(pattern: Pattern) -> tuple[bool, float, bool, float, str]:
    bound = wilson_bound(pattern.success_count, pattern.failure_count)
    return (
        bool(pattern.stale_paths),
        -bound,
        pattern.quality != "HIGHEST",
        -(pattern.score or 0.0),
        str(pattern.id),
    )


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
