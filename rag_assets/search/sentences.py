"""Sentences of an answer, including citation markers and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from rag_assets.ingest.chunking.sentence import unicode_sentence_cuts
from rag_assets.search.addresses import Addresses
from rag_assets.search.citation_markers import blank_markers
from rag_assets.search.figure_words import MONTHS

_ITEM = r"(?:[\s>]|[-*+•][ \t]|\d{1,9}[.)][ \t])*+"
# All quantifiers are possessive, so that no line is scanned twice.
_FENCE = re.compile(rf"{_ITEM}(`{{3,}}+(?=[^`]*+$)|~{{3,}}+)")
_FENCE_END = re.compile(r"[\s>]*+(`{3,}+|~{3,}+)\s*+$")
_RULE = re.compile(r"[\s>]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|)++(?:[ \t]*+:?-++:?)?\s*+$")
_LEAD = re.compile(r"[\W_]*(?:(?:\d{1,9}|[A-Za-z]|[ivxIVX]{2,5})[.)](?![^\W_])[\W_]*)?")
_LIST_SIGN = re.compile(r"\s*(?:[-*+•]|\d{1,9}[.)])[ \t]+")
_ABBREVIATION = re.compile(
    r"(?<!\w)(?:[^\W\d_]|Dr|Mrs?|Ms|Prof|St|[SJ]r|Lt|Col|Gen|Capt|Sgt|Rev|Gov|Mt|Inc|Ltd|Corp|Co"
    r"|vs|etc|cf|al|viz|resp|incl|excl|[Ff]igs?|[Ee]qs?|[Aa]pprox|[Cc]a|bzw|usw)\.\s*$"
)
_BEFORE_NUMBER = re.compile(
    r"(?<!\w)(?:N[or]s?|nos?|pp|[Vv]ol|[Cc]h|[Ss]ec|[Aa]rt|[Aa]bs"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.\s*$"
)
_DAY = re.compile(r"(?<![\w.,])\d{1,2}\.\s+$")
_NEXT_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_ABBREVIATION = 16
_LONGEST_SENTENCE = 2_000

Role = Literal["prose", "fence", "head", "row"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer that is kept or removed as a whole.

    Attributes:
        start, end: character offsets in the answer, half open.
        role: a sentence of prose, a whole fence, the head of a table with the rule below it, or
            a table row.
    """

    start: int
    end: int
    role: Role


def pieces_of(answer: str) -> Iterator[Piece]:
    """Yield an answer's sentences, fences, table heads and rows; together they cover the answer.

    A marker belongs to the sentence that contains it or directly precedes it. At the start of a
    line it belongs to the following sentence. On a line of its own it belongs to the line before.
    """
    # Markers become spaces, since sentence ends must not depend on markers.
    prose = blank_markers(answer)
    for block in _with_markers_below(answer, prose):
        if block.role != "prose":
            yield block
            continue
        ends = _sentence_ends(answer, prose, block)
        for start, end in pairwise([block.start, *ends, block.end]):
            yield Piece(start, end, "prose")


def list_sign(text: str) -> str:
    """Return the bullet or number at the start of a text, with its blanks; "" if there is none."""
    sign = _LIST_SIGN.match(text)
    return sign[0] if sign else ""


def _sentence_ends(answer: str, prose: str, line: Piece) -> Iterator[int]:
    lead = _LEAD.match(prose, line.start, line.end)
    begun = lead.end() if lead else line.start
    start = end = line.start
    has_address = False
    for cut in _cuts(prose, line.start, line.end):
        if cut > end:
            # Find the word around the cut. Each word is checked once, however many cuts it
            # contains.
            start, end = _word_around(answer, cut, (end, line.end))
            has_address = start < cut < end and _has_address(answer[start:end])
        in_address = has_address and cut < end and _may_continue(answer, cut)
        # An exclamation mark may be the start of an image.
        in_image = answer.startswith("![", cut - 1) or answer.startswith("![", cut - 2)
        if cut > begun and not (in_address or in_image or _is_abbreviated(answer, line.start, cut)):
            yield cut


def _word_around(answer: str, at: int, bounds: tuple[int, int]) -> tuple[int, int]:
    """Return the start and end of the non-blank characters around a position."""
    start = end = at
    while start > bounds[0] and not answer[start - 1].isspace():
        start -= 1
    while end < bounds[1] and not answer[end].isspace():
        end += 1
    return start, end


def _has_address(word: str) -> bool:
    found = Addresses.of(word)
    return bool(found.links or found.names)


def _may_continue(answer: str, cut: int) -> bool:
    """Return whether an address may continue after a cut in its word, as after the ? of a query.

    A Chinese or Japanese full stop ends the address if words of that language follow.
    """
    return answer[cut - 1].isascii() or answer[cut].isascii()


def _cuts(prose: str, start: int, end: int) -> Iterator[int]:
    """Yield Unicode's cuts, in windows: after a full stop it would scan without limit."""
    while start < end:
        stop = min(start + _LONGEST_SENTENCE, end)
        cuts = [cut for cut, _ in unicode_sentence_cuts(prose, start, stop)]
        if stop < end:
            cuts = cuts or [stop]
            start = cuts[-1]
        else:
            start = end
        yield from cuts


def _is_abbreviated(answer: str, start: int, cut: int) -> bool:
    """Return whether the full stop before a cut belongs to an abbreviation only."""
    before = answer[max(start, cut - _LONGEST_ABBREVIATION) : cut]
    if answer[cut].isdigit() and _BEFORE_NUMBER.search(before):
        return True
    # In German, a full stop makes an ordinal, as in 15. März.
    word = _NEXT_WORD.match(answer, cut)
    if word and word[0].casefold() in MONTHS and _DAY.search(before):
        return True
    return _ABBREVIATION.search(before) is not None


def _with_markers_below(answer: str, prose: str) -> Iterator[Piece]:
    """Yield blocks; lines after a block that contain only markers are part of it."""
    held: Piece | None = None
    open_ended = False
    for block in _blocks(prose):
        blank = prose[block.start : block.end].isspace()
        marks = blank and not answer[block.start : block.end].isspace()
        if held and open_ended and marks:
            held = replace(held, end=block.end)
            continue
        if held:
            yield held
        held, open_ended = block, not blank and block.role != "head"
    if held:
        yield held


def _blocks(prose: str) -> Iterator[Piece]:
    """Yield lines, since headings and list items end with their line. A fence is one block."""
    lines = prose.splitlines(keepends=True)
    at = number = 0
    tabular = False
    while number < len(lines):
        role, count = _block_at(lines, number, tabular=tabular)
        end = at + sum(map(len, lines[number : number + count]))
        yield Piece(at, end, role)
        at, number, tabular = end, number + count, role in {"head", "row"}


def _block_at(lines: list[str], number: int, *, tabular: bool) -> tuple[Role, int]:
    """Return the role of the block that starts at a line, and its number of lines."""
    line = lines[number]
    if fence := _FENCE.match(line):
        return "fence", _length_of_fence(lines, number, fence[1])
    if "|" in line and number + 1 < len(lines) and _RULE.match(lines[number + 1]):
        return "head", 2
    if line.lstrip().startswith("|") or (tabular and "|" in line):
        return "row", 1
    return "prose", 1


def _length_of_fence(lines: list[str], number: int, sign: str) -> int:
    for last in range(number + 1, len(lines)):
        end = _FENCE_END.match(lines[last])
        if end and end[1].startswith(sign):
            return last - number + 1
    return len(lines) - number
