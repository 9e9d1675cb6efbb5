"""The code chunker: cuts code at definitions, and other texts at sections."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from rag_assets.ingest.chunking.boundaries import Cuts, Rank, find_line_cuts, find_sentence_cuts
from rag_assets.ingest.chunking.kinds import UNREAD, ChunkerKind, ChunkRequest, CutText
from rag_assets.ingest.chunking.model import Definition, Fact, Passage
from rag_assets.ingest.chunking.packer import Limits, find_sections, merge_deeper_sections, pack
from rag_assets.ingest.chunking.units import TOKENS, CutRules, Region, Units
from rag_assets.ingest.parsing.media_types import SOURCE_CODE
from rag_assets.ingest.parsing.model import Block
from rag_assets.systems.code_memory.languages.tree import add_rest_units
from rag_assets.systems.code_memory.symbols.model import CodeText, Unit
from rag_assets.systems.code_memory.symbols.source_types import (
    SOURCE_TYPES,
    get_type_of_path,
    is_data,
)

if TYPE_CHECKING:
    from rag_assets.tenants.model import Tenant

READING_VERSION = 24
"""Increased whenever the same text would yield other units, facts or relations."""
NO_PROGRAMS: Final = frozenset(
    {"css", "derived", "ini", "json", "run-event", "toml", "xml", "yaml"}
)
"""Languages, as in media types, whose files never use a definition by its name."""
_PROGRAMS = SOURCE_CODE - {f"text/x-{language}" for language in (*NO_PROGRAMS, "terraform")}
_MARKDOWN = "text/markdown"
_BUGS = "known_bug"
_DATA = "data"
_MAX_KEYS = 300
"""Number of units above which a structured file counts as data, in any folder."""
_REST = Definition("rest")


def cut_document(request: ChunkRequest) -> CutText:
    """Cut a document at its definitions, and collect its facts.

    - A unit marked as alone is a separate chunk, however small. Other units are joined with their
      neighbours until they have `minimum` tokens. Chunks do not overlap.
    - A unit over the limit is cut at the ends of statements, else at the ends of lines. Each
      continuation has the unit's signature among its headings.
    - Keys of data files are joined until they have `minimum` tokens. Each key of a configuration
      file is a chunk.
    - Other texts are cut at sections of `levels` levels, and small sections are joined. The
      continuation of a section repeats the end of the previous passage. In a list of known bugs,
      recognized by its path or first heading, each bug is a chunk.
    """
    from rag_assets.systems.code_memory.languages.texts import is_bug_list, list_known_bugs
    from rag_assets.systems.code_memory.reading import read_code

    reading = read_code(request.parsed.text, request.kind, request.frameworks)
    facts = (*reading.facts, *(Fact(UNREAD, 0, 0, values={"why": why}) for why in reading.notes))
    is_bug_list_text = request.path_hint == _BUGS or is_bug_list(request.parsed.text)
    if request.kind == _MARKDOWN and is_bug_list_text:
        bugs = replace(reading, units=list_known_bugs(request.parsed.text))
        return CutText(_split_along_units(request, bugs), facts)
    if _is_prose(request):
        return CutText(_split_along_sections(request), facts)
    if request.path_hint == _DATA or len(reading.units) > _MAX_KEYS:
        joined = (
            replace(unit, alone=False) if unit.role == "key" else unit for unit in reading.units
        )
        reading = replace(reading, units=tuple(joined))
    return CutText(_split_along_units(request, reading), facts)


def classify_path(path: str, media_type: str) -> str:
    """Return the kind of document by its path: "known_bug", "data", or "" for any other."""
    if media_type == _MARKDOWN:
        return _BUGS if get_type_of_path(path) == _BUGS else ""
    return _DATA if is_data(path) else ""


def split_document(request: ChunkRequest) -> list[Passage]:
    """Cut a document at headings or blank lines, without parsing it; see cut_document."""
    if _is_prose(request):
        return _split_along_sections(request)
    return _split_along_units(request, CodeText(add_rest_units(request.parsed.text, ()), ()))


def _is_prose(request: ChunkRequest) -> bool:
    return any(block.kind != "code" for block in request.parsed.blocks)


def _split_along_sections(request: ChunkRequest) -> list[Passage]:
    longest = 3 * (request.limit - request.overlap) // 4
    grammar = CutRules(TOKENS, longest, longest // 2, find_sentence_cuts)
    limits = Limits(request.limit, request.overlap)
    grouping = partial(
        _iter_sections, minimum=request.minimum, limit=request.limit, levels=request.levels
    )
    passages = pack(request.parsed, grammar, limits, grouping)
    return [replace(passage, definition=Definition("section")) for passage in passages]


def _iter_sections(
    regions: Sequence[Region], units: Units, minimum: int, limit: int, levels: int
) -> Iterator[tuple[int, int]]:
    """Yield the range of units of each section; small sections are joined with later ones."""
    bounds = [section.low for section in merge_deeper_sections(find_sections(regions), levels)]
    edges = [units.first[low] for low in (*(bounds or [0]), len(regions))]
    yield from _join_small_ranges(edges, units, minimum, limit)


def _join_small_ranges(
    edges: Sequence[int], units: Units, minimum: int, limit: int
) -> Iterator[tuple[int, int]]:
    """Yield the ranges between consecutive edges, as indexes of units.

    A range with fewer than `minimum` tokens is joined with later ranges, up to `limit` tokens.
    """
    low = edges[0]
    for middle, high in zip(edges[1:], [*edges[2:], edges[-1]], strict=True):
        small = units.estimate_size(low, middle) < minimum
        if small and high > middle and units.estimate_size(low, high) <= limit:
            continue
        if middle > low:
            yield low, middle
        low = middle


def _split_along_units(request: ChunkRequest, reading: CodeText) -> list[Passage]:
    units = reading.units
    if not units:
        return []
    blocks = tuple(
        Block("code", unit.start, unit.end, (unit.symbol,) if unit.symbol else ()) for unit in units
    )
    longest = 3 * request.limit // 4
    grammar = CutRules(
        TOKENS, longest, longest // 2, find_sentence_cuts, _build_statement_cuts(units)
    )
    grouping = partial(
        _group_units, definition_units=units, minimum=request.minimum, limit=request.limit
    )
    parsed = replace(request.parsed, blocks=blocks)
    # The continuation of a unit has its signature among the headings.
    limits = Limits(request.limit, overlap=0, with_context=False)
    passages = pack(parsed, grammar, limits, grouping)
    names = _DefinitionFinder(request.parsed.text, units)
    return [names.add_definition(passage) for passage in passages]


def _group_units(
    regions: Sequence[Region],
    units: Units,
    definition_units: Sequence[Unit],
    minimum: int,
    limit: int,
) -> Iterator[tuple[int, int]]:
    """Yield ranges of the packer's units to pack separately.

    Each unit marked as alone is a range; units between them are joined up to the minimum.
    """
    alone = {unit.start for unit in definition_units if unit.alone}
    run: list[int] = []
    for index, region in enumerate(regions):
        first, after = units.first[index], units.first[index + 1]
        if region.start not in alone:
            run.append(first)
            continue
        if run:
            yield from _join_small_ranges([*run, first], units, minimum, limit)
            run = []
        yield first, after
    if run:
        yield from _join_small_ranges([*run, units.first[len(regions)]], units, minimum, limit)


def _build_statement_cuts(units: Sequence[Unit]) -> Cuts:
    """Return a function that yields the offsets to cut at; ends of statements rank first."""
    ends = sorted({at for unit in units for at in unit.cuts})

    def iter_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
        before = start
        for at, rank in find_line_cuts(text, start, end):
            here = bisect_right(ends, before) < bisect_right(ends, at)
            blank = Rank.LINE if rank is Rank.PARAGRAPH else Rank.SENTENCE
            yield at, Rank.PARAGRAPH if here else blank
            before = at

    return iter_cuts


class _DefinitionFinder:
    """A finder of the definition that a passage belongs to."""

    def __init__(self, text: str, units: Sequence[Unit]) -> None:
        self._text, self._found = text, units
        self._starts = [unit.start for unit in units]

    def add_definition(self, passage: Passage) -> Passage:
        """Return the passage with its definition; a continuation also gets the signature."""
        low = max(0, bisect_right(self._starts, passage.start) - 1)
        units = self._found[low : bisect_left(self._starts, passage.end)]
        if len(units) != 1:
            return replace(passage, definition=_get_shared_definition(units))
        unit, path = units[0], passage.heading_path
        if unit.signature and self._text[unit.start : passage.start].strip():
            path = (*path, unit.signature)
        definition = Definition(unit.role, unit.symbol, unit.signature)
        return replace(passage, heading_path=path, definition=definition)


def _get_shared_definition(units: Sequence[Unit]) -> Definition:
    """Return a definition with the role and the symbol that all units share: else `rest`, ""."""
    roles, symbols = {unit.role for unit in units}, {unit.symbol for unit in units}
    return Definition(
        roles.pop() if len(roles) == 1 else _REST.role, symbols.pop() if len(symbols) == 1 else ""
    )


def _prepare() -> None:
    from rag_assets.systems.code_memory import reading  # noqa: F401


def reads_code(tenant: Tenant) -> bool:
    """Return whether one of a tenant's chunkers reads source code."""
    return CODE.name in tenant.fact_readers


CODE = ChunkerKind(
    name="code",
    purpose="a repository's files: one definition, route, table or key each; texts by section",
    split=split_document,
    read=cut_document,
    prepare=_prepare,
    reading_version=READING_VERSION,
    programs=_PROGRAMS,
    find_path_hint=classify_path,
    unit="tokens",
    limit=1200,
    overlap=200,
    minimum=200,
    levels=3,
    chunk_types=SOURCE_TYPES,
)
