"""AsciiDoc: the source itself is the text, without comments, attributes and delimiters of tables.

Blocks follow the block structure of Asciidoctor as far as titles, listings, lists and tables need
it; inline markup is not changed. Each line is read a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_assets.ingest.parsing.blocks import Outline, shorten_heading
from rag_assets.ingest.parsing.model import Block, BlockKind, ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.text import decode_text, leave_out_front_matter, split_lines

_TITLE = re.compile(r"(={1,6}|#{1,6})[ \t]+(?=\S)")
_UNDERLINE = re.compile(r"([=\-~^+])\1{2,}[ \t]*$")
_LEVELS = {"=": 1, "-": 2, "~": 3, "^": 4, "+": 5}
_LENGTH_TOLERANCE = 2
"""Maximum difference between the lengths of a title and the line below it."""
_DELIMITER = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,}|[|,:!]={3,})[\w,]*[ \t]*$")
_TABLES = ("|=", ",=", ":=", "!=")
_FOR_PROGRAMS = re.compile(r"//(?!/)|:!?\w[\w-]*!?:(?:[ \t]|$)")
"""A comment, or an attribute of the document."""
_ATTRIBUTES = re.compile(r"\[[^\]]*\]{1,2}[ \t]*$")
"""An anchor, or attributes of the block below."""
_ANCHOR = re.compile(r"[ \t]*\[\[[^\]]*\]\]")
_ITEM = re.compile(r"[ \t]*(?:[*.-]{1,6}|[0-9]{1,4}\.|[A-Za-z]\.)[ \t]+\S")


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse an AsciiDoc file; see registry.ParseFunction."""
    return parse_asciidoc(decode_text(data, limits))


def parse_asciidoc(text: str) -> ParsedText:
    """Find the blocks and the title of an AsciiDoc document."""
    return leave_out_front_matter(text, [*_AsciidocParser(text).iter_blocks()])


class _AsciidocParser:
    def __init__(self, text: str) -> None:
        self._lines = list(split_lines(text))
        self._outline = Outline()
        self._at = 0
        # The last line of each delimiter: without it, a block that is not closed would be searched
        # again and again.
        self._last = {
            match[1]: at
            for at, line in enumerate(self._lines)
            if (match := _DELIMITER.match(line.text)) and match[1] == line.text.rstrip()
        }

    def iter_blocks(self) -> Iterator[Block]:
        while self._at < len(self._lines):
            if self._lines[self._at].is_blank:
                self._at += 1
            else:
                yield from self._read_blocks(self._lines[self._at].text)

    def _read_blocks(self, text: str) -> Iterator[Block]:
        first = self._at
        if title := self._find_title():
            yield self._build_block("heading", first, *title)
            return
        delimiter = _DELIMITER.match(text)
        if delimiter and self._last.get(delimiter[1], first) > first:
            yield from self._read_delimited(delimiter[1])
        elif _FOR_PROGRAMS.match(text) or _ATTRIBUTES.match(text):
            self._at += 1
            yield self._build_block("front_matter", first)
        elif _ITEM.match(text):
            self._skip_list()
            yield self._build_block("list", first)
        else:
            self._skip_paragraph()
            yield self._build_block("paragraph", first)

    def _find_title(self) -> tuple[int, str] | None:
        """Return level and text of a title that starts here, and move behind it; else None."""
        text = self._lines[self._at].text.rstrip()
        if match := _TITLE.match(text):
            self._at += 1
            return len(match[1]), text[match.end() :]
        below = self._lines[self._at + 1].text if self._at + 1 < len(self._lines) else ""
        under = _UNDERLINE.match(below)
        is_after_blank = self._at == 0 or self._is_boundary(self._at - 1)
        if (
            under is None
            or not is_after_blank
            or not any(map(str.isalnum, text))
            or _ATTRIBUTES.match(text)
            or abs(len(below.rstrip()) - len(text)) > _LENGTH_TOLERANCE
        ):
            return None
        self._at += 2
        return _LEVELS[under[1]], text

    def _is_boundary(self, at: int) -> bool:
        line = self._lines[at]
        patterns = (_FOR_PROGRAMS, _ATTRIBUTES)
        return line.is_blank or any(pattern.match(line.text) for pattern in patterns)

    def _read_delimited(self, delimiter: str) -> Iterator[Block]:
        """Yield a comment, a listing, or a table between the lines that delimit it."""
        first = self._at
        self._at += 1
        while self._at < len(self._lines) and self._lines[self._at].text.rstrip() != delimiter:
            self._at += 1
        closing = self._at
        if not delimiter.startswith(_TABLES):
            self._at += 1
            kind: BlockKind = "front_matter" if delimiter.startswith("//") else "code"
            yield self._build_block(kind, first)
            return
        yield self._build_line("front_matter", first)
        if any(not line.is_blank for line in self._lines[first + 1 : closing]):
            start = first + 1
            while self._lines[start].is_blank:
                start += 1
            yield self._build_block("table", start)
        yield self._build_line("front_matter", closing)
        self._at = closing + 1

    def _skip_list(self) -> None:
        """Skip all items, and the lines that belong to them."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            after_blank = self._lines[self._at - 1].is_blank
            if not line.is_blank and after_blank and not _ITEM.match(line.text):
                return
            if _TITLE.match(line.text) or _DELIMITER.match(line.text):
                return
            self._at += 1

    def _skip_paragraph(self) -> None:
        self._at += 1
        while self._at < len(self._lines) and not self._lines[self._at].is_blank:
            text = self._lines[self._at].text
            if _DELIMITER.match(text) or _FOR_PROGRAMS.match(text):
                return
            self._at += 1

    def _build_block(self, kind: BlockKind, first: int, level: int = 0, title: str = "") -> Block:
        last = min(self._at, len(self._lines)) - 1
        while last > first and self._lines[last].is_blank:
            last -= 1
        path = self._outline.path
        if kind == "heading":
            path = self._outline.enter(level, shorten_heading(_ANCHOR.sub("", title)))
        return Block(kind, self._lines[first].start, self._lines[last].end, path, level)

    def _build_line(self, kind: BlockKind, at: int) -> Block:
        return Block(kind, self._lines[at].start, self._lines[at].end)
