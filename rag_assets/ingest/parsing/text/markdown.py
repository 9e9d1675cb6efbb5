"""Markdown: the source itself is the text, so that every offset is an offset into the source.

Blocks follow CommonMark's block structure as far as headings, fences, lists, tables, comments and
front matter need it; inline markup is not changed. Each line is read once, and no pattern can scan
a line twice, so parsing any document takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import Block, BlockKind, ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.outline import Outline, first_title, heading_name
from rag_assets.ingest.parsing.text.decoding import decoded
from rag_assets.ingest.parsing.text.lines import (
    Line,
    atx_heading,
    fence_closes,
    fence_opening,
    is_indented,
    is_list_item,
    is_table_rule,
    setext_level,
    split_lines,
)

_FRONT_MATTER_ENDS = {"---": ("---", "..."), "+++": ("+++",)}
_FRONT_MATTER_LINES = 1_000
_COMMENT = ("<!--", "-->")
_RAW_BEGINS = re.compile(r"(?i) {0,3}<(?:pre|script|style|textarea)(?=[\s>]|$)")
_RAW_ENDS = re.compile(r"(?i)</(?:pre|script|style|textarea)>")


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse a Markdown file; see registry.ParseFunction."""
    return parse_markdown(decoded(data, limits))


def parse_markdown(text: str) -> ParsedText:
    """Find the blocks and the title of a Markdown document.

    Every character that is not white space belongs to exactly one block.
    """
    return MarkdownParser(text).parsed()


class MarkdownParser:
    """A Markdown parser that reads the lines of a document once.

    Attributes:
        front_title: the title in the front matter; set once blocks() is exhausted.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = list(split_lines(text))
        self._outline = Outline()
        self._at = 0
        self.front_title: str | None = None

    def parsed(self) -> ParsedText:
        """Return the blocks and the title of the document."""
        blocks = tuple(self.blocks())
        return ParsedText(self._text, blocks, title=self.front_title or first_title(blocks))

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        if self._skip_front_matter():
            yield self._block("front_matter", 0)
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.blank:
                yield self._next(line)
            else:
                self._at += 1

    def _next(self, line: Line) -> Block:
        if heading := atx_heading(line.text):
            self._at += 1
            return self._heading(self._at - 1, *heading)
        kind, skip = self._container(line)
        if skip is None:
            return self._paragraph()
        first = self._at
        skip()
        return self._block(kind, first)

    def _container(self, line: Line) -> tuple[BlockKind, Callable[[], None] | None]:
        """Return the kind of block on a line and the function that skips it; None: a paragraph."""
        if fence_opening(line.text):
            return "code", self._skip_fence
        if is_indented(line.text):
            return "code", self._skip_indented
        if line.text.lstrip().startswith(_COMMENT[0]):
            return "paragraph", self._skip_comment
        if _RAW_BEGINS.match(line.text):
            return "paragraph", self._skip_raw
        if is_list_item(line.text):
            return "list", self._skip_list
        return "table", self._skip_table if self._table_begins(self._at) else None

    def _skip_front_matter(self) -> bool:
        ends = _FRONT_MATTER_ENDS.get(self._lines[0].text.rstrip()) if self._lines else None
        if ends is None:
            return False
        title = None
        for number, line in enumerate(self._lines[1:_FRONT_MATTER_LINES], start=1):
            if line.text.rstrip() in ends:
                self._at = number + 1
                self.front_title = title
                return True
            title = title or _front_title(line.text)
        return False

    def _skip_fence(self) -> None:
        opening = fence_opening(self._lines[self._at].text)
        self._at += 1
        while opening and self._at < len(self._lines):
            self._at += 1
            if fence_closes(self._lines[self._at - 1].text, opening):
                return

    def _skip_indented(self) -> None:
        """Skip all indented lines; blank lines between them do not end the code block."""
        at = self._at
        while at < len(self._lines) and (
            self._lines[at].blank or is_indented(self._lines[at].text)
        ):
            at += 1
            if not self._lines[at - 1].blank:
                self._at = at

    def _skip_comment(self, marks: tuple[str, str] = _COMMENT) -> None:
        """Skip to the end of the line on which the comment ends, as CommonMark does."""
        start = self._text.find(marks[0], self._lines[self._at].start)
        end = self._text.find(marks[1], start + len(marks[0]))
        while self._at < len(self._lines):
            self._at += 1
            if 0 <= end < self._lines[self._at - 1].end:
                return

    def _skip_raw(self) -> None:
        """Skip to the end of the line that closes preformatted text, as CommonMark does."""
        while self._at < len(self._lines):
            self._at += 1
            if _RAW_ENDS.search(self._lines[self._at - 1].text):
                return

    def _skip_list(self) -> None:
        """Skip all items and the indented lines below them; blank lines do not end a list."""
        after_blank = False
        while self._at < len(self._lines):
            line = self._lines[self._at]
            inside = line.text[:1] in {" ", "\t"}
            belongs = inside or is_list_item(line.text)
            if after_blank and not belongs and not line.blank:
                return
            if not belongs and (atx_heading(line.text) or fence_opening(line.text)):
                return
            after_blank = line.blank
            if inside and fence_opening(line.text.lstrip()):
                self._skip_inner_fence()
            else:
                self._at += 1

    def _skip_inner_fence(self) -> None:
        """Skip a fence inside an item; if it is never closed, it ends with the item."""
        opening = fence_opening(self._lines[self._at].text.lstrip())
        self._at += 1
        while opening and self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.blank and line.text[:1] not in {" ", "\t"}:
                return
            self._at += 1
            if fence_closes(line.text.lstrip(), opening):
                return

    def _skip_table(self) -> None:
        while self._at < len(self._lines) and not self._lines[self._at].blank:
            if self._interrupts(self._lines[self._at]):
                return
            self._at += 1

    def _paragraph(self) -> Block:
        first = self._at
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            # A line below a quotation cannot underline the quotation: it would have to be quoted
            # itself.
            quoted = self._lines[self._at - 1].text.lstrip().startswith(">")
            if (level := setext_level(line.text)) and not quoted:
                self._at += 1
                above = self._text[self._lines[first].start : self._lines[self._at - 2].end]
                return self._heading(first, level, above)
            if line.blank or self._interrupts(line) or self._table_begins(self._at):
                break
            self._at += 1
        return self._block("paragraph", first)

    def _interrupts(self, line: Line) -> bool:
        text = line.text
        return (
            atx_heading(text) is not None
            or fence_opening(text) is not None
            or is_list_item(text)
            or text.lstrip().startswith(_COMMENT[0])
            or _RAW_BEGINS.match(text) is not None
        )

    def _table_begins(self, at: int) -> bool:
        return (
            at + 1 < len(self._lines)
            and "|" in self._lines[at].text
            and is_table_rule(self._lines[at + 1].text)
        )

    def _heading(self, first: int, level: int, text: str) -> Block:
        path = self._outline.enter(level, heading_name(text))
        return Block("heading", self._lines[first].start, self._last_end(first), path, level)

    def _block(self, kind: BlockKind, first: int) -> Block:
        path = () if kind == "front_matter" else self._outline.path
        return Block(kind, self._lines[first].start, self._last_end(first), path)

    def _last_end(self, first: int) -> int:
        """Return the end of the last non-blank line of the block."""
        last = self._at - 1
        while last > first and self._lines[last].blank:
            last -= 1
        return self._lines[last].end


def _front_title(line: str) -> str | None:
    name, separator, value = line.partition(":" if ":" in line else "=")
    if not separator or name.strip() != "title":
        return None
    return heading_name(value.strip().strip("\"'")) or None
