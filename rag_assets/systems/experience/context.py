"""Renders patterns as a block of text for an agent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_assets.api.experience_responses import Pattern
from rag_assets.common.tokens import count_text
from rag_assets.search.contexts import escaped, folded, neutralised
from rag_assets.search.hits import first_sentences
from rag_assets.systems.experience.ranking import has_mostly_failed

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
class Block:
    """A block of text and the patterns in it.

    Attributes:
        text: empty if no pattern fits.
        tokens: cl100k_base tokens of the text.
    """

    text: str
    tokens: int
    patterns: tuple[Pattern, ...]


def build_block(patterns: Sequence[Pattern], tokens: int) -> Block:
    """Return a block of the first patterns that fit.

    If even one pattern does not fit, its solution is shortened. Patterns that mostly failed are
    omitted, because the block recommends its patterns.

    Args:
        patterns: the patterns in their order.
        tokens: maximum size of the block, in cl100k_base tokens.
    """
    kept = [one for one in patterns if not has_mostly_failed(one.success_count, one.failure_count)]
    kept = kept[:MAX_PATTERNS]
    while len(kept) > 1 and not _fits(kept, tokens):
        kept.pop()
    if kept and not _fits(kept, tokens):
        kept = _shorten(kept[0], tokens)
    if not kept:
        return Block("", 0, ())
    text = render(kept)
    return Block(text, count_text(text), tuple(kept))


def append_block(basic_context: str, block: Block) -> str:
    """Return the basic context and, after a blank line, the block."""
    if not block.text:
        return basic_context
    return f"{basic_context}\n\n{block.text}" if basic_context else block.text


def render(patterns: Sequence[Pattern]) -> str:
    """Return the text of a block."""
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
    lines = _escape_imitations(neutralised(value.strip())).splitlines()
    return "\n".join([*lines[:1], *(f"  {line}" for line in lines[1:])])


def _escape_imitations(text: str) -> str:
    """Escape imitations of a block's lines by a backslash."""
    return escaped(text, [found.start("line") for found in _LINE_OF_A_BLOCK.finditer(folded(text))])


def _fits(patterns: Sequence[Pattern], tokens: int) -> bool:
    return count_text(render(patterns)) <= tokens


def _shorten(pattern: Pattern, tokens: int) -> list[Pattern]:
    """Return the pattern with the first sentences of its solution; an empty list if none fit."""

    def cut(solution: str) -> Pattern:
        return replace(pattern, solution=solution)

    solution = first_sentences(pattern.solution, lambda text: _fits([cut(text)], tokens))
    return [cut(solution)] if solution else []
