"""Ranked positions at which a text may be cut: in prose, tables, lists and code.

No cut splits a visible character. The rules for that are the part of UAX 29 that matters in
practice (marks, joiners, modifiers, flags, Hangul syllables, Indic conjuncts, CR LF). The data is
the standard library's own Unicode tables.

Ranks order the possible cut positions of one block. A position between two rows of a table or two
items of a list has so high a rank that a row or item is not cut if it fits into a passage.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import islice, pairwise
from typing import Final, NamedTuple, TypeAlias

# A longer cluster is decoration (or an attack), and may be split.
MAX_CLUSTER_LENGTH = 64

_ZWJ = "\u200d"
_VIRAMA = 9  # canonical combining class of the sign that joins two consonants
_FIRST_MARK = "\u0300"  # of the characters below it, only CR LF belong together


def is_boundary(text: str, pos: int) -> bool:
    """Return whether a text can be cut at `pos` without splitting a visible character."""
    if pos <= 0 or pos >= len(text):
        return True
    before, after = text[pos - 1], text[pos]
    if after < _FIRST_MARK:
        return not (before == "\r" and after == "\n")
    if before in "\r\n":
        return True
    if _is_extension(after) or before == _ZWJ:
        return False
    if _is_flag_half(after) and _is_flag_half(before):
        return _count_flag_halves(text, pos) % 2 == 0
    return not (_is_same_syllable(before, after) or _is_conjunct(before, after))


def find_boundary_before(text: str, pos: int, floor: int) -> int | None:
    """Return the last boundary among the MAX_CLUSTER_LENGTH positions up to `pos`, or None."""
    lowest = max(floor + 1, pos - MAX_CLUSTER_LENGTH)
    return next((at for at in range(pos, lowest - 1, -1) if is_boundary(text, at)), None)


def _is_extension(char: str) -> bool:
    if char == _ZWJ or "\U0001f3fb" <= char <= "\U0001f3ff" or char in "\u200c\uff9e\uff9f":
        return True
    return unicodedata.category(char) in {"Mn", "Me", "Mc"} or "\U000e0020" <= char <= "\U000e007f"


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _count_flag_halves(text: str, pos: int) -> int:
    halves = 0
    while (
        halves < MAX_CLUSTER_LENGTH and pos - halves > 0 and _is_flag_half(text[pos - halves - 1])
    ):
        halves += 1
    return halves


def _is_same_syllable(before: str, after: str) -> bool:
    """Return whether both characters belong to one Hangul syllable.

    A syllable is a leading consonant, a vowel, and possibly a final consonant.
    """
    if not "\u1100" <= after <= "\u11ff" and not "\uac00" <= after <= "\ud7a3":
        return False
    if "\u1100" <= before <= "\u115f":
        return after <= "\u11a7" or after >= "\uac00"
    open_syllable = "\uac00" <= before <= "\ud7a3" and (ord(before) - 0xAC00) % 28 == 0
    if open_syllable or "\u1160" <= before <= "\u11a7":
        return "\u1160" <= after <= "\u11ff"
    closed_syllable = "\uac00" <= before <= "\ud7a3" or "\u11a8" <= before <= "\u11ff"
    return closed_syllable and "\u11a8" <= after <= "\u11ff"


def _is_conjunct(before: str, after: str) -> bool:
    return unicodedata.combining(before) == _VIRAMA and unicodedata.category(after) == "Lo"


class Rank(IntEnum):
    """The quality of a cut position; higher is better."""

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
# A line end within a paragraph. The repetition is bounded, so that blanks are scanned once.
_SOFT_LINE_END = re.compile(r"\r?\n(?![ \t\r]{0,64}\n)")
_MAX_GAP_CHARACTERS = 64
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
_WORD_GROUP = re.compile(
    rf"""\s{{0,64}}\S(?:.{{0,22}}\S)?(?!\S)
    | \s{{0,64}} (?: [{_UNSPACED}]{{1,8}} | \S{{1,12}}\w{{0,12}}[^\w\s]{{0,4}} )
    | \s{{1,64}}""",
    re.VERBOSE | re.DOTALL,
)


def find_sentence_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between sentences and at blank lines, each with its rank."""
    for match in _SENTENCES.finditer(text, start, end):
        at = match.end()
        if at < end and is_boundary(text, at):
            yield at, Rank.PARAGRAPH if match[1] else Rank.SENTENCE


