"""Passages chosen by a chunker, and their conversion to chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from rag_assets.ingest.chunking.block_places import BlockPlace
from rag_assets.ingest.chunking.location import UNKNOWN_LOCATION, Location
from rag_assets.ingest.chunking.model import NO_FACTS, Chunk, Definition, text_hash
from rag_assets.ingest.parsing.model import Block, ParsedText


@dataclass(frozen=True, slots=True)
class Passage:
    """The span of a chunk.

    Attributes:
        start, end: character offsets into ParsedText.text, half open; they include the overlap.
        new_start: the start of the text that is not in the previous passage.
        heading_path: headings above the new text, outermost first.
        token_count: cl100k_base tokens of text[start:end], and of the context.
        facts: further values from the chunker; JSON values by name.
        definition: the definition that the passage contains, in source code that was cut at
            definitions; else None.
        context: see Chunk.context.
    """

    start: int
    new_start: int
    end: int
    heading_path: tuple[str, ...]
    token_count: int
    facts: Mapping[str, Any] = field(default_factory=lambda: NO_FACTS, hash=False)
    definition: Definition | None = None
    context: str = ""


def locate(
    parsed: ParsedText, passages: Iterable[Passage], *, first: int = 0, of_blocks: bool = False
) -> Iterator[Chunk]:
    """Convert passages to chunks, in order, in one pass over the text.

    Args:
        parsed: the text.
        passages: passages of the text.
        first: the ordinal of the first chunk.
        of_blocks: whether each passage is one block, or part of a block.
    """
    starts, ends = _Cursor(parsed.text), _Cursor(parsed.text)
    locations = _Locations(parsed.blocks)
    named = _NamedBlocks(parsed.blocks)
    for ordinal, passage in enumerate(passages, start=first):
        text = parsed.text[passage.start : passage.end]
        starts.advance(passage.start)
        ends.advance(passage.end - 1)
        location = locations.of(passage.new_start, passage.end)
        if parsed.has_lines:
            location = replace(location, line_start=starts.line, line_end=ends.line)
        yield Chunk(
            ordinal=ordinal,
            text=text,
            start=passage.start,
            end=passage.end,
            byte_start=parsed.mark_bytes + starts.byte,
            heading_path=passage.heading_path,
            token_count=passage.token_count,
            text_sha256=text_hash(
                parsed.title,
                passage.heading_path,
                text,
                context=passage.context,
                is_code=passage.definition is not None,
            ),
            location=location,
            facts=passage.facts,
            definition=passage.definition,
            blocks=named.of(passage.start, passage.end),
            of_block=of_blocks,
            context=passage.context,
        )


class _Cursor:
    """Tracks byte offset and line of a position that only moves forward.

    Lines end with a line feed, as editors and git count them.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._ascii = text.isascii()
        self._pos = 0
        self.byte = 0
        self.line = 1

    def advance(self, pos: int) -> None:
        if pos <= self._pos:
            return
        self.line += self._text.count("\n", self._pos, pos)
        if self._ascii:
            self.byte = pos
        else:
            self.byte += len(self._text[self._pos : pos].encode("utf-8", "surrogatepass"))
        self._pos = pos


class _Locations:
    """Finds locations by the blocks that a span touches; spans only move forward."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._first = 0

    def of(self, start: int, end: int) -> Location:
        while self._first < len(self._blocks) and self._blocks[self._first].end <= start:
            self._first += 1
        if self._first == len(self._blocks):
            return UNKNOWN_LOCATION
        first = self._blocks[self._first]
        at = range(self._first, len(self._blocks))
        touched = takewhile(lambda block: block.start < end, map(self._blocks.__getitem__, at))
        rows = [b.row for b in touched if b.row is not None and b.sheet == first.sheet]
        row_start, row_end = (rows[0], rows[-1]) if rows else (None, None)
        return Location(
            page=first.page,
            slide=first.slide,
            sheet=first.sheet,
            row_start=row_start,
            row_end=row_end,
            line_start=None,
            line_end=None,
        )


class _NamedBlocks:
    """Finds the blocks with ids that a span touches; the starts of spans only move forward."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = [block for block in blocks if block.block_id is not None]
        self._first = 0

    def of(self, start: int, end: int) -> tuple[BlockPlace, ...]:
        while self._first < len(self._blocks) and self._blocks[self._first].end <= start:
            self._first += 1
        at = range(self._first, len(self._blocks))
        touched = takewhile(lambda block: block.start < end, map(self._blocks.__getitem__, at))
        return tuple(BlockPlace(b.block_id or "", max(b.start, start)) for b in touched)
