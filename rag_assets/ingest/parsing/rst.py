"""reStructuredText: the source itself is the text, without comments and directives for programs.

Blocks follow the block structure of docutils as far as sections, literal blocks, lists, tables and
directives need it; inline markup is not changed. A title is a separate line with an adornment below
it, and possibly one above. The first style of adornment in a document is level 1, the next new
style level 2, and so on. Each line is read a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rag_assets.ingest.parsing.blocks import (
    MAX_HEADING_LEVEL,
    Outline,
    shorten_heading,
)
from rag_assets.ingest.parsing.model import Block, BlockKind, ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.text import Line, decode_text, leave_out_front_matter, split_lines

_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_MIN_ADORNMENT_LENGTH = 2
_MIN_TRANSITION_LENGTH = 4
_LIST_ITEM = re.compile(
    r"(?:[-*+•‣⁃]|\(?(?:[0-9]{1,9}|#|[A-Za-z]|[ivxlcdmIVXLCDM]{1,5})[.)])(?![^ \t])"
)
_FIELD = re.compile(r":(?![: ])[^:\n]{1,200}:(?![^ \t])")
_DIRECTIVE = re.compile(
    r"\.\.[ \t]+(?:\|[^|]{1,100}\|[ \t]+)?([A-Za-z][\w.+:-]{0,60}?)::(?![^ \t])"
)
_EXPLICIT = re.compile(r"\.\.(?![^ \t])")
_VISIBLE = re.compile(r"\.\.[ \t]+\[")  # such as footnotes and citations
_SIMPLE_TABLE = re.compile(r"=+(?:[ \t]+=+)+[ \t]*$")
_GRID_TABLE = ("+-", "+=")

CODE = frozenset(
    {"code", "code-block", "sourcecode", "parsed-literal", "literalinclude", "math", "raw",
     "doctest", "testcode", "testoutput", "highlight-block", "prompt", "graphviz", "mermaid"}
)  # fmt: skip
"""Directives whose content is not running text."""
TABLES = frozenset({"table", "csv-table", "list-table"})
"""Directives that create a table."""
FOR_PROGRAMS = frozenset(
    {"toctree", "contents", "index", "highlight", "meta", "currentmodule", "module", "include",
     "default-role", "role", "sectnum", "tabularcolumns", "testsetup", "testcleanup",
     "target-notes", "codeauthor", "sectionauthor"}
)  # fmt: skip
"""Directives without content for readers."""


def count_indent(line: str) -> int:
    """Return the number of leading white-space characters; a tab counts as one."""
    return len(line) - len(line.lstrip())


def is_adornment(line: str) -> bool:
    """Return whether a line consists of one repeated punctuation character, as around titles."""
    text = line.rstrip()
    return (
        len(text) >= _MIN_ADORNMENT_LENGTH and text[0] in _PUNCTUATION and not text.strip(text[0])
    )


def is_transition(line: str) -> bool:
    """Return whether a line is an adornment long enough to separate sections without a title."""
    return len(line.rstrip()) >= _MIN_TRANSITION_LENGTH and is_adornment(line)


def is_list_item(line: str) -> bool:
    """Return whether a line starts an item of a bulleted, numbered or field list."""
    return _LIST_ITEM.match(line) is not None or _FIELD.match(line) is not None


def is_explicit_markup(line: str) -> bool:
    """Return whether a line starts a directive, a comment, a target or a footnote."""
    return _EXPLICIT.match(line) is not None


def is_for_readers(line: str) -> bool:
    """Return whether readers see the block that starts on this line with `..`."""
    name = get_directive(line)
    return name not in FOR_PROGRAMS if name else _VISIBLE.match(line) is not None


def get_directive(line: str) -> str | None:
    """Return the name of the directive that a line starts; None if it starts no directive."""
    match = _DIRECTIVE.match(line)
    return match[1].lower() if match else None


def is_simple_border(line: str) -> bool:
    """Return whether a line is a border of a simple table, such as `=====  ===`."""
    return _SIMPLE_TABLE.match(line) is not None


def is_grid_border(line: str) -> bool:
    """Return whether a line is a border of a grid table, such as `+-----+---+`."""
    return line.startswith(_GRID_TABLE) and not line.rstrip().strip("+-=")


_DOCTEST = ">>> "
_LITERAL = "::"
_MIN_UNDERLINE_LENGTH = 4


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse a reStructuredText file; see registry.ParseFunction."""
    return parse_rst(decode_text(data, limits))


def parse_rst(text: str) -> ParsedText:
    """Find the blocks and the title of a reStructuredText document."""
    return leave_out_front_matter(text, [*_RstParser(text).iter_blocks()])


