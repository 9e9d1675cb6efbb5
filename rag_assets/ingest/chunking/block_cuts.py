"""Cuts in tables, lists and code: between rows, between items, between statements.

Ranks order the possible cut positions of one block. A position between two rows or two items has so
high a rank that a row or item is not cut if it fits into a passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Final, NamedTuple

from rag_assets.ingest.chunking.boundaries import Rank

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
_BELONGS_BELOW: Final = re.compile(r"[ \t]*(?:#|//|/\*|\*|--|@|\[\w|;;|\"\"\")")
"""The start of a comment or an annotation, which belongs to the line below it."""
_TAB: Final = 4
_HEADER_LINES: Final = 6
"""Number of lines at the top of a table in which the rule below its header is looked for."""


class Row(NamedTuple):
    """A line of a block: its offsets in the text, and its indentation in columns; -1 if blank."""

    start: int
    end: int
    indent: int


def rows_of(text: str, start: int, end: int) -> Iterator[Row]:
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


def header_end(text: str, start: int, end: int) -> int:
    """Return the start of the first row below the header of a table; without such a row, `end`.

    The header is the text above a rule of dashes near the top or, without such a rule, the first
    row. In a reStructuredText table that is written as a list, the header is the first item.
    """
    lines = [*islice(rows_of(text, start, end), _HEADER_LINES)]
    rules = [row for row in lines[1:] if is_rule(text[row.start : row.end])]
    if text.startswith("..", start):
        items = (
            row
            for row in rows_of(text, start, end)
            if text[row.start : row.end].lstrip()[:1] == "*"
        )
        return next((row.start for row in islice(items, 1, None)), end)
    return (rules[0] if rules else lines[0]).end if lines else end


def is_rule(line: str) -> bool:
    """Return whether a line of a table is a rule, without text."""
    return not line.strip(f"{_STROKES}|:+ \t\r\n") and any(map(line.__contains__, _STROKES))


def table_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between rows; the header stays with the first row below it.

    A line that is indented further than the rows continues the row above it. If there are rules of
    dashes between the rows, each rule ends a row.
    """
    rows = [*rows_of(text, start, end)]
    first_row = header_end(text, start, end)
    least = min((row.indent for row in rows[1:] if row.indent >= 0), default=0)
    body = [text[row.start : row.end] for row in rows if row.start >= first_row]
    is_drawn = sum(map(is_rule, body)) > 1
    for above, row in pairwise(rows):
        if row.start <= first_row:
            rank = Rank.WORD
        elif is_drawn:
            rank = Rank.ITEM if is_rule(text[above.start : above.end]) else Rank.SENTENCE
        else:
            rank = Rank.ITEM if row.indent == least else Rank.SENTENCE
        yield row.start, rank


def cell_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between the cells of a row."""
    for match in _CELLS.finditer(text, start + 1, end):
        if match.end() < end:
            yield match.end(), Rank.LINE


def list_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions between items, then between nested items, paragraphs, and lines.

    Positions between lines of code within an item are the last choice.
    """
    rows = [*rows_of(text, start, end)]
    marked = [_ITEM.match(text, row.start, row.end) is not None for row in rows]
    least = min((row.indent for row, item in zip(rows, marked, strict=True) if item), default=-1)
    # In a long run of blanks, searching with the pattern would take quadratic time.
    fence, has_fences = "", any(text.find(sign, start, end) >= 0 for sign in ("```", "~~~"))
    for at, row in enumerate(rows):
        opening = _FENCE.match(text, row.start, row.end) if has_fences else None
        rank = Rank.SENTENCE
        if fence:
            rank = Rank.WORD
        elif marked[at]:
            rank = Rank.ITEM if row.indent <= least else Rank.PARAGRAPH
        elif at and rows[at - 1].indent < 0:
            rank = Rank.PARAGRAPH
        elif opening:
            rank = Rank.LINE
        if opening:
            fence = "" if fence and opening[1].startswith(fence) else fence or opening[1]
        if at and row.indent >= 0:
            yield row.start, rank


def code_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, float]]:
    """Yield cut positions between statements, found by blank lines and indentation.

    This works in nearly all languages. The less a line is indented, the better the position before
    it. A comment or an annotation stays with the line below it. Closing brackets and continuation
    lines stay with the lines above.
    """
    rows = [*rows_of(text, start, end)]
    fenced = bool(rows) and _FENCE.match(text, rows[0].start, rows[0].end) is not None
    closes = [_CLOSING.match(text, row.start, row.end) is not None for row in rows]
    inner = slice(1, -1 if fenced else None)
    begins = zip(rows[inner], closes[inner], strict=True)
    indents = {row.indent for row, is_closing in begins if row.indent >= 0 and not is_closing}
    depths = {indent: depth for depth, indent in enumerate(sorted(indents))}
    for at, (above, row) in enumerate(pairwise(rows), 1):
        if row.indent < 0:
            continue
        rank = Rank.WORD + 2 / (1 + depths.get(row.indent, len(depths))) + (above.indent < 0)
        is_fence = fenced and (at == 1 or at == len(rows) - 1)
        if is_fence or closes[at] or (above.indent >= 0 and _continues(text[slice(*above[:2])])):
            rank = Rank.GRAPHEME
        yield row.start, rank


def _continues(above: str) -> bool:
    line = above.rstrip()
    return line.endswith(_OPEN_ENDS) or _BELONGS_BELOW.match(line) is not None
