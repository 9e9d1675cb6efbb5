"""Markdown and MDX: the source itself is the text, without parts that are invisible to readers.

Comments, scripts, style sheets and embedded files (data URIs) outside code are left out. So are
statements, comments and tags of MDX. Front matter stays in the text, but is in no chunk.

Blocks follow CommonMark's block structure as far as headings, fences, lists, tables, comments and
front matter need it; inline markup is not changed. Each line is read once, and no pattern can scan
a line twice, so parsing any document takes linear time.

MDX is Markdown with imported modules, and with components among paragraphs. Imports, exports,
comments and lines that contain only tags are for programs; the text between the tags is Markdown.
MDX has no indented code: indented text is inside a component.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import unescape

from rag_assets.common.errors import DocumentEmpty
from rag_assets.ingest.parsing.blocks import Outline, find_first_title, shorten_heading
from rag_assets.ingest.parsing.media_types import MDX
from rag_assets.ingest.parsing.model import Block, BlockKind, ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.text import Line, decode_text, leave_out, split_lines

_ATX = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|[0-9]{1,9}[.)])(?![^ \t])")
_INDENTED = re.compile(r" {0,3}\t| {4}")
_INDENT = 3


def parse_atx_heading(line: str) -> tuple[int, str] | None:
    """Return level and text of `## heading ##`; None if the line is not such a heading."""
    match = _ATX.match(line)
    if match is None:
        return None
    text = line[match.end() :].strip(" \t")
    open_text = text.rstrip("#")
    if open_text != text and (not open_text or open_text[-1] in " \t"):
        text = open_text.rstrip(" \t")
    return len(match[1]), text


def get_setext_level(line: str) -> int:
    """Return the heading level that a line below a title sets: 1 for `===`, 2 for `---`, else 0."""
    text = line.strip(" \t")
    if not text or len(line) - len(line.lstrip(" \t")) > _INDENT or text.strip(text[0]):
        return 0
    return {"=": 1, "-": 2}.get(text[0], 0)


def find_fence_opening(line: str) -> str | None:
    """Return the run of back-ticks or tildes if a line opens a fence; otherwise None."""
    match = _FENCE.match(line)
    if match is None or (match[1][0] == "`" and "`" in line[match.end() :]):
        return None
    return match[1]


def is_fence_end(line: str, opening: str) -> bool:
    """Return whether a line closes the fence that was opened by `opening`."""
    match = _FENCE.match(line)
    return match is not None and match[1].startswith(opening) and not line[match.end() :].strip()


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


_HTML_HEADING = re.compile(r"(?i) {0,3}<h([1-6])(?=[\s>])")
_MAX_HTML_HEADING_LINES = 20
_TAG = re.compile(r"<[^<>]*>")
_HEADING_ID = re.compile(r"[ \t]+\{:?[ \t]*[#.][^{}\n]{0,200}\}[ \t]*$")
"""The id or classes behind a heading, such as `{#install}`, which page generators read."""
_FRONT_MATTER_ENDS = {"---": ("---", "..."), "+++": ("+++",)}
_FRONT_MATTER_LINES = 1_000
# The first setting: a key, YAML's flow mapping, or a table of TOML.
_FIRST_SETTINGS = {
    "---": re.compile(r"[\w\"'][^:\n]{0,80}:(?:\s|$)|\{"),
    "+++": re.compile(r"[\w\"'][^=\n]{0,80}=|\["),
}
_YAML_NULLS = ("", "~", "null", "Null", "NULL")
_COMMENT = ("<!--", "-->")
_HIDDEN: Mapping[str, str] = {"<!--": "-->", "<script": "</script>", "<style": "</style>"}
"""Starts and ends of text that readers do not see."""
_HIDDEN_MARK = re.compile(r"<!--|<s(?:cript|tyle)|\{/\*|%%|data:")
_MARKS = re.compile(
    r"(?P<code>\\?`+|~{3,})|(?P<comment>(?<!\\)(?:<!--|\{/\*))|(?P<percent>%%+)"
    r"|(?P<program>(?m:^) {0,3}<(?:script|style)(?=[\s>]))"
    r"|(?P<border>\n[ \t]*(?:[\r\n]|[-*+|>#]|[0-9]+[.)]))"
    r"|(?P<file>data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*,[^\s()<>\"'`\]]{64,})"
)
"""Marks of code and of hidden text, and borders that a code span does not cross."""
_RAW_BEGINS = re.compile(r"(?i) {0,3}<(?:pre|script|style|textarea)(?=[\s>]|$)")
_RAW_ENDS = re.compile(r"(?i)</(?:pre|script|style|textarea)>")


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse a Markdown or an MDX file; see registry.ParseFunction."""
    parser = _MdxParser if media_type == MDX else MarkdownParser
    parsed = parser(decode_text(data, limits)).parse()
    if not parsed.text.strip():
        raise DocumentEmpty("the document contains only comments or embedded files")
    return parsed