class _RstParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = list(split_lines(text))
        self._outline = Outline()
        self._styles: list[tuple[str, bool]] = []
        self._at = 0
        self._literal_follows = False

    def iter_blocks(self) -> Iterator[Block]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.is_blank:
                self._at += 1
            else:
                yield self._find_title() or self._read_body(line)

    def _find_title(self) -> Block | None:
        """Return a heading block if a title, with its adornments, starts here; else None."""
        first = self._at
        over = is_adornment(self._get_line_text(first)) and self._is_underlined(first + 1)
        title = first + 1 if over else first
        under = self._get_line_text(title + 1).rstrip()
        if over and under != self._get_line_text(first).rstrip():
            return None
        if not over and (
            not self._is_underlined(first) or self._get_line_text(first)[:1].isspace()
        ):
            return None
        self._at = title + 2
        self._literal_follows = False
        level = self._assign_level(under[0], has_overline=over)
        path = self._outline.enter(level, shorten_heading(self._get_line_text(title)))
        return self._build_block("heading", first, path, level)

    def _is_underlined(self, at: int) -> bool:
        """Return whether a line of text has an adornment below it.

        As in docutils, a line of only a few punctuation characters is text, unless the title is
        just as short.
        """
        title, under = self._get_line_text(at).strip(), self._get_line_text(at + 1)
        min_length = min(len(title), _MIN_UNDERLINE_LENGTH)
        return (
            bool(title)
            and not is_transition(title)
            and is_adornment(under)
            and len(under.rstrip()) >= min_length
        )

    def _assign_level(self, character: str, *, has_overline: bool) -> int:
        style = (character, has_overline)
        if style not in self._styles:
            self._styles.append(style)
        return min(self._styles.index(style) + 1, MAX_HEADING_LEVEL)

    def _read_body(self, line: Line) -> Block:
        first = self._at
        kind, skip = self._select_container(line)
        skip()
        self._literal_follows = kind == "paragraph" and self._announces_literal()
        return self._build_block(kind, first, () if kind == "front_matter" else self._outline.path)

    def _select_container(self, line: Line) -> tuple[BlockKind, Callable[[], None]]:
        """Return the kind of block that starts on a line, and the function that skips the block."""
        text = line.text
        if is_explicit_markup(text):
            return self._classify_explicit(text), self._skip_with_body
        if count_indent(text):
            return "code" if self._literal_follows else "paragraph", self._skip_indented
        if is_simple_border(text):
            return "table", self._skip_simple_table
        if is_list_item(text):
            return "list", self._skip_list
        if is_grid_border(text):
            return "table", self._skip_lines
        return "code" if text.startswith(_DOCTEST) else "paragraph", self._skip_paragraph

    @staticmethod
    def _classify_explicit(text: str) -> BlockKind:
        name = get_directive(text)
        if name in CODE:
            return "code"
        if name in TABLES:
            return "table"
        return "paragraph" if is_for_readers(text) else "front_matter"

    def _skip_lines(self) -> None:
        while self._at < len(self._lines) and not self._lines[self._at].is_blank:
            self._at += 1

    def _skip_indented(self) -> None:
        """Skip all indented lines, including blank lines between them."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.is_blank and not count_indent(line.text):
                return
            self._at += 1

    def _skip_with_body(self) -> None:
        self._at += 1
        self._skip_indented()

    def _skip_simple_table(self) -> None:
        """Skip to the first border that a blank line follows.

        An earlier border only separates the head from the rows.
        """
        while self._at < len(self._lines):
            border = is_simple_border(self._get_line_text(self._at))
            self._at += 1
            if self._at == len(self._lines) or (border and self._lines[self._at].is_blank):
                return

    def _skip_list(self) -> None:
        """Skip all items with the indented lines below them."""
        while self._at < len(self._lines) and is_list_item(self._get_line_text(self._at)):
            if self._is_underlined(self._at):
                return
            self._skip_with_body()

    def _skip_paragraph(self) -> None:
        """Skip to the next blank line, or to a directive that directly follows the paragraph."""
        self._at += 1
        while self._at < len(self._lines) and not self._lines[self._at].is_blank:
            if is_explicit_markup(self._get_line_text(self._at)):
                return
            self._at += 1

    def _announces_literal(self) -> bool:
        last = self._at - 1
        while self._lines[last].is_blank:
            last -= 1
        return self._lines[last].text.rstrip().endswith(_LITERAL)

    def _get_line_text(self, at: int) -> str:
        return self._lines[at].text if at < len(self._lines) else ""

    def _build_block(
        self, kind: BlockKind, first: int, path: tuple[str, ...], level: int = 0
    ) -> Block:
        last = self._at - 1
        while last > first and self._lines[last].is_blank:
            last -= 1
        return Block(kind, self._lines[first].start, self._lines[last].end, path, level)
