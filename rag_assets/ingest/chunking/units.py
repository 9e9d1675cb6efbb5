"""Units: the smallest spans that a document is cut into, each with its size and rank.

A document is a sequence of regions (its blocks, and the text between them), which are cut into
units. A chunker does not measure each candidate passage. It adds the sizes of units, which are all
counted in one call, and then counts only the chosen text. Units start where the tokeniser's own
words start (before a space, after a line end), so the sums are nearly exact.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from rag_assets.common.tokens import count_tokens
from rag_assets.ingest.chunking.boundaries import (
    Cuts,
    Rank,
    build_grapheme_cuts,
    find_cell_cuts,
    find_code_cuts,
    find_line_cuts,
    find_list_cuts,
    find_table_cuts,
    find_word_group_cuts,
)
from rag_assets.ingest.chunking.model import find_touched_masks
from rag_assets.ingest.parsing.model import Block, BlockKind, MaskedSpan, ParsedText
from rag_assets.privacy.described import is_described


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of the size of texts.

    Attributes:
        reach: number of characters of prose that nearly always have a size of at least 1.
        in_tokens: whether sizes are cl100k_base tokens.
    """

    count: Callable[[Sequence[str]], list[int]]
    reach: int
    in_tokens: bool

    def measure(self, text: str) -> int:
        """Return the size of one text."""
        return self.count([text])[0]


TOKENS = Measure(count_tokens, reach=8, in_tokens=True)
CHARACTERS = Measure(lambda texts: [*map(len, texts)], reach=2, in_tokens=False)


@dataclass(frozen=True, slots=True)
class Region:
    """A block, or text outside any block, with the white space after it."""

    kind: BlockKind
    start: int
    end: int
    heading_path: tuple[str, ...]
    level: int


def find_regions(parsed: ParsedText) -> list[Region]:
    """Return the regions to chunk: all blocks except front matter, and the text between blocks."""
    regions: list[Region] = []
    pos = 0
    path: tuple[str, ...] = ()
    end_of_text = Block("front_matter", len(parsed.text), len(parsed.text))
    for block in (*parsed.blocks, end_of_text):
        start = max(pos, block.start)
        gap = parsed.text[pos:start]
        if regions and pos == regions[-1].end and not gap.strip():
            last = regions[-1]
            regions[-1] = Region(last.kind, last.start, start, last.heading_path, last.level)
        elif gap.strip():
            regions.append(Region("paragraph", pos, start, path, 0))
        if block.kind != "front_matter":
            path = block.heading_path
            if block.end > start:
                regions.append(Region(block.kind, start, block.end, path, block.level))
        pos = max(pos, block.end)
    return regions


@dataclass(frozen=True, slots=True)
class CutRules:
    """The rules by which a chunker cuts units.

    Attributes:
        longest: maximum size of a unit; at least 4, since one character may be four tokens.
        after_heading: maximum size of a unit right after a heading, which is in the same
            passage as the heading.
        prose: yields the positions at which a paragraph, or a line over `longest`, is cut into
            sentences.
    """

    measure: Measure
    longest: int
    after_heading: int
    prose: Cuts
    code: Cuts = find_code_cuts

    def get_cuts(self, kind: BlockKind) -> Cuts:
        """Return the function that yields the cut positions to try first in a kind of region."""
        if kind == "paragraph":
            return self.prose
        return self.code if kind == "code" else _CUTS.get(kind, find_line_cuts)


_CUTS: Final[Mapping[BlockKind, Cuts]] = {"table": find_table_cuts, "list": find_list_cuts}
_KINDS_WITH_CELLS: Final = frozenset({"table", "row"})


