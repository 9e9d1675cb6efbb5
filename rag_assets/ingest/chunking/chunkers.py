"""The built-in chunkers, the lookup of chunkers by name, and the parsing of their settings.

To add a chunker, define one ChunkerKind and list it in CHUNKERS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.kinds import by_name, find_kind
from rag_assets.common.tokens import count_tokens
from rag_assets.ingest.chunking.boundaries import (
    Rank,
    find_line_cuts,
    find_sentence_cuts,
    find_unicode_sentence_cuts,
)
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkParameters, ChunkRequest
from rag_assets.ingest.chunking.model import Passage
from rag_assets.ingest.chunking.packer import (
    Limits,
    find_sections,
    group_all,
    group_sections,
    join_sections,
    pack,
)
from rag_assets.ingest.chunking.units import CHARACTERS, TOKENS, CutRules, Region, Units
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.plugins.registry import installed_systems


def split_recursively(request: ChunkRequest) -> list[Passage]:
    """Cut a document at the largest separator near the limit.

    - The best cut is between paragraphs; the next best are, in this order, between lines,
      sentences, words, visible characters (see pack). A heading is a paragraph like any other, but
      stays with the text below it.
    - Every passage but the first repeats words of the previous passage, across headings too.
    """
    longest = 3 * (request.limit - request.overlap) // 4
    grammar = CutRules(TOKENS, longest, longest // 2, _iter_prose_cuts)
    return pack(request.parsed, grammar, Limits(request.limit, request.overlap), group_all)


def _iter_prose_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions after lines, and between the sentences within each line."""
    for at, rank in find_line_cuts(text, start, end):
        yield from find_sentence_cuts(text, start, at)
        yield at, max(rank, Rank.LINE)
        start = at
    yield from find_sentence_cuts(text, start, end)


RECURSIVE = ChunkerKind(
    name="recursive",
    purpose="at the best separator near the limit: paragraphs, lines, sentences, words",
    split=split_recursively,
    unit="tokens",
    limit=512,
    overlap=64,
    version=2,
)


def split_by_sentences(request: ChunkRequest) -> list[Passage]:
    """Cut a document between sentences, as defined by Unicode's segmentation (UAX 29).

    - A sentence is split, between words, only if it is so long that it leaves no room for a quarter
      of the overlap. A line of code, of a table or of a list counts as a sentence. Among several
      positions, the end of a paragraph is best (see pack). Headings stay with the text below them.
    - Every passage but the first repeats the last whole sentences of the previous passage, or its
      last words if not even one sentence fits the overlap.
    """
    limits = Limits(request.limit, request.overlap, by_sentence=True)
    grammar = CutRules(CHARACTERS, limits.whole, limits.whole, find_unicode_sentence_cuts)
    return pack(request.parsed, grammar, limits, group_all)


SENTENCE = ChunkerKind(
    name="sentence",
    purpose="between sentences, by Unicode's rules",
    split=split_by_sentences,
    unit="characters",
    limit=2000,
    overlap=200,
    version=2,
)


