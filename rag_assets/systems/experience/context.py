"""The block of patterns that an agent is given, in the description's format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_assets.api.experience_responses import Pattern
from rag_assets.common.tokens import count_text
from rag_assets.retrieval.budget import first_sentences
from rag_assets.retrieval.confusables import escaped, folded
from rag_assets.retrieval.contexts import neutralised
from rag_assets.systems.experience.ranking import mostly_failed

MAX_PATTERNS = 3
_HEADER = "[ORCHESTRATOR CONTEXT: Historical Knowledge]"
_INTRODUCTION = "Similar situations have been resolved these ways:"
_RECOMMENDATION = (
    "Recommendation: Try patterns in order. Pattern 1 is most likely based on historical data."
)
_END = "[END CONTEXT]"

# Of a folded text: what looks like a blank may stand between words.
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
    """A block, and the patterns in it.

    Attributes:
        text: empty where no pattern fits.
        tokens: cl100k_base tokens of the text.
    """

    text: str
    tokens: int
    patterns: tuple[Pattern, ...]


def block_of(patterns: Sequence[Pattern], tokens: int) -> Block:
    """Return the first patterns that fit; of a single one that does not, the start of its solution.

    The block recommends its patterns, so one that mostly failed is left out.

    Args:
        patterns: in their order.
        tokens: cl100k_base tokens of the whole block at most.
    """
    kept = [one for one in patterns if not mostly_failed(one.success_count, one.failure_count)]
    kept = kept[:MAX_PATTERNS]
    while len(kept) > 1 and not _fits(kept, tokens):
        kept.pop()
    if kept and not _fits(kept, tokens):
        kept = _shortened(kept[0], tokens)
    if not kept:
        return Block("", 0, ())
    text = rendered(kept)
    return Block(text, count_text(text), tuple(kept))


def with_block(basic_context: str, block: Block) -> str:
    """The basic context, and the block after a blank line."""
    if not block.text:
        return basic_context
    return f"{basic_context}\n\n{block.text}" if basic_context else block.text


def rendered(patterns: Sequence[Pattern]) -> str:
    """The block of these patterns."""
    parts = [_HEADER, "", _INTRODUCTION, ""]
    for number, pattern in enumerate(patterns, start=1):
        parts += [_heading(number, pattern)]
        parts += [
            f"- {name}: {_field(value)}"
            for name, value in (
                ("Problem", pattern.problem),
                ("Solution", pattern.solution),
                ("When to try", pattern.when_to_try),
            )
            if value is not None
        ]
        parts.append("")
    return "\n".join([*parts, _RECOMMENDATION, "", _END])


def _heading(number: int, pattern: Pattern) -> str:
    count, failures = pattern.success_count, pattern.failure_count
    rate = f"{count} {'success' if count == 1 else 'successes'}"
    if failures:
        rate = f"{count} of {count + failures} successful"
    return f"Pattern {number} ({pattern.label} - {rate}):"


def _field(value: str) -> str:
    """A field's text, which is data: it imitates no line of the block, and stays below its name."""
    lines = _without_lines_of_blocks(neutralised(value.strip())).splitlines()
    return "\n".join([*lines[:1], *(f"  {line}" for line in lines[1:])])


def _without_lines_of_blocks(text: str) -> str:
    """A text whose imitations of a block's lines are escaped by a backslash."""
    return escaped(text, [found.start("line") for found in _LINE_OF_A_BLOCK.finditer(folded(text))])


def _fits(patterns: Sequence[Pattern], tokens: int) -> bool:
    return count_text(rendered(patterns)) <= tokens


def _shortened(pattern: Pattern, tokens: int) -> list[Pattern]:
    """The pattern with the first sentences of its solution; nothing if none fits."""

    def cut(solution: str) -> Pattern:
        return replace(pattern, solution=solution)

    solution = first_sentences(pattern.solution, lambda text: _fits([cut(text)], tokens))
    return [cut(solution)] if solution else []