class _UnitSpan(NamedTuple):
    start: int
    end: int
    rank: float
    region: int


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a document, in order; unit k is text[starts[k]:ends[k]].

    Attributes:
        ranks: rank of a cut right before the unit.
        totals: size of all units before the k-th; one entry longer than the other lists.
        masked: whether the unit touches a span that a pattern in privacy.described masked.
        edges: for each of the highest ranks, the units before which a cut has at least this
            rank.
    """

    starts: list[int]
    ends: list[int]
    ranks: list[float]
    region: list[int]
    totals: list[int]
    first: list[int]
    masked: list[bool]
    edges: Mapping[Rank, list[int]]

    def find_edge_before(self, unit: int, level: Rank) -> int:
        """Return the last unit up to `unit` with a cut of this rank before it; else -1."""
        at = bisect_right(self.edges[level], unit)
        return self.edges[level][at - 1] if at else -1

    def find_next_edge(self, unit: int, level: Rank, high: int) -> int:
        """Return the next unit with a cut of this rank before it; else `high`."""
        at = bisect_right(self.edges[level], unit)
        return min(high, self.edges[level][at]) if at < len(self.edges[level]) else high

    def estimate_size(self, low: int, high: int) -> int:
        """Return the approximate size of units low to high (exclusive) together."""
        return self.totals[high] - self.totals[low]


def find_units(
    text: str, regions: Sequence[Region], masked: Sequence[MaskedSpan], grammar: CutRules
) -> Units:
    """Cut regions into units.

    Paragraphs are cut into sentences; code, tables, lists and rows are cut into lines. Spans that
    are too long for a unit are cut further: into cells, sentences, words, and visible characters.
    """
    pieces = [
        piece
        for index in range(len(regions))
        for piece in _cut_region(text, regions, index, grammar)
    ]
    sizes = grammar.measure.count([text[piece.start : piece.end] for piece in pieces])
    characters = build_grapheme_cuts(max(1, grammar.longest // 4))
    finer: list[Callable[[BlockKind], Cuts]] = [
        lambda kind: find_cell_cuts if kind in _KINDS_WITH_CELLS else grammar.prose,
        lambda _: grammar.prose,
        lambda _: find_word_group_cuts,
        lambda _: characters,
    ]
    for cuts_of in finer:
        long = [
            size > grammar.after_heading and size > _get_max_size(piece, grammar)
            for piece, size in zip(pieces, sizes, strict=True)
        ]
        if not any(long):
            break
        parts = [
            [*_cut(text, piece, cuts_of(regions[piece.region].kind))] if cut else [piece]
            for piece, cut in zip(pieces, long, strict=True)
        ]
        sizes = _list_sizes(text, parts, sizes, long, grammar.measure)
        pieces = [part for region_parts in parts for part in region_parts]
    return _build_units(pieces, sizes, len(regions), masked)


def _cut_region(
    text: str, regions: Sequence[Region], index: int, grammar: CutRules
) -> Iterator[_UnitSpan]:
    region, before = regions[index], regions[index - 1] if index else None
    below_heading = before is not None and before.kind == "heading" and before.end == region.start
    rank = Rank.HEADING if below_heading else Rank.BLOCK
    region_span = _UnitSpan(region.start, region.end, rank, index)
    if region.kind == "heading":
        return iter((region_span,))
    return _cut(text, region_span, grammar.get_cuts(region.kind))


def _cut(text: str, piece: _UnitSpan, cuts: Cuts) -> Iterator[_UnitSpan]:
    """Yield the parts of a span between cuts; the last part keeps the white space at the end."""
    content = text[piece.start : piece.end].rstrip()
    start, rank = piece.start, piece.rank
    for at, cut_rank in cuts(text, start, start + len(content)):
        yield _UnitSpan(start, at, rank, piece.region)
        start, rank = at, cut_rank
    yield _UnitSpan(start, piece.end, rank, piece.region)


def _get_max_size(piece: _UnitSpan, grammar: CutRules) -> int:
    return grammar.after_heading if piece.rank is Rank.HEADING else grammar.longest


def _list_sizes(
    text: str,
    parts: Sequence[Sequence[_UnitSpan]],
    sizes: Sequence[int],
    is_cut: Sequence[bool],
    measure: Measure,
) -> list[int]:
    """Return the sizes of all parts; only parts of spans that were cut are measured."""
    cut = [
        piece_parts for piece_parts, is_piece_cut in zip(parts, is_cut, strict=True) if is_piece_cut
    ]
    counts = iter(
        measure.count([text[part.start : part.end] for piece_parts in cut for part in piece_parts])
    )
    all_sizes: list[int] = []
    for piece_parts, size, is_piece_cut in zip(parts, sizes, is_cut, strict=True):
        all_sizes += [next(counts) for _ in piece_parts] if is_piece_cut else [size]
    return all_sizes


def _build_units(
    pieces: Sequence[_UnitSpan], sizes: Sequence[int], regions: int, masked: Sequence[MaskedSpan]
) -> Units:
    region = [piece.region for piece in pieces]
    return Units(
        starts=[piece.start for piece in pieces],
        ends=[piece.end for piece in pieces],
        ranks=[piece.rank for piece in pieces],
        region=region,
        totals=[0, *accumulate(sizes)],
        first=[bisect_left(region, index) for index in range(regions + 1)],
        edges={
            level: [at for at, piece in enumerate(pieces) if piece.rank >= level]
            for level in (Rank.ITEM, Rank.BLOCK)
        },
        masked=[
            any(is_described(m.rule) for m in spans) for spans in find_touched_masks(masked, pieces)
        ],
    )
