"""Chunks and their locations, the passages they are made from, and facts stated in a text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final, Self

from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.parsing.model import Block, Gap, MaskedSpan, ParsedText
from rag_assets.privacy.secrets.spans import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A location in a document. All numbers count from 1; None if the format has no such number.

    Hits and citations inherit from it, so interfaces return these fields with them.

    Attributes:
        page, slide, sheet: page, slide and sheet of the first block that is not overlap.
        row_start, row_end: first and last row that text other than overlap touches.
        line_start, line_end: first and last line that the text touches, including overlap.
    """

    page: int | None
    slide: int | None
    sheet: str | None
    row_start: int | None
    row_end: int | None
    line_start: int | None
    line_end: int | None

    @classmethod
    def from_row(cls, record: Mapping[str, Any]) -> Self:
        """Return the location in a stored record; other fields of the record are ignored."""
        return cls(**{name: record.get(name) for name in LOCATION_FIELDS})


LOCATION_FIELDS = tuple(field.name for field in fields(Location))
"""Names of the database columns and index fields that hold a location."""

UNKNOWN_LOCATION = Location.from_row({})
"""Location of a chunk whose format has no pages, slides, sheets, rows or lines."""


def get_location_fields(location: Location) -> dict[str, Any]:
    """Return the values of a location by the names of their columns and index fields."""
    return {name: getattr(location, name) for name in LOCATION_FIELDS}


def describe_location(location: Location) -> str:
    """Describe a location: "page 3", "sheet Costs, rows 2 to 7"; "" if it is unknown."""
    if location.page is not None:
        return f"page {location.page}"
    if location.slide is not None:
        return f"slide {location.slide}"
    rows = _format_range("row", location.row_start, location.row_end)
    if location.sheet is not None:
        return ", ".join(filter(None, (f"sheet {location.sheet}", rows)))
    return rows or _format_range("line", location.line_start, location.line_end)


def _format_range(name: str, first: int | None, last: int | None) -> str:
    if first is None:
        return ""
    return f"{name} {first}" if last in {None, first} else f"{name}s {first} to {last}"


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """A block in a chunk, and the character offset of its part in the chunk."""

    block_id: str
    start: int


NO_FACTS: Mapping[str, Any] = MappingProxyType({})
EVIDENCE: Final = "\n\nStated by these lines:\n"
"""Separates the embedded part of a text from lines of other files that state it.

These lines are not embedded, because they move within their files.
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that one file makes without reference to other files.

    Attributes:
        start, end: character offsets of the evidence, half open.
        symbol: the qualified name of the innermost definition that contains the statement; ""
            at top level.
        values: content of the statement, as JSON values by name.
        evidence: the start of the evidence, with credentials masked, in one line.
    """

    kind: str
    start: int
    end: int
    symbol: str = ""
    values: Mapping[str, Any] = field(default_factory=lambda: NO_FACTS, hash=False)
    line_start: int = 0
    line_end: int = 0
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition in source code: its role, qualified name and declaration; "" if it has none."""

    role: str
    symbol: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of one document, small enough to be embedded and returned on its own.

    Attributes:
        ordinal: position among the document's chunks, from 0, without gaps.
        text: exactly ParsedText.text[start:end].
        start, end: character offsets into ParsedText.text, half open; they include the overlap.
        byte_start: the byte offset of `start` in UTF-8. If the text is the source itself, this
            is the offset in the file: it counts a byte order mark, and bytes that were left out.
        of_block: whether the chunk is a block, or part of a block, of a text that was also cut
            as a whole.
        context: lines from above the passage that its reader needs if it starts within a table,
            a list or code: the column names, the sentence that introduces the list, the enclosing
            lines. The context is embedded, searched and shown with the text, but is not part of it;
            "" for most passages.
    """

    ordinal: int
    text: str
    start: int
    end: int
    byte_start: int
    heading_path: tuple[str, ...]
    token_count: int
    text_sha256: str
    location: Location = UNKNOWN_LOCATION
    facts: Mapping[str, Any] = field(default_factory=lambda: NO_FACTS, hash=False)
    definition: Definition | None = None
    blocks: tuple[BlockPlace, ...] = ()
    of_block: bool = False
    context: str = ""

    def build_embedding_text(self, title: str | None) -> str:
        """Return the text to embed for the chunk, in a document with this title."""
        is_code = self.definition is not None
        return build_embedding_text(
            title, self.heading_path, self.text, context=self.context, is_code=is_code
        )


_NESTED_FIELDS = ("location", "facts", "definition", "blocks", "of_block", "context")
_FLAT_FIELDS = tuple(each.name for each in fields(Chunk) if each.name not in _NESTED_FIELDS)


def build_chunk_record(chunk: Chunk) -> dict[str, Any]:
    """Return a chunk as a flat row; empty facts, definition, blocks and context are omitted."""
    values = {name: getattr(chunk, name) for name in _FLAT_FIELDS}
    values["heading_path"] = list(chunk.heading_path)
    values |= get_location_fields(chunk.location)
    if chunk.facts:
        values["facts"] = dict(chunk.facts)
    if chunk.definition is not None:
        values["definition"] = asdict(chunk.definition)
    if chunk.blocks:
        values["blocks"] = [asdict(block) for block in chunk.blocks]
        values["of_block"] = chunk.of_block
    if chunk.context:
        values["context"] = chunk.context
    return values


