"""Parser for plain text, source code and settings: the decoded file is the parsed text.

In plain text, blank lines separate paragraphs. Headings are not guessed: a line that is short,
numbered or in capitals is just as often a list item or a line of an address.

In source code, a block starts with a line that is not indented and that follows a blank line.
Usually this is a definition with its comment, or a group of settings. The rule is the same for
every language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from rag_assets.common.errors import DocumentEmpty, DocumentRejected
from rag_assets.ingest.parsing.blocks import find_first_title
from rag_assets.ingest.parsing.media_types import SOURCE_CODE
from rag_assets.ingest.parsing.model import Block, Gap, ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions

_CLOSING = ")]}"
_ENCODING_HINT = "save the document as UTF-8"
UTF8_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LATIN_1 = {0xDC00 + byte: chr(byte) for byte in range(0x80, 0x100)}
"""Maps the surrogates that surrogateescape creates for non-UTF-8 bytes to characters of Latin-1."""
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n)?")
_CHARACTERS_PER_FOREIGN_BYTE = 10
"""Minimum number of characters per byte that is not UTF-8; with fewer, the encoding differs."""


def decode_text(data: bytes, limits: ParseLimits) -> str:
    """Decode non-empty UTF-8 or UTF-16, and remove a byte order mark, which UTF-16 needs."""
    text = _decode_utf16(data) if data.startswith(UTF16_MARKS) else _decode_utf8(data)
    if not text.strip():
        raise DocumentEmpty("the document is empty")
    limits.check_characters(len(text))
    return text


def decode_source(data: bytes, limits: ParseLimits) -> tuple[str, int]:
    """Decode source code; single bytes that are not UTF-8 are read as Latin-1, and counted.

    A file is rejected if more than a tenth of it is not UTF-8.
    """
    try:
        return decode_text(data, limits), 0
    except DocumentRejected:
        if data.startswith(UTF16_MARKS) or b"\0" in data:
            raise
        text = data.decode("utf-8-sig", "surrogateescape")
        replaced = sum("\udc80" <= character <= "\udcff" for character in text)
        if not replaced or replaced * _CHARACTERS_PER_FOREIGN_BYTE > len(text):
            raise
    limits.check_characters(len(text))
    return text.translate(_LATIN_1), replaced


def _decode_utf8(data: bytes) -> str:
    nul = data.find(b"\0")
    if nul >= 0:
        raise DocumentRejected(
            f"the document is not text: NUL byte at offset {nul:,}", hint=_ENCODING_HINT
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # error.start does not count the byte order mark that utf-8-sig removed.
        at = error.start + (len(UTF8_MARK) if data.startswith(UTF8_MARK) else 0)
        raise DocumentRejected(
            f"the document is not UTF-8 text: invalid byte at offset {at:,}",
            hint=_ENCODING_HINT,
        ) from None


def _decode_utf16(data: bytes) -> str:
    """Decode UTF-16 with a byte order mark, which spreadsheets export as "Unicode text"."""
    try:
        text = data.decode("utf-16")
    except UnicodeDecodeError as error:
        raise DocumentRejected(
            "the document is not UTF-16 text, although its byte order mark says so: error at offset"
            f" {error.start:,}",
            hint=_ENCODING_HINT,
        ) from None
    if "\0" in text:
        raise DocumentRejected(
            "the document is not text: NUL character, although its byte order mark says UTF-16",
            hint=_ENCODING_HINT,
        )
    return text


class Line(NamedTuple):
    """A line; `start` and `end` are the character offsets of its text without the line break."""

    start: int
    end: int
    text: str
    is_blank: bool


def split_lines(text: str) -> Iterator[Line]:
    r"""Yield the lines of a text; a line ends at \n, \r\n or \r only, as in Markdown."""
    at = 0
    while at < len(text):
        match = _LINE.match(text, at)
        if match is None:  # pragma: no cover - the pattern matches anything
            return
        yield Line(at, match.end(1), match[1], not match[1].strip())
        at = match.end()


_NOT_LINE_ENDS = re.compile(r"[^\r\n]+")


def leave_out(text: str, spans: Iterable[tuple[int, int]]) -> tuple[str, tuple[Gap, ...]]:
    """Return a text without these spans, and the gaps in it. Line ends in the spans are kept.

    Args:
        spans: offsets of the start and end of each span, in order, not overlapping.
    """
    parts: list[str] = []
    gaps: list[Gap] = []
    at = length = 0
    for start, end in spans:
        hidden = text[start:end]
        line_ends = _NOT_LINE_ENDS.sub("", hidden)
        length += start - at
        gaps.append(Gap(length, len(hidden.encode("utf-8", "surrogatepass")) - len(line_ends)))
        parts += [text[at:start], line_ends]
        length += len(line_ends)
        at = end
    return "".join([*parts, text[at:]]), tuple(gaps)


def leave_out_front_matter(text: str, blocks: Sequence[Block]) -> ParsedText:
    """Return a document without its comments and directives, which have the kind front_matter.

    Their line ends are kept.

    Raises:
        DocumentEmpty: the document contains only comments and directives.
    """
    visible, gaps = leave_out(
        text, ((block.start, block.end) for block in blocks if block.kind == "front_matter")
    )
    if not visible.strip():
        raise DocumentEmpty("the document contains only comments or embedded files")
    kept_blocks: list[Block] = []
    removed = 0
    for block in blocks:
        if block.kind == "front_matter":
            removed += sum(map(len, _NOT_LINE_ENDS.findall(text, block.start, block.end)))
        else:
            kept_blocks.append(replace(block, start=block.start - removed, end=block.end - removed))
    return ParsedText(visible, tuple(kept_blocks), title=find_first_title(kept_blocks), gaps=gaps)


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse plain text, source code or settings; see registry.ParseFunction."""
    if media_type not in SOURCE_CODE:
        text = decode_text(data, limits)
        return ParsedText(text=text, blocks=tuple(find_paragraphs(text)))
    text, replaced = decode_source(data, limits)
    notes = (f"{replaced:,} bytes that are not UTF-8 were read as Latin-1",) if replaced else ()
    return ParsedText(text=text, blocks=tuple(_iter_code_blocks(text)), notes=notes)


def find_paragraphs(text: str) -> Iterator[Block]:
    """Yield each run of lines between blank lines as a paragraph."""
    for is_blank, lines in groupby(split_lines(text), key=lambda line: line.is_blank):
        if not is_blank:
            first, *others = lines
            yield Block("paragraph", first.start, (others or [first])[-1].end)


def _iter_code_blocks(text: str) -> Iterator[Block]:
    first: Line | None = None
    last: Line | None = None
    after_blank = False
    for line in split_lines(text):
        if not line.is_blank:
            if (
                first is not None
                and last is not None
                and after_blank
                and _is_block_start(line.text)
            ):
                yield Block("code", first.start, last.end)
                first = None
            first = first or line
            last = line
        after_blank = line.is_blank
    if first is not None and last is not None:
        yield Block("code", first.start, last.end)


def _is_block_start(line: str) -> bool:
    return not line[0].isspace() and line[0] not in _CLOSING
