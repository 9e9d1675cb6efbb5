"""From the spans a chunker chose to chunks with their place in the document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rag_assets.chunking.model import Chunk, text_hash
from rag_assets.parsing.model import Block, ParsedText


@dataclass(frozen=True, slots=True)
class Passage:
    """A span that becomes a chunk.

    Attributes:
        start, end: character offsets into ParsedText.text, half open; includes the overlap.
        new_start: where that begins which the passage before did not hold.
        heading_path: headings above the new text, outermost first.
        token_count: cl100k_base tokens of text[start:end].
    """

    start: int
    new_start: int
    end: int
    heading_path: tuple[str, ...]
    token_count: int


class Chunker(Protocol):
    """Cuts one document into passages."""

    def split(self, parsed: ParsedText) -> list[Passage]:
        """The passages in order: starts, new starts and ends never decrease."""
        ...


def locate(parsed: ParsedText, passages: Iterable[Passage]) -> Iterator[Chunk]:
    """Chunks for passages, in order, numbered from 0; one walk through the text for all."""
    starts, ends = _Cursor(parsed.text), _Cursor(parsed.text)
    pages = _Pages(parsed.blocks)
    for ordinal, passage in enumerate(passages):
        text = parsed.text[passage.start : passage.end]
        starts.advance(passage.start)
        ends.advance(passage.end - 1)
        yield Chunk(
            ordinal=ordinal,
            text=text,
            start=passage.start,
            end=passage.end,
            byte_start=starts.byte,
            line_start=starts.line,
            line_end=ends.line,
            page=pages.at(passage.new_start),
            heading_path=passage.heading_path,
            token_count=passage.token_count,
            text_sha256=text_hash(parsed.title, passage.heading_path, text),
        )


class _Cursor:
    """Byte and line of a position that only moves forward.

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


class _Pages:
    """The page of the block that a position lies in; positions only move forward."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._index = 0

    def at(self, pos: int) -> int | None:
        while self._index < len(self._blocks) and self._blocks[self._index].end <= pos:
            self._index += 1
        if self._index == len(self._blocks):
            return None
        return self._blocks[self._index].page
