"""Sections of a document, and which small sections share a chunk.

A section is a run of headings with the text below the last of them. A heading without its own text
stays with the next text, so that no heading is separated from the first text below it.

A section that leaves over half of a chunk empty is joined with the sections after it, as long as
all of them fit and none has a higher level than the first. So siblings and children are joined, but
the next chapter is not. A change log thus gives passages of a useful size, and no chunk covers two
chapters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from rag_assets.ingest.chunking.regions import Region
from rag_assets.ingest.chunking.units import Units

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


def at_levels(sections: Iterable[Section], levels: int) -> Iterator[Section]:
    """Yield sections of the first levels of headings, each with the deeper sections below it.

    Args:
        sections: in order, without gaps.
        levels: number of levels; 0 for all.
    """
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
    return join_sections(at_levels(find_sections(regions), levels), units, limit)


def join_sections(
    sections: Iterable[Section], units: Units, limit: int
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of units of sections, with small neighbouring sections joined."""
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
        and 2 * units.size(low, middle) < limit
        and units.size(low, high) <= limit
    )


def common_path(regions: Sequence[Region]) -> tuple[str, ...]:
    """Return the headings common to all text in regions; without text, those common to headings."""
    paths = [region.heading_path for region in regions if region.kind != "heading"]
    return _find_common_start(paths or [region.heading_path for region in regions])


def _find_common_start(paths: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*paths, strict=False))
    return tuple(column[0] for column in columns)
