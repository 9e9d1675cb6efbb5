"""Contexts of passages: lines from above a passage that its reader needs.

A passage that starts within a table lacks the column names. A passage that starts within a list
lacks the introductory sentence and the items above; within code, it lacks the enclosing lines. The
context repeats these lines. Headings are not part of it, since every passage has a heading path.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from rag_assets.ingest.chunking.boundaries import (
    Row,
    find_header_end,
    find_sentence_cuts,
    is_rule,
    split_rows,
)
from rag_assets.ingest.chunking.units import Measure, Region
from rag_assets.ingest.parsing.blocks import names_columns
from rag_assets.ingest.parsing.model import MaskedSpan

_COLONS: Final = (":", "：", "︰", "፡", "։")
_MARKS: Final = " \t\r\n*_`"
_MAX_LEAD_CHARACTERS: Final = 300
_MAX_LINE_CHARACTERS: Final = 120
_MAX_LINES: Final = 4
_ROOM_DIVISOR: Final = 4
"""A context takes at most the limit of a passage divided by this number."""
_KINDS_WITH_CONTEXT: Final = frozenset({"table", "row", "list", "code"})
_CELL_ENDS: Final = re.compile(r"[|\t;,]")


class ContextBuilder:
    """A builder of the contexts of a document's passages; request them in document order."""

    def __init__(
        self, text: str, regions: Sequence[Region], masked: Sequence[MaskedSpan], measure: Measure
    ) -> None:
        self._text, self._regions, self._measure = text, regions, measure
        self._masked = sorted(masked, key=lambda span: span.end)
        self._ends = [span.end for span in self._masked]
        starts = [span.start for span in self._masked]
        # For each span, the smallest start among it and the spans after it.
        self._starts = [*accumulate(reversed(starts), min)][::-1]
        self._nesting = _Nesting(text)
        self._parts_by_region: dict[int, tuple[list[str], list[str]]] = {}

    def build_context(self, region: int, start: int, limit: int, room: int) -> tuple[str, int]:
        """Return the context of a passage, and the size of the context including a line end.

        Args:
            limit: maximum size of a passage; the context may use only a share of it.
            room: size that is still available in the passage; text that does not fit is left
                out.
        """
        if self._regions[region].kind not in _KINDS_WITH_CONTEXT:
            return "", 0
        room = min(room, limit // _ROOM_DIVISOR)
        lead, header = self._get_introduction_and_header(region)
        parts = []
        if start > self._regions[region].start:
            parts = [*header, *self._list_enclosing_lines(region, start, has_header=bool(header))]
        fitting, room = self._fit_lines(parts, room)
        leading, _ = self._fit_lines(lead, room)
        context = "\n".join([*leading, *fitting])
        return context, self._measure.measure(f"{context}\n") if context else 0

    def _get_introduction_and_header(self, region: int) -> tuple[list[str], list[str]]:
        """Return a region's introductory sentence and its header; either list may be empty."""
        if region not in self._parts_by_region:
            lead, header = (
                self._find_introduction(region),
                self._find_header_line(self._regions[region]),
            )
            self._parts_by_region[region] = ([lead] if lead else [], [header] if header else [])
        return self._parts_by_region[region]

    def _find_introduction(self, region: int) -> str:
        """Return the sentence above a block if it ends with a colon, or the caption of a table."""
        block, above = self._regions[region], self._regions[region - 1] if region else None
        if above is None or above.kind != "paragraph" or above.heading_path != block.heading_path:
            return ""
        if block.kind == "row":
            return ""
        paragraph = self._text[above.start : above.end].rstrip()
        is_short = len(paragraph) <= _MAX_LEAD_CHARACTERS and "\n" not in paragraph
        is_caption = block.kind == "table" and is_short
        if not (is_caption or paragraph.rstrip(_MARKS).endswith(_COLONS)):
            return ""
        end = above.start + len(paragraph)
        starts = [at for at, _ in find_sentence_cuts(self._text, above.start, end)]
        start = above.start if is_caption or not starts else starts[-1]
        return self._format_on_one_line(start, end, _MAX_LEAD_CHARACTERS)

    def _find_header_line(self, region: Region) -> str:
        """Return the row of column names of a table, or the line that opens a code block."""
        first = next(split_rows(self._text, region.start, region.end), None)
        if first is None:
            return ""
        if region.kind == "code":
            line = self._text[first.start : first.end].strip()
            is_opening = line.startswith(("```", "~~~", "..")) and any(map(str.isalpha, line))
            return (
                self._format_on_one_line(first.start, first.end, _MAX_LINE_CHARACTERS)
                if is_opening
                else ""
            )
        if region.kind != "table":
            return ""
        end = find_header_end(self._text, region.start, region.end)
        lines = [
            (row.start, row.end)
            for row in split_rows(self._text, region.start, end)
            if not is_rule(self._text[row.start : row.end])
        ]
        if self._text.startswith("..", region.start):
            cells = (self._format_on_one_line(*line) for line in lines)
            return " | ".join(cell[2:] for cell in cells if cell.startswith(("* ", "- ")))
        if len(lines) == 1 and end == first.end and not self._names_columns(*lines[0]):
            return ""
        return "\n".join(filter(None, (self._format_on_one_line(*line) for line in lines)))

    def _names_columns(self, start: int, end: int) -> bool:
        cells = [cell.strip() for cell in self._text[start:end].strip().strip("|").split("|")]
        return names_columns(cells, len(cells))

    def _list_enclosing_lines(self, region: int, start: int, *, has_header: bool) -> Iterator[str]:
        """Yield enclosing lines, outermost first, or the first cell of a row."""
        block = self._regions[region]
        if block.kind in {"table", "row"}:
            yield from self._iter_first_cell(block, start)
            return
        rows = self._nesting.find_enclosing_lines(block, start)
        if has_header and rows and rows[0].start == block.start:
            rows = rows[1:]
        for row in rows[:_MAX_LINES]:
            yield self._format_on_one_line(row.start, row.end, _MAX_LINE_CHARACTERS)

    def _iter_first_cell(self, block: Region, start: int) -> Iterator[str]:
        """Yield the first cell of the row at a position, unless the row starts there."""
        row = max(block.start, self._text.rfind("\n", block.start, start) + 1)
        before = self._text[row : min(start, row + _MAX_LINE_CHARACTERS)]
        content = before.lstrip(" \t|")
        if content:
            first = row + len(before) - len(content)
            yield self._format_on_one_line(
                first, first + len(_CELL_ENDS.split(content, maxsplit=1)[0])
            )

    def _format_on_one_line(self, start: int, end: int, longest: int | None = None) -> str:
        """Return text[start:end] on one line; "" if it has a masked credential or is too long."""
        first = bisect_left(self._ends, start + 1)
        if first < len(self._starts) and self._starts[first] < end:
            return ""
        line = " ".join(self._text[start:end].split())
        if longest is None or len(line) <= longest:
            return line
        return line[: line.rfind(" ", 0, longest)] if " " in line[:longest] else ""

    def _fit_lines(self, lines: Iterable[str], room: int) -> tuple[list[str], int]:
        """Return as many whole words of each line as fit into `room`, and the room that is left."""
        fitting = []
        for line in lines:
            part, size = line, self._measure.measure(f"{line}\n")
            while part and size > room:
                # Size is roughly proportional to length; each iteration removes at least one word.
                part = part[: len(part) * max(room, 0) // size].rpartition(" ")[0]
                size = self._measure.measure(f"{part}\n")
            if part:
                fitting.append(part)
                room -= size
        return fitting, room


class _Nesting:
    """The lines that enclose positions, found by indentation; positions must not decrease."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._block: Region | None = None
        self._rows: list[Row] = []
        self._next = 0
        self._stack: list[Row] = []

    def find_enclosing_lines(self, block: Region, at: int) -> list[Row]:
        """Return the lines above a position in a block that enclose it, outermost first."""
        line = max(block.start, self._text.rfind("\n", block.start, at) + 1)
        if line == block.start or not self._text[line : line + 1].isspace():
            return []
        if block is not self._block:
            self._block, self._next, self._stack = block, 0, []
            self._rows = [*split_rows(self._text, block.start, block.end)]
        while self._next < len(self._rows) and self._rows[self._next].end <= at:
            self._push_row(self._rows[self._next])
            self._next += 1
        indent = self._rows[self._next].indent if self._next < len(self._rows) else -1
        return [row for row in self._stack if row.indent < indent]

    def _push_row(self, row: Row) -> None:
        if row.indent < 0:
            return
        is_named = any(map(str.isalnum, self._text[row.start : row.end]))
        # A line with only a bracket closes deeper lines, but the line that opened the bracket may
        # continue.
        while self._stack and self._stack[-1].indent >= row.indent + (not is_named):
            self._stack.pop()
        if is_named:
            self._stack.append(row)