def parse_markdown(text: str) -> ParsedText:
    """Find the blocks and the title of a Markdown document."""
    return MarkdownParser(text).parse()


class MarkdownParser:
    """A Markdown parser that reads the lines of a document once, or twice if parts are hidden."""

    hidden: Mapping[str, str] = _HIDDEN
    has_percent_comments = True
    """Whether text between two `%%` is a comment, as in Obsidian."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = list(split_lines(text))
        self._outline = Outline()
        self._at = 0
        self._settings_end = 0
        self.front_title: str | None = None

    def parse(self) -> ParsedText:
        """Return the blocks and the title of the document."""
        blocks = tuple(self.iter_blocks())
        text, gaps = leave_out(self._text, self._iter_hidden(blocks))
        if gaps:
            blocks = tuple(type(self)(text).iter_blocks())
        title = self.front_title or find_first_title(blocks)
        return ParsedText(text, blocks, title=title, gaps=gaps)

    def iter_blocks(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        if self._skip_front_matter():
            yield self._build_block("front_matter", 0)
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.is_blank:
                yield self._read_block(line)
            else:
                self._at += 1

    def _iter_hidden(self, blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
        """Yield the spans that readers of the page do not see, in order."""
        for block in blocks:
            if block.kind == "front_matter":
                if block.start >= self._settings_end:
                    yield block.start, block.end
            elif block.kind != "code" and _HIDDEN_MARK.search(self._text, block.start, block.end):
                yield from self._iter_hidden_within(block)

    def _iter_hidden_within(self, block: Block) -> Iterator[tuple[int, int]]:
        text = self._text
        last_ends = {end: text.rfind(end, block.start, block.end) for end in self.hidden.values()}
        marks = [*_MARKS.finditer(text, block.start, block.end)]
        at = 0
        while at < len(marks):
            mark, at, end = marks[at], at + 1, 0
            if mark.lastgroup == "code":
                at = _find_code_end(marks, at)
            elif mark.lastgroup == "file":
                end = mark.end()
            elif mark.lastgroup == "percent" and self.has_percent_comments:
                end = _find_percent_end(text, marks, at)
            elif mark.lastgroup in {"comment", "program"}:
                closing = self.hidden.get(mark[0].lstrip(" "), "")
                first = mark.end() - 2  # `<!-->` is a whole comment
                if closing and last_ends[closing] >= first:
                    end = text.find(closing, first) + len(closing)
            if not end:
                continue
            is_after_blank = mark.start() == 0 or text[mark.start() - 1].isspace()
            while is_after_blank and text[end : end + 1] in {" ", "\t"}:
                end += 1  # so that the text behind a comment is not indented
            yield mark.start(), end
            while at < len(marks) and marks[at].start() < end:
                at += 1

    def _read_block(self, line: Line) -> Block:
        if heading := parse_atx_heading(line.text):
            self._at += 1
            return self._build_heading(self._at - 1, *heading)
        if block := self._read_html_heading():
            return block
        kind, skip = self._select_container(line)
        if skip is None:
            return self._read_paragraph()
        first = self._at
        skip()
        return self._build_block(kind, first)

    def _read_html_heading(self) -> Block | None:
        """Return a heading that is written in HTML, as on pages of repositories; else None."""
        first = self._at
        begins = _HTML_HEADING.match(self._lines[first].text)
        if begins is None:
            return None
        for at in range(first, min(first + _MAX_HTML_HEADING_LINES, len(self._lines))):
            line = self._lines[at]
            if line.is_blank:
                return None
            if line.text.rstrip().lower().endswith(f"</h{begins[1]}>"):
                source = self._text[self._lines[first].start : line.end]
                name = unescape(_TAG.sub(" ", source)).strip()
                if name:
                    self._at = at + 1
                    return self._build_heading(first, int(begins[1]), name)
                return None
        return None

    def _select_container(self, line: Line) -> tuple[BlockKind, Callable[[], None] | None]:
        """Return the kind of the block that a line opens, and the method that skips the block.

        The method is None for a paragraph, which is read by _read_paragraph.
        """
        if find_fence_opening(line.text):
            return "code", self._skip_fence
        if is_indented(line.text):
            return "code", self._skip_indented
        if marks := self._find_comment_marks(line):
            return "paragraph", partial(self._skip_comment, marks)
        if _RAW_BEGINS.match(line.text):
            return "paragraph", self._skip_raw
        if is_list_item(line.text):
            return "list", self._skip_list
        return "table", self._skip_table if self._is_table_start(self._at) else None

    def _skip_front_matter(self) -> bool:
        mark = self._lines[0].text.rstrip() if self._lines else ""
        ends = _FRONT_MATTER_ENDS.get(mark)
        if ends is None or not self._has_settings(mark):
            return False
        for number, line in enumerate(self._lines[1:_FRONT_MATTER_LINES], start=1):
            if line.text.rstrip() in ends:
                self._at = number + 1
                self._settings_end = line.end
                find_title = _find_yaml_title if mark == "---" else _find_toml_title
                settings = [line.text for line in self._lines[1:number]]
                self.front_title = shorten_heading(find_title(settings)) or None
                return True
        return False

    def _has_settings(self, mark: str) -> bool:
        """Return whether settings follow the first line, and not text below a thematic break."""
        following = (line.text for line in self._lines[1:_FRONT_MATTER_LINES] if not line.is_blank)
        first = next((text for text in following if not text.startswith("#")), "")
        ends = _FRONT_MATTER_ENDS[mark]
        return first.rstrip() in ends or _FIRST_SETTINGS[mark].match(first) is not None

    def _skip_fence(self) -> None:
        opening = find_fence_opening(self._lines[self._at].text)
        self._at += 1
        while opening and self._at < len(self._lines):
            self._at += 1
            if is_fence_end(self._lines[self._at - 1].text, opening):
                return

    def _skip_indented(self) -> None:
        """Skip an indented code block; blank lines within it do not end it."""
        at = self._at
        while at < len(self._lines) and (
            self._lines[at].is_blank or is_indented(self._lines[at].text)
        ):
            at += 1
            if not self._lines[at - 1].is_blank:
                self._at = at

    def _find_comment_marks(self, line: Line) -> tuple[str, str] | None:
        """Return the marks around a comment that a line opens; None if it opens no comment."""
        if line.text.lstrip().startswith(_COMMENT[0]):
            return _COMMENT
        if not (self.has_percent_comments and line.text.startswith("%%")):
            return None
        end = self._text.find("%%", line.start + 2) + 2
        is_closed = end > line.end and self._text[end : end + 1] in {"", "\r", "\n"}
        return ("%%", "%%") if is_closed else None

    def _skip_comment(self, marks: tuple[str, str]) -> None:
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
            if after_blank and not belongs and not line.is_blank:
                return
            if not belongs and (parse_atx_heading(line.text) or find_fence_opening(line.text)):
                return
            after_blank = line.is_blank
            if inside and find_fence_opening(line.text.lstrip()):
                self._skip_inner_fence()
            else:
                self._at += 1

    def _skip_inner_fence(self) -> None:
        """Skip a fence inside an item; if it is never closed, it ends with the item."""
        opening = find_fence_opening(self._lines[self._at].text.lstrip())
        self._at += 1
        while opening and self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.is_blank and line.text[:1] not in {" ", "\t"}:
                return
            self._at += 1
            if is_fence_end(line.text.lstrip(), opening):
                return

    def _skip_table(self) -> None:
        while self._at < len(self._lines) and not self._lines[self._at].is_blank:
            if self._is_interruption(self._lines[self._at]):
                return
            self._at += 1

    def _read_paragraph(self) -> Block:
        first = self._at
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            # A line below a quotation cannot underline the quotation: it would have to be quoted
            # itself.
            quoted = self._lines[self._at - 1].text.lstrip().startswith(">")
            if (level := get_setext_level(line.text)) and not quoted:
                self._at += 1
                above = self._text[self._lines[first].start : self._lines[self._at - 2].end]
                return self._build_heading(first, level, above)
            if line.is_blank or self._is_interruption(line) or self._is_table_start(self._at):
                break
            self._at += 1
        return self._build_block("paragraph", first)

    def _is_interruption(self, line: Line) -> bool:
        text = line.text
        return (
            parse_atx_heading(text) is not None
            or find_fence_opening(text) is not None
            or is_list_item(text)
            or text.lstrip().startswith(_COMMENT[0])
            or _RAW_BEGINS.match(text) is not None
        )

    def _is_table_start(self, at: int) -> bool:
        return (
            at + 1 < len(self._lines)
            and "|" in self._lines[at].text
            and is_table_rule(self._lines[at + 1].text)
        )

    def _build_heading(self, first: int, level: int, text: str) -> Block:
        path = self._outline.enter(level, shorten_heading(_HEADING_ID.sub("", text)))
        return Block("heading", self._lines[first].start, self._find_block_end(first), path, level)

    def _build_block(self, kind: BlockKind, first: int) -> Block:
        path = () if kind == "front_matter" else self._outline.path
        return Block(kind, self._lines[first].start, self._find_block_end(first), path)

    def _find_block_end(self, first: int) -> int:
        """Return the end of the last non-blank line of the block that starts on line `first`."""
        last = self._at - 1
        while last > first and self._lines[last].is_blank:
            last -= 1
        return self._lines[last].end


def _find_code_end(marks: Sequence[re.Match[str]], at: int) -> int:
    """Return the index of the mark after the code that the mark before `at` opens."""
    opening = marks[at - 1][0]
    is_fence = len(opening) > 2  # noqa: PLR2004
    for index in range(at, len(marks)):
        mark = marks[index]
        if mark.lastgroup == "border" and not is_fence:
            return at
        run = mark[0].removeprefix("\\")
        if run == opening or (is_fence and run.startswith(opening)):
            return index + 1
    return at


def _find_percent_end(text: str, marks: Sequence[re.Match[str]], at: int) -> int:
    """Return the end of the comment that the `%%` before `at` opens; 0 if it opens none."""
    opening = marks[at - 1]
    closing = next((marks[n] for n in range(at, len(marks)) if marks[n][0] == "%%"), None)
    if closing is None or text[opening.start() - 1 : opening.start()].strip():
        return 0
    end = closing.end()
    following = text[end : end + 1]
    if "\n" in text[opening.end() : closing.start()]:
        is_first = opening.start() == 0 or text[opening.start() - 1] in "\r\n"
        return end if is_first and following in {"", "\r", "\n"} else 0
    return 0 if following.isalnum() else end


_MAX_YAML_CHARACTERS = 20_000
_MAX_YAML_DEPTH = 100


def _find_yaml_title(lines: list[str]) -> str:
    """Return the title that the top mapping of YAML sets, as it is written; "" without one."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import (
        CollectionEndEvent,
        CollectionStartEvent,
        NodeEvent,
        ScalarEvent,
    )

    text = "\n".join(lines)
    if len(text) > _MAX_YAML_CHARACTERS:
        return _find_written_title(lines, ":")
    depth, name, at_value, title = 0, "", False, ""
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            depth -= isinstance(event, CollectionEndEvent)
            if depth == 1 and isinstance(event, NodeEvent):
                value = event.value if isinstance(event, ScalarEvent) else ""
                if at_value and name == "title":
                    is_null = isinstance(event, ScalarEvent) and event.implicit[0]
                    title = "" if is_null and value in _YAML_NULLS else value
                name, at_value = value, not at_value
            depth += isinstance(event, CollectionStartEvent)
            if depth > _MAX_YAML_DEPTH:
                break
    except YAMLError:  # such as `title: Part 1: the start`
        return _find_written_title(lines, ":")
    return title


