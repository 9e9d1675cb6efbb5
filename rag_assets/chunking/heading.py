"""The heading-aware chunker: sections first, then paragraphs, sentences, words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from rag_assets.chunking.graphemes import is_boundary
from rag_assets.chunking.overlap import overlap_start
from rag_assets.chunking.parameters import ChunkParameters
from rag_assets.chunking.passages import Passage
from rag_assets.chunking.sections import common_path, group_sections
from rag_assets.chunking.tokens import count_text
from rag_assets.chunking.units import Rank, Region, Units, find_regions, find_units
from rag_assets.parsing.model import ParsedText


class HeadingChunker:
    """Cuts a document along its headings.

    - No passage has over max_tokens cl100k_base tokens.
    - It ends at the best place in the last three quarters of what fits: a block's end before a
      blank line, that before the end of a sentence or line, that before a word, that before a
      visible character. A table or a code block that would fit whole is not cut at all.
    - A passage that continues a section repeats the last words of the one before it, at most
      `overlap` tokens of them. Nothing is repeated into another section, or across a masked span.
    - Small neighbouring sections share a passage (see sections); its heading path is then what
      their paths have in common.
    - Text around a masked span stands in a passage of its own, as small as a sentence or line, so
      that dropping it takes little else along.
    - Front matter is left out: it is metadata. So is white space at both ends.

    Time and memory grow in proportion to the text, whatever it looks like.

    Args:
        max_tokens: cl100k_base tokens.
        overlap: cl100k_base tokens, at most half of max_tokens.

    Raises:
        ConfigurationError: a limit is out of range.
    """

    def __init__(self, max_tokens: int, overlap: int) -> None:
        checked = ChunkParameters("heading", max_tokens, overlap)
        self.max_tokens, self.overlap = checked.max_tokens, checked.overlap
        self._unit_limit = 3 * (max_tokens - overlap) // 4

    def split(self, parsed: ParsedText) -> list[Passage]:
        """The passages of a document, in order; every non-blank character is in at least one."""
        regions = find_regions(parsed)
        units = find_units(parsed.text, regions, parsed.masked, self._unit_limit)
        packer = _Packer(parsed.text, regions, units, self.max_tokens, self.overlap)
        return [
            passage
            for low, high in group_sections(regions, units, self.max_tokens)
            for run_low, run_high in _runs(units.masked, low, high)
            for passage in packer.pack(run_low, run_high)
        ]


def _runs(masked: Sequence[bool], low: int, high: int) -> Iterator[tuple[int, int]]:
    """Cut a range of units wherever masked ones begin or end."""
    start = low
    for index in range(low + 1, high):
        if masked[index] != masked[index - 1]:
            yield start, index
            start = index
    if start < high:
        yield start, high


class _Packer:
    """Fills passages with units, never looking back further than one passage."""

    def __init__(
        self, text: str, regions: Sequence[Region], units: Units, max_tokens: int, overlap: int
    ) -> None:
        self._text, self._regions, self._units = text, regions, units
        self._max, self._overlap = max_tokens, overlap
        # A block is kept whole even if that leaves only a quarter of the overlap.
        self._whole_block = max_tokens - -(-overlap // 4)

    def pack(self, low: int, high: int) -> Iterator[Passage]:
        """Passages for units low to high (exclusive); the first repeats nothing."""
        previous: Passage | None = None
        while low < high:
            new_start = self._content_start(low)
            if new_start is None:
                low += 1
                continue
            low, previous = self._next(low, high, new_start, previous)
            yield previous

    def _next(
        self, low: int, high: int, new_start: int, previous: Passage | None
    ) -> tuple[int, Passage]:
        """One passage from unit low on, and the unit after it."""
        overlap = self._overlap_before(low) if previous else 0
        while True:
            start = self._repeat(previous, overlap, new_start) if previous else new_start
            stop, end, tokens = self._fill(low, high, start, new_start)
            if tokens <= self._max or start == new_start:
                path = common_path(self._touched(low, stop))
                return stop, Passage(start, new_start, end, path, tokens)
            overlap //= 2  # a first unit so large that it needs some of the overlap's room

    def _fill(self, low: int, high: int, start: int, new_start: int) -> tuple[int, int, int]:
        """Where a passage from start stops: the unit after it, its last character, its tokens.

        It holds unit low in any case; so it may be over the limit, but only for the overlap.
        """
        budget = self._max - (count_text(self._text[start:new_start]) if start < new_start else 0)
        while True:
            stop = self._best_stop(low, high, budget)
            end = self._content_end(low, stop)
            tokens = count_text(self._text[start:end])
            if tokens <= self._max or stop == low + 1:
                return stop, end, tokens
            # Joined, units can have a few tokens more than their sum: leave out as many.
            budget = min(budget, self._units.tokens(low, stop)) - (tokens - self._max)

    def _best_stop(self, low: int, high: int, budget: int) -> int:
        """The best place to end a passage that begins with unit low; at least one unit after it."""
        totals, ranks = self._units.totals, self._units.ranks
        fits = max(bisect_right(totals, totals[low] + budget, low, high + 1) - 1, low + 1)
        if fits >= high:
            return high
        best = fits
        for stop in range(fits - 1, low, -1):
            if 4 * (totals[stop] - totals[low]) < budget:
                break
            if ranks[stop] > ranks[best]:
                best = stop
        return self._spare_block(low, best)

    def _spare_block(self, low: int, stop: int) -> int:
        """Stop before a table or code block rather than inside one that fits a passage whole."""
        region = self._units.region[stop]
        first, after = self._units.first[region], self._units.first[region + 1]
        if not low < first < stop or self._units.ranks[first] is Rank.HEADING:
            return stop
        if self._regions[region].kind not in {"table", "code"}:
            return stop
        return first if self._units.tokens(first, after) <= self._whole_block else stop

    def _overlap_before(self, low: int) -> int:
        """How many tokens may be repeated before unit low."""
        region = self._units.region[low]
        first, after = self._units.first[region], self._units.first[region + 1]
        tokens = self._units.tokens(first, after)
        whole = low == first and self._regions[region].kind in {"table", "code"}
        if whole and tokens <= self._whole_block:
            return min(self._overlap, self._max - tokens)
        return self._overlap

    def _repeat(self, previous: Passage, overlap: int, new_start: int) -> int:
        """Where a passage starts that repeats the end of the previous one.

        Nothing is repeated across more blank characters than a passage may have tokens: they
        could leave no room.
        """
        if overlap == 0 or new_start - previous.end > self._max:
            return new_start
        start = overlap_start(self._text, previous.start, previous.end, overlap)
        return start if start < previous.end else new_start

    def _content_start(self, unit: int) -> int | None:
        """Where the first word of a unit begins; None for a blank unit."""
        start, end = self._units.starts[unit], self._units.ends[unit]
        content = self._text[start:end].lstrip()
        if not content:
            return None
        at = end - len(content)
        # A space may carry a mark: the two are one character.
        return at if at == start or is_boundary(self._text, at) else at - 1

    def _content_end(self, low: int, stop: int) -> int:
        """The end of the last word in units low to stop (exclusive), of which one is not blank."""
        while stop > low:
            start = self._units.starts[stop - 1]
            content = self._text[start : self._units.ends[stop - 1]].rstrip()
            if content:
                return start + len(content)
            stop -= 1
        return self._units.ends[low]

    def _touched(self, low: int, stop: int) -> Sequence[Region]:
        return self._regions[self._units.region[low] : self._units.region[stop - 1] + 1]
