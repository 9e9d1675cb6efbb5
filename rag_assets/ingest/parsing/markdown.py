"""Markdown and MDX: the source itself is the text, so every offset is an offset into the source.

Blocks follow CommonMark's block structure as far as headings, fences, lists, tables, comments and
front matter need it; inline markup is not changed. Each line is read once, and no pattern can scan
a line twice, so parsing any document takes linear time.

MDX is Markdown with imported modules, and with components among paragraphs. Imports, exports,
comments and lines that contain only tags are for programs; the text between the tags is Markdown.
MDX has no indented code: indented text is inside a component.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rag_assets.ingest.parsing.blocks import Outline, first_title, heading_name
from rag_assets.ingest.parsing.media_types import MDX
from rag_assets.ingest.parsing.model import Block, BlockKind, ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.text import Line, decode_text, split_lines

_ATX = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?![^ \t])")
_INDENTED = re.compile(r" {0,3}\t| {4}")
_INDENT = 3


def atx_heading(line: str) -> tuple[int, str] | None:
    """Return level and text of `## heading ##`; None if the line is not such a heading."""
    found = _ATX.match(line)
    if found is None:
        return None
    text = line[found.end() :].strip(" \t")
    open_text = text.rstrip("#")
    if open_text != text and (not open_text or open_text[-1] in " \t"):
        text = open_text.rstrip(" \t")
    return len(found[1]), text


def setext_level(line: str) -> int:
    """Return 1 for a line of `===`, 2 for `---`, else 0."""
    text = line.strip(" \t")
    if not text or len(line) - len(line.lstrip(" \t")) > _INDENT or text.strip(text[0]):
        return 0
    return {"=": 1, "-": 2}.get(text[0], 0)


def fence_opening(line: str) -> str | None:
    """Return the run of back-ticks or tildes if a line opens a fence; otherwise None."""
    found = _FENCE.match(line)
    if found is None or (found[1][0] == "`" and "`" in line[found.end() :]):
        return None
    return found[1]


def fence_closes(line: str, opening: str) -> bool:
    """Return whether a line closes the fence that is open."""
    found = _FENCE.match(line)
    return found is not None and found[1].startswith(opening) and not line[found.end() :].strip()


def is_list_item(line: str) -> bool:
    """Return whether a line starts a list item; a thematic break is not a list item."""
    if _LIST_ITEM.match(line) is None:
        return False
    text = line.strip(" \t")
    marks = text.replace(" ", "").replace("\t", "")
    return not (len(marks) > 2 and text[0] in "-*" and not marks.strip(text[0]))  # noqa: PLR2004


def is_indented(line: str) -> bool:
    """Return whether a line is indented far enough for code and is not blank."""
    return _INDENTED.match(line) is not None and bool(line.strip())


def is_table_rule(line: str) -> bool:
    """Return whether a line is the rule `|---|:-:|` below a table's head."""
    return "-" in line and "|" in line and not line.strip(" \t|:-")


_FRONT_MATTER_ENDS = {"---": ("---", "..."), "+++": ("+++",)}
_FRONT_MATTER_LINES = 1_000
_COMMENT = ("<!--", "-->")
_RAW_BEGINS = re.compile(r"(?i) {0,3}<(?:pre|script|style|textarea)(?=[\s>]|$)")
_RAW_ENDS = re.compile(r"(?i)</(?:pre|script|style|textarea)>")


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse a Markdown or an MDX file; see registry.ParseFunction."""
    parser = _MdxParser if media_type == MDX else MarkdownParser
    return parser(decode_text(data, limits)).parsed()


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
            title = title or _find_front_title(line.text)
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


def _find_front_title(line: str) -> str | None:
    name, separator, value = line.partition(":" if ":" in line else "=")
    if not separator or name.strip() != "title":
        return None
    return heading_name(value.strip().strip("\"'")) or None


_MODULE = re.compile(
    r"import[ \t]*(?:[\"'{*]|\w+[ \t]*(?:,|from\b))"
    r"|export[ \t]*(?:[{*]|(?:default|const|let|var|function|async|class|type|interface)\b)"
)
_MDX_COMMENT = ("{/*", "*/}")
_TAG = re.compile(r"<[^<>]*>")
_TAG_BEGINS = re.compile(r"[ \t]*</?[A-Za-z>]")
_FOR_READERS = re.compile(r"\b(?:title|label|summary|description|alt|caption|heading)=[\"'{]")
# A construct that is not closed within this many lines ends at the next blank line, or immediately.
_LONGEST_MODULE = 200
_LONGEST_TAG = 50


class _MdxParser(MarkdownParser):
    _unclosed = False

    def _next(self, line: Line) -> Block:
        first = self._at
        if _MODULE.match(line.text):
            self._at = self._end_of_module()
        elif line.text.lstrip().startswith(_MDX_COMMENT[0]):
            self._skip_comment(_MDX_COMMENT)
        elif end := self._end_of_tags():
            self._at = end
            if any(_FOR_READERS.search(tag.text) for tag in self._lines[first:end]):
                return self._block("paragraph", first)
        elif is_indented(line.text) and not fence_opening(line.text.lstrip()):
            return self._paragraph()
        else:
            return super()._next(line)
        return self._block("front_matter", first)

    def _interrupts(self, line: Line) -> bool:
        return super()._interrupts(line) or _is_tags(line.text)

    def _end_of_module(self) -> int:
        """Return the line after a module's statement: a blank line while no bracket is open."""
        depth = 0
        nearest = 0
        lines = self._lines
        end = min(self._at + _LONGEST_MODULE, len(lines))
        for at in range(self._at, end):
            if lines[at].blank:
                if depth <= 0 or self._unclosed:
                    return at
                nearest = nearest or at
            depth += sum(map(lines[at].text.count, "([{")) - sum(map(lines[at].text.count, ")]}"))
        # Search only once: with many unclosed modules, searching each time would take long.
        self._unclosed = True
        return nearest or end

    def _end_of_tags(self) -> int:
        """Return the line after a run of tags that starts here; 0 if no run starts here."""
        at = self._at
        while at < len(self._lines) and (end := self._end_of_tag(at)):
            at = end
        return at if at > self._at else 0

    def _end_of_tag(self, at: int) -> int:
        """Return the line after the complete tags that start on a line; 0 if none start there."""
        line = self._lines[at].text
        if _is_tags(line):
            return at + 1
        if _TAG_BEGINS.match(line) is None or ">" in line:
            return 0
        for later in range(at + 1, min(at + _LONGEST_TAG, len(self._lines))):
            text = self._lines[later].text
            if not text.strip() or "<" in text:
                return 0
            if text.rstrip().endswith(">") and not text.rstrip().endswith("=>"):
                return later + 1
        return 0


def _is_tags(line: str) -> bool:
    """Return whether a line contains only tags."""
    return _TAG_BEGINS.match(line) is not None and not _TAG.sub("", line).strip()