def find_unicode_sentence_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between sentences, which may continue across line ends."""
    from unicode_segmentation_rs import unicode_sentences

    # The length stays the same: a lone surrogate, which UTF-8 cannot encode, becomes one question
    # mark.
    prose = text[start:end].encode("utf-8", "replace").decode("utf-8")
    prose = _SOFT_LINE_END.sub(lambda line_end: " " * len(line_end[0]), prose)
    at = 0
    for sentence in unicode_sentences(prose):
        # Runs without a letter or digit are skipped: they belong to the previous sentence.
        sentence_start = prose.index(sentence, at)
        at = sentence_start + len(sentence)
        cut = start + at - len(sentence.lstrip())
        if cut > start and is_boundary(text, cut):
            yield cut, Rank.PARAGRAPH if _is_after_blank_line(text, cut) else Rank.SENTENCE


def _is_after_blank_line(text: str, at: int) -> bool:
    before = text[max(0, at - _MAX_GAP_CHARACTERS) : at]
    return before.count("\n", len(before.rstrip())) > 1


def find_line_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions after line ends; blank lines have a higher rank."""
    for match in _LINES.finditer(text, start, end):
        if match.end() < end:
            yield match.end(), Rank.PARAGRAPH if match[1] is not None else Rank.SENTENCE


def find_word_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between words, and within words of over 24 visible characters."""
    return _find_cuts(_WORD, text, start, end)


def find_word_group_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between groups of a few words, about five tokens each."""
    return _find_cuts(_WORD_GROUP, text, start, end)


def build_grapheme_cuts(longest: int) -> Cuts:
    """Return a function that yields the cut positions between visible characters.

    It also cuts visible characters of more than `longest` code points.
    """

    def find_grapheme_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
        floor = start
        for at in range(start + 1, end):
            if at - floor >= longest or is_boundary(text, at):
                floor = at
                yield at, Rank.GRAPHEME

    return find_grapheme_cuts


def _find_cuts(
    pattern: re.Pattern[str], text: str, start: int, end: int
) -> Iterator[tuple[int, Rank]]:
    floor = start
    for match in pattern.finditer(text, start, end):
        at: int | None = match.end()
        if at is None or at >= end:
            continue
        if not is_boundary(text, at) and (at := find_boundary_before(text, at, floor)) is None:
            continue
        floor = at
        before = text[at - 1]
        between = text[at].isspace() or not before.isalnum()
        yield at, Rank.WORD if between else Rank.GRAPHEME


_CELLS: Final = re.compile(r"[|\t][ ]?|(?<=[^\d\s])[;,](?=\S)")
_STROKES: Final = "-=─━"
"""Characters of a rule: a line below the column names, or between the rows of a table drawn with
boxes."""
_ITEM: Final = re.compile(
    r"""[ \t]*(?: [-*+•‣◦·–—▪] | \(?(?:\d{1,4}(?:\.\d{1,4})*|[^\W\d_]|[ivxIVX]{1,6})[.)] | \#\. )
    (?=[ \t\u3000]|$) | [ \t]*[①-⑳]""",
    re.VERBOSE,
)
_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})")
_CLOSING: Final = re.compile(
    r"[ \t]*(?:[)\]}>]|</|(?:end|else|elif|elsif|elseif|except|finally|catch|rescue|ensure|fi|done"
    r"|esac|then|do|begin|where|and|or)\b|[.?:|&+](?![\w#]))",
    re.IGNORECASE,
)
"""The start of a line that continues or closes the lines above it."""
_OPEN_ENDS: Final = ("\\", "=", "|", "&", "+")
_COMMENT_START: Final = re.compile(r"[ \t]*(?:#|//|/\*|\*|--|@|\[\w|;;|\"\"\")")
"""The start of a comment or an annotation, which belongs to the line below it."""
_TAB: Final = 4
_HEADER_LINES: Final = 6
"""Number of lines at the top of a table in which the rule below its header is looked for."""


class Row(NamedTuple):
    """A line of a block: its offsets, and its indentation in columns (-1 for a blank line)."""

    start: int
    end: int
    indent: int


def split_rows(text: str, start: int, end: int) -> Iterator[Row]:
    """Yield the lines of text[start:end]."""
    at = start
    while at < end:
        after = text.find("\n", at, end) + 1 or end
        line = text[at:after]
        if "\t" in line:
            line = line.expandtabs(_TAB)
        content = line.lstrip()
        yield Row(at, after, len(line) - len(content) if content else -1)
        at = after