def _find_toml_title(lines: list[str]) -> str:
    """Return the title that TOML sets outside its tables; "" without one."""
    try:
        title = tomllib.loads("\n".join(lines)).get("title", "")
    except (ValueError, RecursionError):
        return _find_written_title(lines, "=")
    return title if isinstance(title, str) else ""


def _find_written_title(lines: list[str], separator: str) -> str:
    """Return the title of settings that cannot be parsed: the text behind the name."""
    parts = (line.partition(separator) for line in lines)
    values = (value.strip().strip("\"'") for name, _, value in parts if name.rstrip() == "title")
    return next(values, "")


_MODULE = re.compile(
    r"import[ \t]*(?:[\"'{*]|\w+[ \t]*(?:,|from\b))"
    r"|export[ \t]*(?:[{*]|(?:default|const|let|var|function|async|class|type|interface)\b)"
)
_MDX_COMMENT = ("{/*", "*/}")
_TAG_BEGINS = re.compile(r"[ \t]*</?[A-Za-z>]")
_FOR_READERS = re.compile(r"\b(?:title|label|summary|description|alt|caption|heading)=[\"'{]")
# A construct that is not closed within this many lines ends at the next blank line, or immediately.
_MAX_MODULE_LINES = 200
_MAX_TAG_LINES = 50


