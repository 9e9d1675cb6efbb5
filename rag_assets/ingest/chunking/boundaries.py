"""Ranked positions at which a text may be cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import TypeAlias

from rag_assets.ingest.chunking.graphemes import boundary_before, is_boundary


class Rank(IntEnum):
    """How good a position is for a cut."""

    HEADING = -1  # between a heading and the text after it: used only if there is no other position
    GRAPHEME = 0
    WORD = 1
    SENTENCE = 2  # also a line of a list
    LINE = 3  # for chunkers that prefer line ends to sentence ends; also the end of a cell
    PARAGRAPH = 4  # a blank line inside a block
    ITEM = 5  # between the rows of a table, or the items of a list
    BLOCK = 6


# (text, start, end) → positions strictly between start and end, in order. Each has a quality: a
# rank, or a number between two ranks.
Cuts: TypeAlias = Callable[[str, int, int], Iterator[tuple[int, float]]]

# Repetitions are bounded, so that a run of a million dots or spaces is not scanned again from each
# of them. The pattern starts with a set of characters, so that the search skips other characters
# quickly.
_SENTENCES = re.compile(
    r"""[\n.!?…。！？｡] (?:
      (?<=\n) ([ \t\r]*\n)\s*
    | (?<=[.!?…]) (?<!\n\d.)(?<!\n\d\d.)  # the number of a list's item ends nothing
      [.!?…"'”’»)\]*_]{0,8}(?=\s{1,8}[^\sa-z])(?![ \t\r]{0,8}\n[ \t\r]{0,8}\n)
    | (?<=[。！？｡]) ["'」』）”’]{0,8} )""",
    re.VERBOSE,
)
_LINES = re.compile(r"\n([ \t\r]*\n)*")
# Scripts without spaces; in these, a unit is a few characters.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003fffd"
# One word, or a part of a run of over 24 characters without white space.
_WORD = re.compile(
    rf"""\s{{0,64}}\S{{1,24}}(?!\S)
    | \s{{0,64}} (?: [{_UNSPACED}]{{1,4}} | \w{{1,8}}[^\w\s]{{0,8}} | [^\w\s]{{1,8}} )
    | \s{{1,64}}""",
    re.VERBOSE,
)
# A few words, about five tokens, so that the number of units stays small.
_WORDS = re.compile(
    rf"""\s{{0,64}}\S(?:.{{0,22}}\S)?(?!\S)
    | \s{{0,64}} (?: [{_UNSPACED}]{{1,8}} | \S{{1,12}}\w{{0,12}}[^\w\s]{{0,4}} )
    | \s{{1,64}}""",
    re.VERBOSE | re.DOTALL,
)


def sentence_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between sentences and at blank lines."""
    for match in _SENTENCES.finditer(text, start, end):
        at = match.end()
        if at < end and is_boundary(text, at):
            yield at, Rank.PARAGRAPH if match[1] else Rank.SENTENCE


def line_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions after line ends; blank lines have a higher rank."""
    for match in _LINES.finditer(text, start, end):
        if match.end() < end:
            yield match.end(), Rank.PARAGRAPH if match[1] is not None else Rank.SENTENCE


def word_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between words, and some within runs of over 24 visible characters."""
    return _cuts_by(_WORD, text, start, end)


def words_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between groups of a few words, about five tokens each."""
    return _cuts_by(_WORDS, text, start, end)


def grapheme_cuts(longest: int) -> Cuts:
    """Return a function that cuts between visible characters, and within those over `longest`.

    `longest` is a number of code points.
    """

    def cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
        floor = start
        for at in range(start + 1, end):
            if at - floor >= longest or is_boundary(text, at):
                floor = at
                yield at, Rank.GRAPHEME

    return cuts


def _cuts_by(
    pattern: re.Pattern[str], text: str, start: int, end: int
) -> Iterator[tuple[int, Rank]]:
    floor = start
    for match in pattern.finditer(text, start, end):
        at: int | None = match.end()
        if at is None or at >= end:
            continue
        if not is_boundary(text, at) and (at := boundary_before(text, at, floor)) is None:
            continue
        floor = at
        before = text[at - 1]
        between = text[at].isspace() or not before.isalnum()
        yield at, Rank.WORD if between else Rank.GRAPHEME
