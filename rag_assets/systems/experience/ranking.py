"""Orders patterns for an answer, and renders them as a block of text for an agent.

Patterns are ordered by relevance, and the alternatives for one problem by success, never by age.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from rag_assets.api.experience_responses import EntryType, Pattern
from rag_assets.common.tokens import count_text
from rag_assets.search.contexts import escape_imitations, escape_places, fold_text
from rag_assets.search.hits import take_first_sentences

_NORMAL_QUANTILE = 1.959964
"""Quantile of the normal distribution for 95 %."""
_MAX_ALTERNATIVES = 3
_MAX_COMMON, _MODERATE = 5, 3


def choose_label(successes: int, failures: int = 0) -> str:
    """Return the label of a solution, such as "Most Common", by its successes and failures."""
    if has_mostly_failed(successes, failures):
        return "Mostly Failed"
    if successes >= _MAX_COMMON:
        return "Most Common"
    return "Moderate" if successes >= _MODERATE else "Less Common"


def has_mostly_failed(successes: int, failures: int) -> bool:
    """Return whether a solution failed more often than it succeeded."""
    return failures > successes


def determine_quality(entry_type: EntryType) -> Literal["HIGH", "HIGHEST"]:
    """Return the quality of an entry type: HIGHEST for a person's decision at a gate, else HIGH."""
    return "HIGH" if entry_type == "failure_solution" else "HIGHEST"


def compute_wilson_bound(successes: int, failures: int) -> float:
    """Return the lower bound of a success rate at 95 % confidence.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    Journal of the American Statistical Association 22 (1927).
    """
    trials = successes + failures
    if not trials:
        return 0.0
    rate, spread = successes / trials, _NORMAL_QUANTILE**2 / trials
    margin = _NORMAL_QUANTILE * math.sqrt(rate * (1 - rate) / trials + spread / (4 * trials))
    return (rate + spread / 2 - margin) / (1 + spread)


def rank_patterns(
    patterns: Sequence[Pattern],
    problems: Sequence[UUID],
    exact: Collection[UUID] = (),
) -> list[Pattern]:
    """Return patterns by the relevance of their problems, then by success within one problem.

    Success is not compared between problems: how often a gate was passed is irrelevant to a
    migration. Patterns about changed code follow all others; patterns that mostly failed are last.

    Args:
        problems: the problem of each pattern; equal for alternatives.
        exact: patterns with the question's own error; their problems come first.
    """
    relevance: dict[UUID, tuple[bool, float]] = {}
    for pattern, problem in zip(patterns, problems, strict=True):
        own = (pattern.id in exact, pattern.score or 0.0)
        relevance[problem] = max(own, relevance.get(problem, own))

    def compute_sort_key(pair: tuple[Pattern, UUID]) -> tuple[object, ...]:
        pattern, problem = pair
        is_exact, score = relevance[problem]
        return (
            has_mostly_failed(pattern.success_count, pattern.failure_count),
            bool(pattern.stale_paths),
            *(not is_exact, -score, str(problem)),
            -compute_wilson_bound(pattern.success_count, pattern.failure_count),
            pattern.quality != "HIGHEST",
            *(-(pattern.score or 0.0), str(pattern.id)),
        )

    pairs = sorted(zip(patterns, problems, strict=True), key=compute_sort_key)
    return [pattern for pattern, _ in pairs]


def add_conflicts(patterns: Sequence[Pattern], problems: Sequence[object]) -> list[Pattern]:
    """Return the first three patterns of each problem, each with the ids of the others.

    Args:
        problems: the problem of each pattern; equal for alternatives.
    """
    counter: Counter[object] = Counter()
    kept_pairs: list[tuple[Pattern, object]] = []
    for pattern, problem in zip(patterns, problems, strict=True):
        counter[problem] += 1
        if counter[problem] <= _MAX_ALTERNATIVES:
            kept_pairs.append((pattern, problem))
    return [
        replace(
            pattern,
            conflicts_with=tuple(
                other.id
                for other, other_problem in kept_pairs
                if other_problem == problem and other.id != pattern.id
            ),
        )
        for pattern, problem in kept_pairs
    ]