def parse_chunk(record: Mapping[str, Any]) -> Chunk:
    """Rebuild a chunk from its row; the inverse of build_chunk_record."""
    values: dict[str, Any] = {name: record[name] for name in _FLAT_FIELDS}
    values["heading_path"] = tuple(record["heading_path"])
    facts, definition = record.get("facts") or NO_FACTS, record.get("definition")
    return Chunk(
        **values,
        location=Location.from_row(record),
        facts=facts,
        definition=None if definition is None else Definition(**definition),
        blocks=tuple(BlockPlace(**block) for block in record.get("blocks") or ()),
        of_block=bool(record.get("of_block")),
        context=record.get("context") or "",
    )


def build_embedding_text(
    title: str | None,
    heading_path: tuple[str, ...],
    text: str,
    *,
    context: str = "",
    is_code: bool = False,
) -> str:
    """Return the text to embed for a chunk: title and headings, context, and the chunk's text.

    `title` must be a title found in the content. File names and paths are excluded on purpose, so
    that a renamed file needs no new embedding. A change of indentation, line ends or trailing
    blanks in source code needs no new embedding either, nor does a change of the evidence lines of
    a derived document.
    """
    if is_code:
        text = normalize_code(text.partition(EVIDENCE)[0])
    above = [part for part in (title, *heading_path) if part]
    if len(above) > 1 and above[0] == above[1]:
        above = above[1:]
    return "\n".join(
        [*([" › ".join(above)] if above else []), *([context] if context else []), text]
    )


def compute_text_hash(
    title: str | None,
    heading_path: tuple[str, ...],
    text: str,
    *,
    context: str = "",
    is_code: bool = False,
) -> str:
    """Return the SHA-256 of the text from build_embedding_text; it is the key of an embedding."""
    text_to_embed = build_embedding_text(
        title, heading_path, text, context=context, is_code=is_code
    )
    return sha256_hex(text_to_embed)


def normalize_code(text: str) -> str:
    """Return code with line feeds only, no trailing blanks and no common indentation."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first, *others = (line.rstrip() for line in lines)
    # A passage starts at its first word, so its first line has no indentation.
    return "\n".join([first.lstrip(), textwrap.dedent("\n".join(others))]).strip()


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of the text that becomes a chunk.

    Attributes:
        start, end: character offsets into ParsedText.text, half open; they include the overlap.
        new_start: the start of the text that is not in the previous passage.
    """

    start: int
    new_start: int
    end: int
    heading_path: tuple[str, ...]
    token_count: int
    facts: Mapping[str, Any] = field(default_factory=lambda: NO_FACTS, hash=False)
    definition: Definition | None = None
    context: str = ""


def build_chunks(
    parsed: ParsedText, passages: Iterable[Passage], *, first: int = 0, of_blocks: bool = False
) -> Iterator[Chunk]:
    """Convert passages to chunks, in order, in one pass over the text."""
    starts, ends = _Cursor(parsed.text, parsed.gaps), _Cursor(parsed.text)
    locations = _Locations(parsed.blocks)
    named_blocks = _NamedBlocks(parsed.blocks)
    for ordinal, passage in enumerate(passages, start=first):
        text = parsed.text[passage.start : passage.end]
        starts.advance(passage.start)
        ends.advance(passage.end - 1)
        location = locations.find(passage.new_start, passage.end)
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
            text_sha256=compute_text_hash(
                parsed.title,
                passage.heading_path,
                text,
                context=passage.context,
                is_code=passage.definition is not None,
            ),
            location=location,
            facts=passage.facts,
            definition=passage.definition,
            blocks=named_blocks.find(passage.start, passage.end),
            of_block=of_blocks,
            context=passage.context,
        )


class _Cursor:
    """The byte offset and the line in the file of a position that only moves forward."""

    def __init__(self, text: str, gaps: Sequence[Gap] = ()) -> None:
        self._text = text
        self._gaps = gaps
        self._next_gap = 0
        self._ascii = text.isascii()
        self._pos = 0
        self.byte = 0
        self.line = 1

    def advance(self, pos: int) -> None:
        while self._next_gap < len(self._gaps) and self._gaps[self._next_gap].at <= pos:
            self.byte += self._gaps[self._next_gap].bytes
            self._next_gap += 1
        if pos <= self._pos:
            return
        self.line += self._text.count("\n", self._pos, pos)
        if self._ascii:
            self.byte += pos - self._pos
        else:
            self.byte += len(self._text[self._pos : pos].encode("utf-8", "surrogatepass"))
        self._pos = pos


class _Locations:
    """A lookup of the location of a span by the blocks it touches; pass spans in document order."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = blocks
        self._first = 0

    def find(self, start: int, end: int) -> Location:
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
    """A lookup of the blocks with ids that a span touches; pass spans in order of their starts."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = [block for block in blocks if block.block_id is not None]
        self._first = 0

    def find(self, start: int, end: int) -> tuple[BlockPlace, ...]:
        while self._first < len(self._blocks) and self._blocks[self._first].end <= start:
            self._first += 1
        at = range(self._first, len(self._blocks))
        touched = takewhile(lambda block: block.start < end, map(self._blocks.__getitem__, at))
        return tuple(BlockPlace(b.block_id or "", max(b.start, start)) for b in touched)


def find_touched_masks(
    masked: Sequence[MaskedSpan], spans: Iterable[Span]
) -> Iterator[list[MaskedSpan]]:
    """Yield, for each span, the masked spans that overlap it; spans must be ordered by start."""
    ordered = sorted(masked, key=lambda mask: mask.start)
    first = 0
    for span in spans:
        while first < len(ordered) and ordered[first].end <= span.start:
            first += 1
        touched, index = [], first
        while index < len(ordered) and ordered[index].start < span.end:
            if ordered[index].end > span.start:
                touched.append(ordered[index])
            index += 1
        yield touched
