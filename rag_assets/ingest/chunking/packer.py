"""The packer, which all chunkers share: it fills passages with units."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.boundaries import Rank
from rag_assets.ingest.chunking.contexts import Contexts
from rag_assets.ingest.chunking.graphemes import is_boundary
from rag_assets.ingest.chunking.measure import Measure
from rag_assets.ingest.chunking.overlap import overlap_start
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.chunking.regions import Region, find_regions
from rag_assets.ingest.chunking.sections import common_path
from rag_assets.ingest.chunking.units import Grammar, Units, find_units
from rag_assets.ingest.parsing.model import ParsedText

_KEPT_WHOLE: Final = (Rank.BLOCK, Rank.ITEM)
"""Ranks of the boundaries of blocks and items. Text between such boundaries is not cut if it fits
into a passage."""
_LONGEST_INDENT: Final = 200

# (regions, their units) → ranges of units, from low to high (exclusive), whose borders no passage
# crosses.
Grouping: TypeAlias = Callable[[Sequence[Region], Units], Iterable[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of passages, in the unit of their chunker.

    Attributes:
        size: maximum size of a passage.
        overlap: maximum size of the text that a passage repeats of the previous passage.
        by_sentence: whether the overlap starts at a sentence, if a whole sentence fits.
        with_context: whether a passage that starts within a block has a context.
    """

    size: int
    overlap: int
    by_sentence: bool = False
    with_context: bool = True

    @property
    def whole(self) -> int:
        """Return the size up to which a sentence stays whole; it leaves 1/4 of the overlap free."""
        return self.size - -(-self.overlap // 4)


def pack(parsed: ParsedText, grammar: Grammar, limits: Limits, grouping: Grouping) -> list[Passage]:
    """Return the passages of a document, in order.

    - Every non-blank character is in at least one passage.
    - A block, a table row or a list item that fits a passage is not cut. Larger ones are cut at the
      best position in the last three quarters of what fits, judging by the ranks of the units.
    - A passage that continues a group repeats the last words, or sentences, of the previous
      passage; in tables and code, it repeats the last whole rows or lines. The overlap never
      crosses the start of a group or a masked span.
    - A passage that starts within a table, a list or code has a context: see contexts. The context
      counts towards the size of the passage, which never exceeds the limit.
    - Text around a span masked by a described pattern is a separate passage, as small as a sentence
      or line, so that dropping it loses little other text.
    - Front matter is left out, because it is metadata. White space at both ends is left out too.
    - The heading path is the common part of the paths of all text that is not overlap.

    Time and memory grow in proportion to the text, whatever its content.
    """
    regions = find_regions(parsed)
    units = find_units(parsed.text, regions, parsed.masked, grammar)
    packer = _Packer(parsed, regions, units, grammar.measure, limits)
    return [
        passage
        for low, high in grouping(regions, units)
        for run_low, run_high in _split_into_runs(units, low, high, limits.size)
        for passage in packer.pack(run_low, run_high)
    ]


def one_group(_: Sequence[Region], units: Units) -> Iterator[tuple[int, int]]:
    """Yield the whole document as one range, whatever headings it has."""
    yield 0, len(units.starts)


def _split_into_runs(
    units: Units, low: int, high: int, longest_gap: int
) -> Iterator[tuple[int, int]]:
    """Split a range of units at the edges of masked units and at long gaps in the text."""
    start = low
    for index in range(low + 1, high):
        gap = units.starts[index] - units.ends[index - 1]
        if units.masked[index] != units.masked[index - 1] or gap > longest_gap:
            yield start, index
            start = index
    if start < high:
        yield start, high


class _Packer:
    """Packs units into passages; it never looks back further than one passage."""

    def __init__(
        self,
        parsed: ParsedText,
        regions: Sequence[Region],
        units: Units,
        measure: Measure,
        limits: Limits,
    ) -> None:
        self._text, self._regions, self._units = parsed.text, regions, units
        self._measure, self._limits = measure, limits
        self._contexts = Contexts(parsed.text, regions, parsed.masked, measure)

    def pack(self, low: int, high: int) -> Iterator[Passage]:
        """Yield passages for units low to high (exclusive); the first passage has no overlap."""
        previous: Passage | None = None
        while low < high:
            new_start = self._find_content_start(low)
            if new_start is None:
                low += 1
                continue
            low, previous = self._next(low, high, new_start, previous)
            yield previous

    def _next(
        self, low: int, high: int, new_start: int, previous: Passage | None
    ) -> tuple[int, Passage]:
        """Return one passage that starts with unit low, and the index of the unit after it."""
        whole = self._find_whole_end(low, high)
        room = self._limits.size - (self._units.size(low, whole) if whole else 0)
        overlap = min(self._limits.overlap, room) if previous else 0
        with_context = self._limits.with_context
        while True:
            start = (
                self._find_overlap_start(previous, overlap, new_start) if previous else new_start
            )
            context, taken = (
                self._build_context(start, new_start, room) if with_context else ("", 0)
            )
            stop, end, size = self._fill(low, high, start, new_start, taken)
            is_within = size + taken <= self._limits.size and stop >= whole
            if is_within or not (taken or start < new_start):
                tokens = (
                    size + taken if self._measure.in_tokens else self._tokens(start, end, context)
                )
                path = common_path(self._find_touched_regions(low, stop))
                return stop, Passage(start, new_start, end, path, tokens, context=context)
            # If the first unit or block is very large, it needs room that the context or overlap
            # would take.
            with_context = with_context and start < new_start
            overlap //= 2

    def _find_whole_end(self, low: int, high: int) -> int:
        """Return the unit after the block, row or item that starts at low if that fits, else 0."""
        for level in _KEPT_WHOLE:
            if self._units.ranks[low] >= level:
                after = self._units.next_edge(low, level, high)
                if self._units.size(low, after) <= self._limits.size:
                    return after
        return 0

    def _tokens(self, start: int, end: int, context: str) -> int:
        """Count the tokens of a passage and its context, for chunkers that do not count tokens."""
        counted = count_text(self._text[start:end])
        return counted + count_text(f"{context}\n") if context else counted

    def _build_context(self, start: int, new_start: int, room: int) -> tuple[str, int]:
        """Return the context of a passage that starts at start, and its size."""
        if start < new_start:
            room -= self._measure.of(self._text[start:new_start])
        unit = max(0, bisect_right(self._units.starts, start) - 1)
        region = self._units.region[unit]
        return self._contexts.context_at(region, start, self._limits.size, room)

    def _fill(
        self, low: int, high: int, start: int, new_start: int, taken: int
    ) -> tuple[int, int, int]:
        """Return where a passage stops: the unit after it, its last character, and its size.

        A passage always contains unit low. So it may exceed the limit, but only if the overlap or
        the context has taken part of the limit.
        """
        limit = self._limits.size - taken
        budget = limit
        if start < new_start:
            budget -= self._measure.of(self._text[start:new_start])
        while True:
            stop = self._find_best_stop(low, high, budget)
            end = self._find_content_end(low, stop)
            size = self._measure.of(self._text[start:end])
            if size <= limit or stop == low + 1:
                return stop, end, size
            # Joined units can have a few tokens more than the sum of their sizes: leave out as many
            # tokens.
            budget = min(budget, self._units.size(low, stop)) - (size - limit)

    def _find_best_stop(self, low: int, high: int, budget: int) -> int:
        """Return the best unit to end before, for a passage that starts with low; at least low + 1.

        A block, a table row or a list item that fits into a passage is not cut: the passage ends
        before it, however small the passage then is.
        """
        totals, ranks = self._units.totals, self._units.ranks
        fits = max(bisect_right(totals, totals[low] + budget, low, high + 1) - 1, low + 1)
        if fits >= high:
            return high
        for level in _KEPT_WHOLE:
            stop = self._units.edge_before(fits, level)
            if stop <= low:
                continue
            after = self._units.next_edge(stop, level, high)
            is_filled = 4 * (totals[stop] - totals[low]) >= budget
            if is_filled or self._units.size(stop, after) <= self._limits.size:
                return stop
        best = fits
        for stop in range(fits - 1, low, -1):
            if 4 * (totals[stop] - totals[low]) < budget:
                break
            if ranks[stop] > ranks[best]:
                best = stop
        return best

    def _find_overlap_start(self, previous: Passage, overlap: int, new_start: int) -> int:
        """Return the start of a passage that repeats the end of the previous passage.

        If the previous passage is followed by more blank characters than the limit has tokens or
        characters, there is no overlap: the blanks could use up the room.
        """
        if overlap == 0 or new_start - previous.end > self._limits.size:
            return new_start
        span = (previous.start, previous.end)
        start = overlap_start(self._text, *span, overlap, self._measure)
        if self._limits.by_sentence:
            start = self._find_sentence_start(start, previous.end)
        start = self._find_row_start(start, previous.end, new_start)
        return start if start < previous.end else new_start

    def _find_row_start(self, start: int, end: int, new_start: int) -> int:
        """Return the start of the first row or code line at or after start, else end.

        Return start itself outside tables and code, and if a row or line is cut. Rows are not
        repeated before text outside their table.
        """
        units = self._units
        unit = max(0, bisect_right(units.starts, start) - 1)
        region = units.region[unit]
        kind = self._regions[region].kind
        if kind not in {"table", "code"} or self._is_within_line(new_start):
            return start
        if kind == "table" and end <= self._regions[region].end <= new_start:
            return end
        while unit < len(units.starts) and units.starts[unit] < end:
            is_row = units.ranks[unit] >= Rank.ITEM or units.region[unit] != region
            if is_row or (kind == "code" and self._text[units.starts[unit] - 1] == "\n"):
                content = self._find_content_start(unit)
                if content is not None and content >= start:
                    return content
            unit += 1
        return end

    def _is_within_line(self, at: int) -> bool:
        """Return whether text precedes a position on its line."""
        line = self._text.rfind("\n", max(0, at - _LONGEST_INDENT), at) + 1
        return bool(self._text[max(line, at - _LONGEST_INDENT) : at].strip())

    def _find_sentence_start(self, low: int, high: int) -> int:
        """Return the start of the first sentence in text[low:high]; low if none starts there."""
        starts, ranks = self._units.starts, self._units.ranks
        for unit in range(max(0, bisect_right(starts, low) - 1), bisect_left(starts, high)):
            if ranks[unit] < Rank.SENTENCE and ranks[unit] is not Rank.HEADING:
                continue
            start = self._find_content_start(unit)
            if start is not None and low <= start < high:
                return start
        return low

    def _find_content_start(self, unit: int) -> int | None:
        """Return the start of the first word of a unit; None for a blank unit."""
        start, end = self._units.starts[unit], self._units.ends[unit]
        content = self._text[start:end].lstrip()
        if not content:
            return None
        at = end - len(content)
        # A space may carry a combining mark; both are one character.
        return at if at == start or is_boundary(self._text, at) else at - 1

    def _find_content_end(self, low: int, stop: int) -> int:
        """Return the end of the last word in units low to stop (exclusive); some are not blank."""
        while stop > low:
            start = self._units.starts[stop - 1]
            content = self._text[start : self._units.ends[stop - 1]].rstrip()
            if content:
                return start + len(content)
            stop -= 1
        return self._units.ends[low]

    def _find_touched_regions(self, low: int, stop: int) -> Sequence[Region]:
        return self._regions[self._units.region[low] : self._units.region[stop - 1] + 1]