MAX_PATTERNS = 3
_HEADER = "[ORCHESTRATOR CONTEXT: Historical Knowledge]"
_INTRODUCTION = "Similar situations have been resolved these ways:"
_RECOMMENDATION = (
    "Recommendation: Try patterns in order. Pattern 1 is most likely based on historical data."
)
_END = "[END CONTEXT]"

# In text folded for comparison, characters that look like blanks may separate words.
_GAP = r"[^\w\n]*+"
_LINE_OF_A_BLOCK = re.compile(
    rf"""(?:\A|(?<=\n))[^\w\n]*?(?P<line>
        pattern{_GAP}\d
      | -{_GAP}(?:problem|solution|when{_GAP}to{_GAP}try)[^\w\n:]*+:
      | recommendation[^\w\n:]*+:
      | similar{_GAP}situations{_GAP}have
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class PatternBlock:
    """A block of text with patterns, for the context of an agent."""

    text: str
    tokens: int
    patterns: tuple[Pattern, ...]


def build_block(patterns: Sequence[Pattern], tokens: int) -> PatternBlock:
    """Return a block with the first patterns that fit.

    If not even the first pattern fits, its solution is shortened. Patterns that mostly failed are
    omitted, because the block recommends its patterns.

    Args:
        tokens: maximum size of the block, in cl100k_base tokens.
    """
    kept_patterns = [
        pattern
        for pattern in patterns
        if not has_mostly_failed(pattern.success_count, pattern.failure_count)
    ]
    kept_patterns = kept_patterns[:MAX_PATTERNS]
    while len(kept_patterns) > 1 and not _fits(kept_patterns, tokens):
        kept_patterns.pop()
    if kept_patterns and not _fits(kept_patterns, tokens):
        kept_patterns = _shorten(kept_patterns[0], tokens)
    if not kept_patterns:
        return PatternBlock("", 0, ())
    text = render_block(kept_patterns)
    return PatternBlock(text, count_text(text), tuple(kept_patterns))


def append_block(basic_context: str, block: PatternBlock) -> str:
    """Return the basic context and, after a blank line, the block."""
    if not block.text:
        return basic_context
    return f"{basic_context}\n\n{block.text}" if basic_context else block.text


def render_block(patterns: Sequence[Pattern]) -> str:
    """Return the text of a block with these patterns, numbered in their order."""
    parts = [_HEADER, "", _INTRODUCTION, ""]
    for number, pattern in enumerate(patterns, start=1):
        parts += [_render_heading(number, pattern)]
        parts += [
            f"- {name}: {_render_field(value)}"
            for name, value in (
                ("Problem", pattern.problem),
                ("Solution", pattern.solution),
                ("When to try", pattern.when_to_try),
            )
            if value is not None
        ]
        parts.append("")
    return "\n".join([*parts, _RECOMMENDATION, "", _END])


def _render_heading(number: int, pattern: Pattern) -> str:
    count, failures = pattern.success_count, pattern.failure_count
    rate = f"{count} {'success' if count == 1 else 'successes'}"
    if failures:
        rate = f"{count} of {count + failures} successful"
    return f"Pattern {number} ({pattern.label} - {rate}):"


def _render_field(value: str) -> str:
    """Return a field's text, indented, with imitations of the block's lines escaped."""
    lines = _escape_imitations(escape_imitations(value.strip())).splitlines()
    return "\n".join([*lines[:1], *(f"  {line}" for line in lines[1:])])


def _escape_imitations(text: str) -> str:
    """Put a backslash before imitations of a block's lines."""
    return escape_places(
        text, [match.start("line") for match in _LINE_OF_A_BLOCK.finditer(fold_text(text))]
    )


def _fits(patterns: Sequence[Pattern], tokens: int) -> bool:
    return count_text(render_block(patterns)) <= tokens


def _shorten(pattern: Pattern, tokens: int) -> list[Pattern]:
    """Return the pattern with the first sentences of its solution; an empty list if none fit."""

    def cut(solution: str) -> Pattern:
        return replace(pattern, solution=solution)

    solution = take_first_sentences(pattern.solution, lambda text: _fits([cut(text)], tokens))
    return [cut(solution)] if solution else []
