"""The smallest pieces a document is cut into, each with its tokens and the rank of its start.

A chunker never counts candidates one by one: it adds up the units' tokens, counted in one go,
and counts only what it chose. Cuts lie where the tokeniser's own words begin (before a space,
after a line end), so that the sums are nearly exact.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from rag_assets.chunking.graphemes import boundary_before, is_boundary
from rag_assets.chunking.masks import touching
from rag_assets.chunking.tokens import count_tokens
from rag_assets.parsing.model import Block, BlockKind, MaskedSpan, ParsedText


class Rank(IntEnum):
    """How good a place is for a cut."""

    HEADING = -1  # between a heading and what follows it: only when nothing else is left
    GRAPHEME = 0
    WORD = 1
    SENTENCE = 2  # also a line of code, of a table, of a list
    PARAGRAPH = 3  # a blank line inside a block
    BLOCK = 4


# Repetitions are bounded: a run of a million dots or spaces must not be walked from each of them.
_SENTENCES = re.compile(
    r"""(\n[ \t\r]*\n)\s*
    | (?<!\n\d)(?<!\n\d\d)  # the number of a list's item ends nothing
      [.!?…][.!?…"'”’»)\]*_]{0,8}(?=\s{1,8}[^\sa-z])(?![ \t\r]{0,8}\n[ \t\r]{0,8}\n)
    | [。！？｡]["'」』）”’]{0,8}""",
    re.VERBOSE,
)
_LINES = re.compile(r"\n([ \t\r]*\n)*")
# Scripts that write no spaces: a few characters at a time.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003fffd"
# One word, or a part of a run of over 24 characters without white space.
_WORD = re.compile(
    rf"""\s{{0,64}}\S{{1,24}}(?!\S)
    | \s{{0,64}} (?: [{_UNSPACED}]{{1,4}} | \w{{1,8}}[^\w\s]{{0,8}} | [^\w\s]{{1,8}} )
    | \s{{1,64}}""",
    re.VERBOSE,
)
# Some words, about five tokens: units that are not needlessly many.
_WORDS = re.compile(
    rf"""\s{{0,64}}\S(?:.{{0,22}}\S)?(?!\S)
    | \s{{0,64}} (?: [{_UNSPACED}]{{1,8}} | \S{{1,12}}\w{{0,12}}[^\w\s]{{0,4}} )
    | \s{{1,64}}""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Region:
    """A block, or text that no block covers, with the white space after it."""

    kind: BlockKind
    start: int
    end: int
    heading_path: tuple[str, ...]
    level: int


class _Piece(NamedTuple):
    start: int
    end: int
    rank: Rank
    region: int


# (text, start, end) → where to cut strictly between, in order, and how good each place is.
Cuts: TypeAlias = Callable[[str, int, int], Iterator[tuple[int, Rank]]]


@dataclass(frozen=True, slots=True)
class Units:
    """Units in order; unit k is text[starts[k]:ends[k]].

    Attributes:
        ranks: how good a cut before the unit is.
        region: index of the region the unit belongs to.
        totals: tokens of all units before the k-th; one longer than the rest.
        first: index of each region's first unit, and one more for the end.
        masked: whether a masked span touches the unit.
    """

    starts: list[int]
    ends: list[int]
    ranks: list[Rank]
    region: list[int]
    totals: list[int]
    first: list[int]
    masked: list[bool]

    def tokens(self, low: int, high: int) -> int:
        """About how many tokens units low to high (exclusive) have together."""
        return self.totals[high] - self.totals[low]


def find_regions(parsed: ParsedText) -> list[Region]:
    """All that is to be chunked: blocks but front matter, and non-blank text between blocks."""
    found: list[Region] = []
    pos = 0
    path: tuple[str, ...] = ()
    end_of_text = Block("front_matter", len(parsed.text), len(parsed.text))
    for block in (*parsed.blocks, end_of_text):
        start = max(pos, block.start)
        gap = parsed.text[pos:start]
        if found and pos == found[-1].end and not gap.strip():
            last = found[-1]
            found[-1] = Region(last.kind, last.start, start, last.heading_path, last.level)
        elif gap.strip():
            found.append(Region("paragraph", pos, start, path, 0))
        if block.kind != "front_matter":
            path = block.heading_path
            if block.end > start:
                found.append(Region(block.kind, start, block.end, path, block.level))
        pos = max(pos, block.end)
    return found


def find_units(
    text: str, regions: Sequence[Region], masked: Sequence[MaskedSpan], limit: int
) -> Units:
    """Cut regions into units of at most limit tokens.

    Paragraphs are cut into sentences, code, tables and lists into lines; a unit over the limit
    (half of it right after a heading, which must find room beside it) into words, and words
    into visible characters. limit must be at least 4: one character may be four tokens.
    """
    pieces = [
        piece
        for index, region in enumerate(regions)
        for piece in _cut_region(text, index, region, after=regions[index - 1] if index else None)
    ]
    tokens = count_tokens([text[piece.start : piece.end] for piece in pieces])
    for cuts in (sentence_cuts, _words_cuts, _grapheme_cuts(max(1, limit // 4))):
        long = [count > _room(piece, limit) for piece, count in zip(pieces, tokens, strict=True)]
        if any(long):
            pieces, tokens = _refine(text, pieces, tokens, long, cuts)
    return _assemble(pieces, tokens, len(regions), masked)


def sentence_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Places between sentences and at blank lines."""
    for match in _SENTENCES.finditer(text, start, end):
        at = match.end()
        if at < end and is_boundary(text, at):
            yield at, Rank.PARAGRAPH if match[1] else Rank.SENTENCE


def line_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Places after line ends; blank lines rank higher."""
    for match in _LINES.finditer(text, start, end):
        if match.end() < end:
            yield match.end(), Rank.PARAGRAPH if match[1] is not None else Rank.SENTENCE


def word_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Places between words, and a few in runs of over 24 characters without white space."""
    return _cuts_by(_WORD, text, start, end)


def _words_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    return _cuts_by(_WORDS, text, start, end)


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


def _grapheme_cuts(longest: int) -> Cuts:
    """Places between visible characters; one of over `longest` code points is torn."""

    def cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
        floor = start
        for at in range(start + 1, end):
            if at - floor >= longest or is_boundary(text, at):
                floor = at
                yield at, Rank.GRAPHEME

    return cuts


def _cut_region(text: str, index: int, region: Region, after: Region | None) -> Iterator[_Piece]:
    if after is not None and after.kind == "heading" and after.end == region.start:
        rank = Rank.HEADING
    else:
        rank = Rank.BLOCK
    whole = _Piece(region.start, region.end, rank, index)
    if region.kind == "heading":
        return iter((whole,))
    return _cut(text, whole, sentence_cuts if region.kind == "paragraph" else line_cuts)


def _cut(text: str, piece: _Piece, cuts: Cuts) -> Iterator[_Piece]:
    """The parts of a piece; white space at its end stays with the last."""
    content = text[piece.start : piece.end].rstrip()
    start, rank = piece.start, piece.rank
    for at, cut_rank in cuts(text, start, start + len(content)):
        yield _Piece(start, at, rank, piece.region)
        start, rank = at, cut_rank
    yield _Piece(start, piece.end, rank, piece.region)


def _room(piece: _Piece, limit: int) -> int:
    return limit // 2 if piece.rank is Rank.HEADING else limit


def _refine(
    text: str, pieces: Sequence[_Piece], tokens: Sequence[int], long: Sequence[bool], cuts: Cuts
) -> tuple[list[_Piece], list[int]]:
    """Cut the long pieces and count their parts."""
    parts = [list(_cut(text, piece, cuts)) for piece, cut in zip(pieces, long, strict=True) if cut]
    counts = iter(count_tokens([text[part.start : part.end] for each in parts for part in each]))
    refined: list[_Piece] = []
    refined_tokens: list[int] = []
    cut_pieces = iter(parts)
    for piece, count, cut in zip(pieces, tokens, long, strict=True):
        these = next(cut_pieces) if cut else [piece]
        refined += these
        refined_tokens += [next(counts) for _ in these] if cut else [count]
    return refined, refined_tokens


def _assemble(
    pieces: Sequence[_Piece], tokens: Sequence[int], regions: int, masked: Sequence[MaskedSpan]
) -> Units:
    region = [piece.region for piece in pieces]
    return Units(
        starts=[piece.start for piece in pieces],
        ends=[piece.end for piece in pieces],
        ranks=[piece.rank for piece in pieces],
        region=region,
        totals=[0, *accumulate(tokens)],
        first=[bisect_left(region, index) for index in range(regions + 1)],
        masked=[bool(found) for found in touching(masked, pieces)],
    )