def find_header_end(text: str, start: int, end: int) -> int:
    """Return the start of the first row below the header of a table; without such a row, `end`.

    The header is the text above a rule of dashes near the top or, without such a rule, the first
    row. In a reStructuredText table that is written as a list, the header is the first item.
    """
    lines = [*islice(split_rows(text, start, end), _HEADER_LINES)]
    rules = [row for row in lines[1:] if is_rule(text[row.start : row.end])]
    if text.startswith("..", start):
        items = (
            row
            for row in split_rows(text, start, end)
            if text[row.start : row.end].lstrip()[:1] == "*"
        )
        return next((row.start for row in islice(items, 1, None)), end)
    return (rules[0] if rules else lines[0]).end if lines else end


def is_rule(line: str) -> bool:
    """Return whether a line of a table has no text and draws a horizontal rule."""
    return not line.strip(f"{_STROKES}|:+ \t\r\n") and any(map(line.__contains__, _STROKES))


def find_table_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between rows; the header stays with the first row below it.

    A line that is indented further than the rows continues the row above it. If there are rules of
    dashes between the rows, each rule ends a row.
    """
    rows = [*split_rows(text, start, end)]
    first_row = find_header_end(text, start, end)
    min_indent = min((row.indent for row in rows[1:] if row.indent >= 0), default=0)
    body = [text[row.start : row.end] for row in rows if row.start >= first_row]
    is_drawn = sum(map(is_rule, body)) > 1
    for above, row in pairwise(rows):
        if row.start <= first_row:
            rank = Rank.WORD
        elif is_drawn:
            rank = Rank.ITEM if is_rule(text[above.start : above.end]) else Rank.SENTENCE
        else:
            rank = Rank.ITEM if row.indent == min_indent else Rank.SENTENCE
        yield row.start, rank


def find_cell_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between the cells of a row."""
    for match in _CELLS.finditer(text, start + 1, end):
        if match.end() < end:
            yield match.end(), Rank.LINE


def find_list_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions in a list, each with its rank.

    The best positions are between items; the next best are between nested items, paragraphs, and
    lines. Positions between lines of code within an item are the last choice.
    """
    rows = [*split_rows(text, start, end)]
    are_items = [_ITEM.match(text, row.start, row.end) is not None for row in rows]
    min_indent = min(
        (row.indent for row, item in zip(rows, are_items, strict=True) if item), default=-1
    )
    # In a long run of blanks, searching with the pattern would take quadratic time.
    fence, has_fences = "", any(text.find(sign, start, end) >= 0 for sign in ("```", "~~~"))
    for at, row in enumerate(rows):
        opening = _FENCE.match(text, row.start, row.end) if has_fences else None
        rank = Rank.SENTENCE
        if fence:
            rank = Rank.WORD
        elif are_items[at]:
            rank = Rank.ITEM if row.indent <= min_indent else Rank.PARAGRAPH
        elif at and rows[at - 1].indent < 0:
            rank = Rank.PARAGRAPH
        elif opening:
            rank = Rank.LINE
        if opening:
            fence = "" if fence and opening[1].startswith(fence) else fence or opening[1]
        if at and row.indent >= 0:
            yield row.start, rank


def find_code_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, float]]:
    """Yield cut positions between statements, found by blank lines and indentation.

    This works in nearly all languages. The less a line is indented, the better the position before
    it. A comment or an annotation stays with the line below it. Closing brackets and continuation
    lines stay with the lines above.
    """
    rows = [*split_rows(text, start, end)]
    is_fenced = bool(rows) and _FENCE.match(text, rows[0].start, rows[0].end) is not None
    closes = [_CLOSING.match(text, row.start, row.end) is not None for row in rows]
    inner = slice(1, -1 if is_fenced else None)
    lines = zip(rows[inner], closes[inner], strict=True)
    indents = {row.indent for row, is_closing in lines if row.indent >= 0 and not is_closing}
    depths = {indent: depth for depth, indent in enumerate(sorted(indents))}
    for at, (above, row) in enumerate(pairwise(rows), 1):
        if row.indent < 0:
            continue
        rank = Rank.WORD + 2 / (1 + depths.get(row.indent, len(depths))) + (above.indent < 0)
        is_fence = is_fenced and (at == 1 or at == len(rows) - 1)
        if is_fence or closes[at] or (above.indent >= 0 and _is_continued(text[slice(*above[:2])])):
            rank = Rank.GRAPHEME
        yield row.start, rank


def _is_continued(above: str) -> bool:
    line = above.rstrip()
    return line.endswith(_OPEN_ENDS) or _COMMENT_START.match(line) is not None
