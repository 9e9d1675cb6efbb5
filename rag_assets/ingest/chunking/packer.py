"""The packer, which all chunkers share: it fills passages with units.

A section is a run of headings with the text below the last of them. A heading without its own text
stays with the next text, so that no heading is separated from the first text below it. A section
that leaves over half of a chunk empty is joined with the sections after it, as long as all of them
fit and none has a higher level than the first. So siblings and children are joined, but the next
chapter is not. A change log thus gives passages of a useful size, and no chunk covers two
chapters.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from typing import Final, TypeAlias

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.boundaries import Rank, find_word_cuts, is_boundary
from rag_assets.ingest.chunking.contexts import ContextBuilder
from rag_assets.ingest.chunking.model import Passage
from rag_assets.ingest.chunking.units import (
    CutRules,
    Measure,
    Region,
    Units,
    find_regions,
    find_units,
)
from rag_assets.ingest.parsing.model import ParsedText

_NO_HEADING = 0


@dataclass(frozen=True, slots=True)
class Section:
    """Regions low to high (exclusive), and the highest level of their headings (0: no heading)."""

    low: int
    high: int
    level: int


def find_sections(
    regions: Sequence[Region], start: int = 0, end: int | None = None
) -> Iterator[Section]:
    """Yield the sections of regions start to end (exclusive), in order, without gaps."""
    end = len(regions) if end is None else end
    low, level, in_headings = start, _NO_HEADING, True
    for index in range(start, end):
        region = regions[index]
        if region.kind != "heading":
            in_headings = False
        elif in_headings and index > low:
            level = min(level, region.level)
        else:
            if index > low:
                yield Section(low, index, level)
            low, level, in_headings = index, region.level, True
    if start < end:
        yield Section(low, end, level)


def merge_deeper_sections(sections: Iterable[Section], levels: int) -> Iterator[Section]:
    """Yield the sections of the first `levels` levels (0: all), each with its subsections."""
    above: Section | None = None
    for section in sections:
        if above is not None and 0 < levels < section.level:
            above = Section(above.low, section.high, above.level)
            continue
        if above is not None:
            yield above
        above = section
    if above is not None:
        yield above


def group_sections(
    regions: Sequence[Region], units: Units, limit: int, levels: int = 0
) -> Iterator[tuple[int, int]]:
    """Yield ranges of units (low, high exclusive); no chunk crosses the border of a range."""
    return join_sections(merge_deeper_sections(find_sections(regions), levels), units, limit)


def join_sections(
    sections: Iterable[Section], units: Units, limit: int
) -> Iterator[tuple[int, int]]:
    """Yield the range of units (low, high exclusive) of each section or group of sections."""
    group: Section | None = None
    for section in sections:
        if group is not None and _can_join(group, section, units, limit):
            group = Section(group.low, section.high, group.level)
            continue
        if group is not None:
            yield units.first[group.low], units.first[group.high]
        group = section
    if group is not None:
        yield units.first[group.low], units.first[group.high]


def _can_join(group: Section, section: Section, units: Units, limit: int) -> bool:
    low, middle, high = (units.first[at] for at in (group.low, section.low, section.high))
    return (
        section.level >= group.level
        and 2 * units.estimate_size(low, middle) < limit
        and units.estimate_size(low, high) <= limit
    )


def find_common_path(regions: Sequence[Region]) -> tuple[str, ...]:
    """Return the headings that all text in the regions has above it."""
    paths = [region.heading_path for region in regions if region.kind != "heading"]
    return _find_common_start(paths or [region.heading_path for region in regions])


def _find_common_start(paths: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*paths, strict=False))
    return tuple(column[0] for column in columns)


_MAX_ERROR_WORDS = 3  # maximum error of a sum of word sizes, in words


def find_overlap_start(text: str, low: int, high: int, limit: int, measure: Measure) -> int:
    """Return the start of the longest run of whole words that fits at the end of text[low:high].

    It is `low` if the passage is a single word, and `high` if even the last visible character is
    larger than the limit. It lies inside a word if whole words would fill less than half of the
    limit, as in scripts without spaces. The passage ends with a visible character.
    """
    window = measure.reach * limit
    while True:
        floor = max(low, high - window)
        words, pieces = _find_word_starts(text, floor, high)
        start, size = _find_longest_run(text, words, high, limit, measure)
        if 2 * size < limit:
            start, size = min((start, size), _find_longest_run(text, pieces, high, limit, measure))
        if floor == low or start > min(pieces, default=floor):
            break
        window *= 4
    if start == high:
        near = range(max(low, high - measure.reach * limit), high)
        start, _ = _find_longest_run(
            text, [at for at in near if is_boundary(text, at)], high, limit, measure
        )
    return start


def _find_word_starts(text: str, floor: int, high: int) -> tuple[list[int], list[int]]:
    """Return two lists of positions in text[floor:high] at which an overlap may start.

    The first list has the starts of words. The second also has cut positions within long words.
    `floor` itself is excluded: it may lie inside a word, or at the start of the whole passage.
    """
    words, pieces = [], []
    for at, rank in find_word_cuts(text, floor, high):
        start = at
        while start < high and text[start].isspace():
            start += 1
        if start == high or (start > at and not is_boundary(text, start)):
            continue
        pieces.append(start)
        if rank >= Rank.WORD:
            words.append(start)
    return words, pieces


def _find_longest_run(
    text: str, starts: Sequence[int], high: int, limit: int, measure: Measure
) -> tuple[int, int]:
    """Return the first start for which text[start:high] fits the limit, and the size of that text.

    The result is (high, 0) if no start fits. Sums of word sizes give a close first guess. Only the
    first word of a run has a different size than in its sentence, since the space before it is
    lost.
    """
    # Count the space before a word with it, as the tokeniser does.
    words = [text[max(0, a - 1) : b - 1] for a, b in pairwise(starts)]
    counts = measure.count([*words, *(text[max(0, start - 1) : high] for start in starts[-1:])])
    # Negated, so that the sums from each start to the end increase with the start.
    sums = [-total for total in accumulate(reversed(counts))][::-1]
    guess = max(0, bisect_left(sums, -limit) - _MAX_ERROR_WORDS)
    for at in range(guess, len(starts), 2 * _MAX_ERROR_WORDS):
        near = starts[at : at + 2 * _MAX_ERROR_WORDS]
        exact = zip(near, measure.count([text[start:high] for start in near]), strict=True)
        fitting = next((candidate for candidate in exact if candidate[1] <= limit), None)
        if fitting:
            return fitting
    return high, 0


_UNCUT_RANKS: Final = (Rank.BLOCK, Rank.ITEM)
"""Ranks of the boundaries of blocks and items. Text between such boundaries is not cut if it fits
into a passage."""
_MAX_INDENT_CHARACTERS: Final = 200

# (regions, their units) → ranges of units, from low to high (exclusive), whose borders no passage
# crosses.
Grouping: TypeAlias = Callable[[Sequence[Region], Units], Iterable[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of passages, in the unit of their chunker.

    Attributes:
        by_sentence: whether the overlap starts at a sentence, if a whole sentence fits.
        with_context: whether a passage that starts within a block has a context.
    """

    size: int
    overlap: int
    by_sentence: bool = False
    with_context: bool = True

    @property
    def whole(self) -> int:
        """Return the size up to which a sentence is not cut: the limit less 1/4 of the overlap."""
        return self.size - -(-self.overlap // 4)


def pack(
    parsed: ParsedText, grammar: CutRules, limits: Limits, grouping: Grouping
) -> list[Passage]:
    """Return the passages of a document, in order.

    - Every non-blank character is in at least one passage.
    - A block, a table row or a list item that fits a passage is not cut. If it is larger, it is cut
      at the best-ranked position in the last three quarters of the passage.
    - A passage that continues a group repeats the last words, or sentences, of the previous
      passage; in tables and code, it repeats the last whole rows or lines. The overlap never
      crosses the start of a group or a masked span.
    - A passage that starts within a table, a list or code has a context; see the module `contexts`.
      The context counts towards the size of the passage, which never exceeds the limit.
    - Text around a span masked by a pattern in privacy.described is a separate passage, as small as
      a sentence or line, so that dropping the passage loses little other text.
    - Front matter is omitted, because it is metadata. White space at both ends is omitted too.
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


def group_all(_: Sequence[Region], units: Units) -> Iterator[tuple[int, int]]:
    """Yield the whole document as one range, whatever headings it has."""
    yield 0, len(units.starts)


def _split_into_runs(
    units: Units, low: int, high: int, longest_gap: int
) -> Iterator[tuple[int, int]]:
    """Split a range of units at masked units, and at gaps of over `longest_gap` characters."""
    start = low
    for index in range(low + 1, high):
        gap = units.starts[index] - units.ends[index - 1]
        if units.masked[index] != units.masked[index - 1] or gap > longest_gap:
            yield start, index
            start = index
    if start < high:
        yield start, high


class _Packer:
    """A packer of units into passages, which never looks back further than one passage."""

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
        self._contexts = ContextBuilder(parsed.text, regions, parsed.masked, measure)

    def pack(self, low: int, high: int) -> Iterator[Passage]:
        """Yield passages for units low to high (exclusive); the first passage has no overlap."""
        previous: Passage | None = None
        while low < high:
            new_start = self._find_content_start(low)
            if new_start is None:
                low += 1
                continue
            low, previous = self._build_passage(low, high, new_start, previous)
            yield previous

    def _build_passage(
        self, low: int, high: int, new_start: int, previous: Passage | None
    ) -> tuple[int, Passage]:
        """Build the passage that starts with unit `low`; also return the index of the next unit."""
        whole_end = self._find_whole_end(low, high)
        room = self._limits.size - (self._units.estimate_size(low, whole_end) if whole_end else 0)
        overlap = min(self._limits.overlap, room) if previous else 0
        with_context = self._limits.with_context
        while True:
            start = (
                self._find_overlap_start(previous, overlap, new_start) if previous else new_start
            )
            context, context_size = (
                self._build_context(start, new_start, room) if with_context else ("", 0)
            )
            stop, end, size = self._fill_passage(low, high, start, new_start, context_size)
            is_within = size + context_size <= self._limits.size and stop >= whole_end
            if is_within or not (context_size or start < new_start):
                tokens = (
                    size + context_size
                    if self._measure.in_tokens
                    else self._count_tokens(start, end, context)
                )
                path = find_common_path(self._find_touched_regions(low, stop))
                return stop, Passage(start, new_start, end, path, tokens, context=context)
            # If the first unit or block is very large, it needs room that the context or overlap
            # would take.
            with_context = with_context and start < new_start
            overlap //= 2

    def _find_whole_end(self, low: int, high: int) -> int:
        """Return the index of the unit after the block, row or item that starts at unit `low`.

        Return 0 if nothing that fits into a passage starts there.
        """
        for level in _UNCUT_RANKS:
            if self._units.ranks[low] >= level:
                after = self._units.find_next_edge(low, level, high)
                if self._units.estimate_size(low, after) <= self._limits.size:
                    return after
        return 0

    def _count_tokens(self, start: int, end: int, context: str) -> int:
        """Count the tokens of a passage and its context, for chunkers that do not count tokens."""
        tokens = count_text(self._text[start:end])
        return tokens + count_text(f"{context}\n") if context else tokens

    def _build_context(self, start: int, new_start: int, room: int) -> tuple[str, int]:
        """Return the context of a passage that starts at start, and its size."""
        if start < new_start:
            room -= self._measure.measure(self._text[start:new_start])
        unit = max(0, bisect_right(self._units.starts, start) - 1)
        region = self._units.region[unit]
        return self._contexts.build_context(region, start, self._limits.size, room)

    def _fill_passage(
        self, low: int, high: int, start: int, new_start: int, context_size: int
    ) -> tuple[int, int, int]:
        """Fill a passage with units, from unit `low` on.

        A passage always contains unit low. So it may exceed the limit, but only if the overlap or
        the context has taken part of the limit.

        Returns:
            The index of the first unit after the passage, the end offset of the passage's text, and
            its size.
        """
        limit = self._limits.size - context_size
        budget = limit
        if start < new_start:
            budget -= self._measure.measure(self._text[start:new_start])
        while True:
            stop = self._find_best_stop(low, high, budget)
            end = self._find_content_end(low, stop)
            size = self._measure.measure(self._text[start:end])
            if size <= limit or stop == low + 1:
                return stop, end, size
            # Joined units can have a few tokens more than the sum of their sizes: leave out as many
            # tokens.
            budget = min(budget, self._units.estimate_size(low, stop)) - (size - limit)

    def _find_best_stop(self, low: int, high: int, budget: int) -> int:
        """Return the index of the unit before which a passage from unit `low` should end.

        A block, a table row or a list item that fits into a passage is not cut: the passage ends
        before it, however small the passage then is. The result is at least low + 1.
        """
        totals, ranks = self._units.totals, self._units.ranks
        fits = max(bisect_right(totals, totals[low] + budget, low, high + 1) - 1, low + 1)
        if fits >= high:
            return high
        for level in _UNCUT_RANKS:
            stop = self._units.find_edge_before(fits, level)
            if stop <= low:
                continue
            after = self._units.find_next_edge(stop, level, high)
            is_filled = 4 * (totals[stop] - totals[low]) >= budget
            if is_filled or self._units.estimate_size(stop, after) <= self._limits.size:
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
        start = find_overlap_start(self._text, *span, overlap, self._measure)
        if self._limits.by_sentence:
            start = self._find_sentence_start(start, previous.end)
        start = self._find_row_start(start, previous.end, new_start)
        return start if start < previous.end else new_start

    def _find_row_start(self, start: int, end: int, new_start: int) -> int:
        """Return the start of the first row or code line at or after start, else end.

        Return start itself outside tables and code, and if a row or line is cut. Rows are not
        repeated before text outside their table, nor before a heading.
        """
        units = self._units
        unit = max(0, bisect_right(units.starts, start) - 1)
        region = units.region[unit]
        kind = self._regions[region].kind
        if kind not in {"table", "row", "code"} or self._is_within_line(new_start):
            return start
        following = self._regions[units.region[bisect_right(units.starts, new_start) - 1]]
        if kind == "row" and following.kind != "row":
            return end
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
        line = self._text.rfind("\n", max(0, at - _MAX_INDENT_CHARACTERS), at) + 1
        return bool(self._text[max(line, at - _MAX_INDENT_CHARACTERS) : at].strip())

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
        """Return the end of the last word in units, at least one of which is not blank."""
        while stop > low:
            start = self._units.starts[stop - 1]
            content = self._text[start : self._units.ends[stop - 1]].rstrip()
            if content:
                return start + len(content)
            stop -= 1
        return self._units.ends[low]

    def _find_touched_regions(self, low: int, stop: int) -> Sequence[Region]:
        return self._regions[self._units.region[low] : self._units.region[stop - 1] + 1]