def split_by_headings(request: ChunkRequest) -> list[Passage]:
    """Cut a document at its headings.

    - The best position for a cut is the end of a block. The next best are, in this order: a blank
      line, the end of a sentence or of a line of code, a table or a list, between words, between
      visible characters (see pack).
    - A passage that continues a section repeats words of the previous passage; the overlap never
      crosses into another section.
    - A new passage starts at headings of the configured levels, by default of all levels; deeper
      headings stay with the section above them.
    - Small neighbouring sections share a passage (see the module `packer`). The passage's heading
      path is then the common part of the sections' paths.
    """
    longest = 3 * (request.limit - request.overlap) // 4
    grammar = CutRules(TOKENS, longest, longest // 2, find_sentence_cuts)
    limits = Limits(request.limit, request.overlap)
    grouping = partial(group_sections, limit=limits.size, levels=request.levels)
    return pack(request.parsed, grammar, limits, grouping)


HEADING = ChunkerKind(
    name="heading",
    purpose="along headings: small sections together, none across a chapter",
    split=split_by_headings,
    unit="tokens",
    limit=1200,
    overlap=150,
    levels=0,
    version=2,
)


def split_by_entries(request: ChunkRequest) -> list[Passage]:
    """Return each entry as one whole passage.

    - An entry is a row, with the headings between it and the previous row. Text between two rows is
      one entry. A document without rows is one entry.
    - An entry over the limit is cut: a row is cut between its lines, sentences or words; other text
      is cut first at its sections, as by the chunker `heading`.
    - Passages do not overlap, since an entry does not continue the previous one.
    """
    longest = 3 * request.limit // 4
    grammar = CutRules(TOKENS, longest, longest // 2, find_sentence_cuts)
    limits = Limits(request.limit, overlap=0)
    return pack(request.parsed, grammar, limits, partial(_group_entries, limit=limits.size))


def _group_entries(
    regions: Sequence[Region], units: Units, limit: int
) -> Iterator[tuple[int, int]]:
    low = 0
    for index, region in enumerate(regions):
        if region.kind != "row":
            continue
        first = index
        while first > low and regions[first - 1].kind == "heading":
            first -= 1
        yield from _group_between_rows(regions, units, low, first, limit)
        yield units.first[first], units.first[index + 1]
        low = index + 1
    yield from _group_between_rows(regions, units, low, len(regions), limit)


def _group_between_rows(
    regions: Sequence[Region], units: Units, low: int, high: int, limit: int
) -> Iterator[tuple[int, int]]:
    start, end = units.first[low], units.first[high]
    if units.estimate_size(start, end) <= limit:
        yield start, end
    else:
        yield from join_sections(find_sections(regions, low, high), units, limit)


RECORD = ChunkerKind(
    name="record",
    purpose="one chunk an entry: a row of a table, with the headings above it",
    split=split_by_entries,
    unit="tokens",
    limit=1200,
    overlaps=False,
)


def split_blocks(request: ChunkRequest) -> list[Passage]:
    """Return the blocks of a page as separate passages; empty if the page fits the limit.

    A block that fits into a passage becomes one passage, whatever it contains. A longer block is
    cut like a separate text. Headings are omitted, because the passage that contains a heading
    also contains the text below it.
    """
    parsed = request.parsed
    blocks = [block for block in parsed.blocks if block.block_id and block.kind != "heading"]
    if not blocks or sum(count_tokens([parsed.text])) <= request.limit:
        return []
    sizes = count_tokens([parsed.text[block.start : block.end] for block in blocks])
    passages: list[Passage] = []
    for block, size in zip(blocks, sizes, strict=True):
        if size <= request.limit:
            path = block.heading_path
            passages.append(Passage(block.start, block.start, block.end, path, size))
        else:
            passages += _split_long_block(request, block)
    return passages


def _split_long_block(request: ChunkRequest, block: Block) -> list[Passage]:
    """Return the passages of a block that is longer than the limit."""
    text = request.parsed.text[block.start : block.end]
    alone = replace(block, start=0, end=len(text))
    masked = tuple(
        replace(
            span,
            start=max(span.start, block.start) - block.start,
            end=min(span.end, block.end) - block.start,
        )
        for span in request.parsed.masked
        if span.start < block.end and block.start < span.end
    )
    passages = HEADING.split(replace(request, parsed=ParsedText(text, (alone,), masked=masked)))
    return [
        replace(
            passage,
            start=passage.start + block.start,
            new_start=passage.new_start + block.start,
            end=passage.end + block.start,
        )
        for passage in passages
    ]


PAGE = ChunkerKind(
    name="page",
    purpose="along headings; of a page over the limit, each block is a passage as well",
    split=HEADING.split,
    unit="tokens",
    limit=HEADING.limit,
    overlap=HEADING.overlap,
    blocks=split_blocks,
    version=2,
)

ChunkerKinds: TypeAlias = Mapping[str, ChunkerKind]

CHUNKERS: ChunkerKinds = by_name((HEADING, RECURSIVE, SENTENCE, RECORD, PAGE))
DEFAULT_CHUNKER = HEADING.name


def find_worker_chunker(name: str) -> ChunkerKind | None:
    """Return the chunker of this name that worker processes can run; None if there is none."""
    if name in CHUNKERS:
        return CHUNKERS[name]
    part = installed_systems().parts("chunkers").get(name)
    kind: ChunkerKind | None = None if part is None else part.load()
    return None if kind is None or kind.read is None else kind


def import_fact_readers() -> None:
    """Import the modules that the chunkers of systems need to read facts."""
    for name in installed_systems().parts("chunkers"):
        kind = find_worker_chunker(name)
        if kind is not None and kind.prepare is not None:
            kind.prepare()


def build_chunk_parameters(
    chunker: str = DEFAULT_CHUNKER,
    *,
    max_tokens: int | None = None,
    max_characters: int | None = None,
    overlap: int | None = None,
    levels: int | None = None,
    chunkers: ChunkerKinds = CHUNKERS,
) -> ChunkParameters:
    """Build parameters from a configuration's fields; omitted fields take the chunker's defaults.

    The default overlap is proportional to the limit.

    Raises:
        ConfigurationError: the chunker or its setting does not exist, or a value is out of range.
    """
    kind = find_kind(chunker, chunkers, "chunker")
    settings = {
        "max_tokens": max_tokens,
        "max_characters": max_characters,
        "overlap": overlap,
        "levels": levels,
    }
    for name, value in settings.items():
        if value is not None and name not in kind.settings:
            raise ConfigurationError(
                f"chunker {chunker} has no setting {name}",
                hint=f"its settings are {' and '.join(kind.settings)}",
            )
    configured_limit = settings[f"max_{kind.unit}"]
    limit = kind.limit if configured_limit is None else configured_limit
    default_overlap = kind.overlap * limit // kind.limit
    # The default is the same as an omitted value: keys contain only values that differ from it.
    chosen_levels = None if levels == kind.levels and levels else levels
    return ChunkParameters(
        kind, limit, default_overlap if overlap is None else overlap, levels=chosen_levels
    )