class _MdxParser(MarkdownParser):
    hidden: Mapping[str, str] = {**_HIDDEN, _MDX_COMMENT[0]: _MDX_COMMENT[1]}
    has_percent_comments = False
    _has_unclosed_module = False

    def _read_block(self, line: Line) -> Block:
        first = self._at
        if _MODULE.match(line.text):
            self._at = self._find_module_end()
        elif line.text.lstrip().startswith(_MDX_COMMENT[0]):
            self._skip_comment(_MDX_COMMENT)
        elif end := self._find_tags_end():
            self._at = end
            if any(_FOR_READERS.search(tag.text) for tag in self._lines[first:end]):
                return self._build_block("paragraph", first)
        elif is_indented(line.text) and not find_fence_opening(line.text.lstrip()):
            return self._read_paragraph()
        else:
            return super()._read_block(line)
        return self._build_block("front_matter", first)

    def _is_interruption(self, line: Line) -> bool:
        return super()._is_interruption(line) or _is_tags(line.text)

    def _find_module_end(self) -> int:
        """Return the index of the line after an import or export statement."""
        depth = 0
        nearest = 0
        lines = self._lines
        end = min(self._at + _MAX_MODULE_LINES, len(lines))
        for at in range(self._at, end):
            if lines[at].is_blank:
                if depth <= 0 or self._has_unclosed_module:
                    return at
                nearest = nearest or at
            depth += sum(map(lines[at].text.count, "([{")) - sum(map(lines[at].text.count, ")]}"))
        # Search only once: with many unclosed modules, searching each time would take long.
        self._has_unclosed_module = True
        return nearest or end

    def _find_tags_end(self) -> int:
        """Return the index of the line after the tags that start here; 0 if no tags start here."""
        at = self._at
        while at < len(self._lines) and (end := self._find_tag_end(at)):
            at = end
        return at if at > self._at else 0

    def _find_tag_end(self, at: int) -> int:
        """Return the index of the line after the tags on line `at`; 0 if they are not closed."""
        line = self._lines[at].text
        if _is_tags(line):
            return at + 1
        if _TAG_BEGINS.match(line) is None or ">" in line:
            return 0
        for later in range(at + 1, min(at + _MAX_TAG_LINES, len(self._lines))):
            text = self._lines[later].text
            if not text.strip() or "<" in text:
                return 0
            if text.rstrip().endswith(">") and not text.rstrip().endswith("=>"):
                return later + 1
        return 0


def _is_tags(line: str) -> bool:
    """Return whether a line contains only HTML or JSX tags."""
    return _TAG_BEGINS.match(line) is not None and not _TAG.sub("", line).strip()
