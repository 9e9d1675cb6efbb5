"""DOCX: headings, paragraphs, lists, tables, notes and text boxes, in the order of the text.

The XML itself is parsed, without a library for Word documents
(docs/decisions/10-document-types-and-readers.md). Headers, footers, comments, tables of contents,
deleted and hidden text are omitted. Page numbers are unknown, because only a program that lays out
the document can determine them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from rag_assets.common.errors import DocumentEmpty
from rag_assets.ingest.parsing.blocks import (
    MAX_HEADING_LEVEL,
    Piece,
    add_cell,
    assemble,
    clean,
    find_first_title,
    format_row,
    get_power_mark,
    get_repeated_text,
    limit_pieces,
    shorten_heading,
)
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.ooxml import Package
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions

if TYPE_CHECKING:
    from lxml.etree import _Element


W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"

TEXT_BOX = f"{W}txbxContent"
OMITTED_TAGS = frozenset(
    {f"{W}{name}" for name in ("del", "moveFrom", "delText", "instrText", "pPr", "rPr", "rt")}
    | {f"{_MC}Fallback"}
)
_RUN, _PROPERTIES, _HIDDEN = f"{W}r", f"{W}rPr", f"{W}vanish"
_TEXTS = frozenset({f"{W}t", f"{_M}t"})
_SYMBOL = f"{W}sym"
_ALIGNMENT, _EXPONENT, _DENOMINATOR = f"{W}vertAlign", f"{_M}sup", f"{_M}den"
_CHARACTERS = {
    f"{W}tab": "\t", f"{W}ptab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-",
}  # fmt: skip
_NOTES = {f"{W}footnoteReference": "footnote", f"{W}endnoteReference": "endnote"}
# The range between these two holds characters of symbol fonts, which have no meaning elsewhere.
_SYMBOLS = (range(0x20, 0xD800), range(0xF900, 0x10000))


_FIELD_MARK = f"{W}fldChar"
_TICKED, _NOT_TICKED = "☒", "☐"  # as in content controls


@dataclass(slots=True)
class Inline:
    """The content of a paragraph.

    Attributes:
        hidden_styles: ids of the styles that hide text.
        is_hidden: whether the paragraph's style hides its text.
        notes: for each note that the paragraph refers to, its kind, its id and the index of its
            reference in `texts`.
        choice: index in `texts` of the choice of the form field that is being read.
    """

    texts: list[str] = field(default_factory=list)
    notes: list[tuple[str, str, int]] = field(default_factory=list)
    boxes: list[_Element] = field(default_factory=list)
    hidden_styles: Set[str] = frozenset()
    is_hidden: bool = False
    choice: int | None = None

    @property
    def text(self) -> str:
        """Return the whole text of the paragraph, with the author's line breaks."""
        return "".join(self.texts)


def read_inline(paragraph: _Element, hidden_styles: Set[str]) -> Inline:
    """Return the text, notes and text boxes of a paragraph, without hidden text."""
    style = _get_value(paragraph.find(f"{W}pPr/{W}pStyle"))
    inline = Inline(hidden_styles=hidden_styles, is_hidden=style in hidden_styles)
    _collect(paragraph, inline)
    return inline


def collapse_spaces(text: str) -> str:
    """Replace every run of white space in a text by a space."""
    return " ".join(text.split())


def _collect(node: _Element, inline: Inline) -> None:
    for child in node:
        tag = child.tag
        if tag in _TEXTS:
            inline.texts.append(child.text or "")
        elif tag in OMITTED_TAGS or (tag == _RUN and _is_hidden(child, inline)):
            continue
        elif tag in _CHARACTERS:
            inline.texts.append(_CHARACTERS[tag])
        elif tag == _SYMBOL:
            inline.texts.append(_decode_symbol(child.get(f"{W}char", "")))
        elif tag in _NOTES:
            inline.notes.append((_NOTES[tag], child.get(f"{W}id", ""), len(inline.texts)))
            inline.texts.append("")
        elif tag == _FIELD_MARK:
            _add_choice(child, inline)
        elif tag == TEXT_BOX:
            inline.boxes.append(child)
        else:
            inline.texts.append(_get_separator(child, inline))
            _collect(child, inline)


def _get_separator(node: _Element, inline: Inline) -> str:
    """Return "^" before a power, "/" before a denominator, and "" before any other node."""
    if node.tag == _DENOMINATOR:
        return "/"
    if node.tag == _RUN:
        is_raised = _get_value(node.find(f"{_PROPERTIES}/{_ALIGNMENT}")) == "superscript"
    else:
        is_raised = node.tag == _EXPONENT
    return get_power_mark(inline.texts, "".join(node.itertext(*_TEXTS))) if is_raised else ""


def _is_hidden(run: _Element, inline: Inline) -> bool:
    """Return whether a run is hidden: by its own property, its style, or the paragraph's style."""
    hidden = _read_hidden(run)
    if hidden is None:
        style = _get_value(run.find(f"{_PROPERTIES}/{W}rStyle"))
        return inline.is_hidden or style in inline.hidden_styles
    return hidden


def _read_hidden(element: _Element) -> bool | None:
    """Return whether a run or style hides text; None if it does not state it."""
    hidden = element.find(f"{_PROPERTIES}/{_HIDDEN}")
    return None if hidden is None else _is_on(hidden)


def _is_on(element: _Element) -> bool:
    return element.get(f"{W}val") not in {"0", "false", "off"}


def _add_choice(mark: _Element, inline: Inline) -> None:
    """Add the choice that a drop-down list or check box stores, unless the field shows a text."""
    kind = mark.get(f"{W}fldCharType")
    if kind == "begin" and (choice := _read_choice(mark)):
        inline.choice = len(inline.texts)
        inline.texts.append(choice)
    elif kind == "end" and inline.choice is not None:
        if "".join(inline.texts[inline.choice + 1 :]).strip():
            inline.texts[inline.choice] = ""
        inline.choice = None


def _read_choice(mark: _Element) -> str:
    data = mark.find(f"{W}ffData")
    if data is None:
        return ""
    if (box := data.find(f"{W}checkBox")) is not None:
        states = [state for name in ("checked", "default") for state in box.iter(f"{W}{name}")]
        return _TICKED if states and _is_on(states[0]) else _NOT_TICKED
    if (choices := data.find(f"{W}ddList")) is None:
        return ""
    entries = [entry.get(f"{W}val", "") for entry in choices.iter(f"{W}listEntry")]
    default = _parse_integer(choices.find(f"{W}default"), 0)
    chosen = _parse_integer(choices.find(f"{W}result"), default)
    return entries[chosen] if 0 <= chosen < len(entries) else ""


def _decode_symbol(code: str) -> str:
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    return chr(number) if any(number in characters for characters in _SYMBOLS) else ""


_MAX_STYLE_CHAIN = 20
_BODY_TEXT = 9  # the outline level of body text
_MAX_MARKER_CHARACTERS = 40
_MAX_AS_LETTERS = 26 * 4
_MAX_AS_ROMAN = 3_999
_PLACEHOLDER = re.compile(r"%([1-9])")
# The names of built-in styles are English, whatever the language of the document.
_HEADING = re.compile(r"heading ([1-9])$")
_CODE = re.compile(r"\b(?:code|preformatted|listing|macro)\b")
_CONTENTS = re.compile(r"(?:toc [1-9]|table of figures)$")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


class ListPosition(NamedTuple):
    """The list and the depth (from 0) of an item; list 0 means no list."""

    number: int
    depth: int


@dataclass(frozen=True, slots=True)
class Style:
    """A style; the level is 0 unless it is a heading."""

    name: str = ""
    level: int = 0
    list_position: ListPosition | None = None
    is_code: bool = False
    is_hidden: bool = False

    @property
    def is_title(self) -> bool:
        """Return whether the style is used for the document's title."""
        return self.name == "title"

    @property
    def is_contents(self) -> bool:
        """Return whether the style is used for lines of a table of contents."""
        return _CONTENTS.match(self.name) is not None


class Styles:
    """The styles of a document, by id."""

    def __init__(self, root: _Element | None) -> None:
        styles = [] if root is None else root.iter(f"{W}style")
        self._elements = {element.get(f"{W}styleId", ""): element for element in styles}
        self._resolved: dict[str, Style] = {}
        self.hidden: Set[str] = {name for name in self._elements if self.get(name).is_hidden}

    def get(self, style_id: str) -> Style:
        """Return the style with this id; for an unknown id, a style without properties."""
        if style_id not in self._resolved:
            self._resolved[style_id] = self._resolve_style(style_id)
        return self._resolved[style_id]

    def _resolve_style(self, style_id: str) -> Style:
        names: list[str] = []
        levels: list[int] = []
        positions: list[ListPosition] = []
        hidden: list[bool] = []
        for _ in range(_MAX_STYLE_CHAIN):
            element = self._elements.get(style_id)
            if element is None:
                break
            names.append(_get_value(element.find(f"{W}name")).lower())
            properties = element.find(f"{W}pPr")
            levels += _read_own_levels(names[-1], properties)
            positions += filter(None, [read_list_position(properties)])
            hidden += [] if (own := _read_hidden(element)) is None else [own]
            style_id = _get_value(element.find(f"{W}basedOn"))
        return Style(
            names[0] if names else "",
            levels[0] if levels else 0,
            positions[0] if positions else None,
            any(map(_CODE.search, names)),
            hidden[:1] == [True],
        )


def _read_own_levels(name: str, properties: _Element | None) -> list[int]:
    """Return a list with the heading level that a style sets itself, not by inheritance.

    The level is 0 for body text. The list is empty if the style sets no level.
    """
    if match := _HEADING.match(name):
        return [min(int(match[1]), MAX_HEADING_LEVEL)]
    if name == "title":
        return [1]
    level = read_outline_level(properties)
    return [] if level is None else [level]


def read_outline_level(properties: _Element | None) -> int | None:
    """Return the heading level in a paragraph's properties: 0 for body text, None if unset."""
    element = properties.find(f"{W}outlineLvl") if properties is not None else None
    if element is None:
        return None
    level = _parse_integer(element, _BODY_TEXT)
    return 0 if level >= _BODY_TEXT else min(level + 1, MAX_HEADING_LEVEL)


def read_list_position(properties: _Element | None) -> ListPosition | None:
    """Return the list that a paragraph's properties refer to, if any."""
    numbered = properties.find(f"{W}numPr") if properties is not None else None
    if numbered is None:
        return None
    depth = _parse_integer(numbered.find(f"{W}ilvl"), 0)
    return ListPosition(_parse_integer(numbered.find(f"{W}numId"), 0), max(0, min(depth, 8)))


class Numbering:
    """The item counters of a document's lists; items must be counted in document order."""

    def __init__(self, root: _Element | None) -> None:
        self._levels: dict[tuple[int, int], _Element] = {}
        self._lists: dict[int, int] = {}
        self._restarts: dict[int, dict[int, int]] = {}
        self._counts: dict[int, dict[int, int]] = {}
        if root is not None:
            self._read(root)

    def _read(self, root: _Element) -> None:
        for kind in root.iter(f"{W}abstractNum"):
            number = _parse_integer(kind, 0, "abstractNumId")
            for level in kind.iter(f"{W}lvl"):
                self._levels[number, _parse_integer(level, 0, "ilvl")] = level
        for instance in root.iter(f"{W}num"):
            number = _parse_integer(instance, 0, "numId")
            self._lists[number] = _parse_integer(instance.find(f"{W}abstractNumId"), 0)
            self._restarts[number] = {
                _parse_integer(override, 0, "ilvl"): _parse_integer(start, 1)
                for override in instance.iter(f"{W}lvlOverride")
                if (start := override.find(f"{W}startOverride")) is not None
            }

    def count_next_item(self, position: ListPosition) -> str:
        """Count a list's next item; return the number printed before it, or "-" for a bullet."""
        kind = self._lists.get(position.number, -1)
        level = self._levels.get((kind, position.depth))
        if level is None or self._get_format(kind, position.depth) == "bullet":
            return "-"
        if self._get_format(kind, position.depth) == "none":
            return ""
        self._count(kind, position)
        pattern = _get_value(level.find(f"{W}lvlText"))[:_MAX_MARKER_CHARACTERS]
        return _PLACEHOLDER.sub(lambda match: self._format_marker(kind, int(match[1]) - 1), pattern)

    def _count(self, kind: int, position: ListPosition) -> None:
        counts = self._counts.setdefault(kind, {})
        restart = self._restarts.get(position.number, {}).pop(position.depth, None)
        before = restart - 1 if restart is not None else counts.get(position.depth)
        counts[position.depth] = (
            self._get_start(kind, position.depth) if before is None else before + 1
        )
        for deeper in range(position.depth + 1, 10):
            counts.pop(deeper, None)

    def _format_marker(self, kind: int, depth: int) -> str:
        count = self._counts.get(kind, {}).get(depth)
        number = self._get_start(kind, depth) if count is None else count
        return _format_number(number, self._get_format(kind, depth))

    def _get_start(self, kind: int, depth: int) -> int:
        level = self._levels.get((kind, depth))
        return _parse_integer(level.find(f"{W}start"), 1) if level is not None else 1

    def _get_format(self, kind: int, depth: int) -> str:
        level = self._levels.get((kind, depth))
        return _get_value(level.find(f"{W}numFmt")) if level is not None else ""


def _format_number(count: int, style: str) -> str:
    text = str(count)
    if style.endswith("Letter") and 0 < count <= _MAX_AS_LETTERS:
        text = chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1)
    elif style.endswith("Roman") and 0 < count <= _MAX_AS_ROMAN:
        text = _format_roman(count)
    return text.upper() if style.startswith("upper") else text


def _format_roman(count: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        text += letters * (count // value)
        count %= value
    return text


def _get_value(element: _Element | None) -> str:
    return element.get(f"{W}val", "") if element is not None else ""


def _parse_integer(element: _Element | None, default: int, attribute: str = "val") -> int:
    try:
        return int(element.get(f"{W}{attribute}", "")[:9]) if element is not None else default
    except ValueError:
        return default


_PARAGRAPH, _TABLE, _ROW, _CELL = (f"{W}{name}" for name in ("p", "tbl", "tr", "tc"))
_MAX_COLUMNS = 1_000


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read a Word document; see registry.ParseFunction."""
    reader = _DocxReader(Package(data, options, limits))
    pieces = list(limit_pieces(_iter_whole_runs(reader.iter_pieces()), limits))
    if not pieces:
        raise DocumentEmpty("the document contains no text")
    text, blocks = assemble(pieces)
    title = reader.title or reader.package.get_title() or find_first_title(blocks)
    return ParsedText(text, blocks, title, has_lines=False)


def _iter_whole_runs(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join consecutive list items into one list, and consecutive lines of code into one block."""
    for kind, group in groupby(pieces, key=lambda piece: piece.kind):
        if kind in {"list", "code"}:
            yield Piece(kind, "\n".join(piece.text for piece in group))
        else:
            yield from group


class _DocxReader:
    def __init__(self, package: Package) -> None:
        self.package = package
        self.title: str | None = None
        self._styles = Styles(package.read_related(package.main, "styles"))
        self._numbering = Numbering(package.read_related(package.main, "numbering"))
        self._notes = {
            (kind, note.get(f"{W}id", "")): note
            for kind in ("footnote", "endnote")
            if (root := package.read_related(package.main, f"{kind}s")) is not None
            for note in root.iter(f"{W}{kind}")
        }
        self._note_count = 0
        self._due_notes: list[Piece] = []

    def iter_pieces(self) -> Iterator[Piece]:
        """Yield all blocks; the notes of a section follow at the end of the section."""
        body = self.package.read_main_xml().find(f"{W}body")
        if body is not None:
            yield from self._iter_blocks(body)
        yield from self._iter_due_notes()

    def _iter_blocks(self, container: _Element) -> Iterator[Piece]:
        for child in container:
            if child.tag == _PARAGRAPH:
                yield from self._read_paragraph(child)
            elif child.tag == _TABLE:
                yield from self._read_table(child)
            elif child.tag not in OMITTED_TAGS:  # such as a content control or an insertion
                yield from self._iter_blocks(child)

    def _read_paragraph(self, paragraph: _Element) -> Iterator[Piece]:
        properties = paragraph.find(f"{W}pPr")
        style = self._find_style(properties)
        if style.is_contents:
            return
        level = read_outline_level(properties)
        level = style.level if level is None else level
        if level:
            yield from self._iter_due_notes()
        inline = read_inline(paragraph, self._styles.hidden)
        text = self._number_notes(inline)
        if text.strip():
            marker = self._find_marker(properties, style)
            yield self._build_piece(text, level, marker, style)
        for box in inline.boxes:
            yield from self._iter_blocks(box)

    def _build_piece(
        self, text: str, level: int, marker: tuple[str, int] | None, style: Style
    ) -> Piece:
        if level:
            number = f"{marker[0]} " if marker and marker[0] not in {"", "-"} else ""
            name = clean(number + collapse_spaces(text))
            if style.is_title and self.title is None:
                self.title = shorten_heading(name)
            return Piece("heading", name, level)
        if style.is_code:
            return Piece("code", clean(text))
        if marker is not None:
            indent = "  " * marker[1]
            item = clean(text).replace("\n", f"\n{indent}  ")
            return Piece("list", f"{indent}{marker[0]} {item}" if marker[0] else f"{indent}{item}")
        return Piece("paragraph", clean(text.replace("\t", " ")))

    def _find_style(self, properties: _Element | None) -> Style:
        reference = properties.find(f"{W}pStyle") if properties is not None else None
        return self._styles.get(reference.get(f"{W}val", "") if reference is not None else "")

    def _find_marker(self, properties: _Element | None, style: Style) -> tuple[str, int] | None:
        """Return an item's marker and its depth; None if the paragraph is not an item."""
        position = read_list_position(properties) or style.list_position
        if position is None or position.number == 0:
            return None
        return self._numbering.count_next_item(position), position.depth

    def _read_table(self, table: _Element) -> Iterator[Piece]:
        rows = [list(_iter_cells(row)) for row in _iter_parts(table, _ROW) if not _is_deleted(row)]
        if len(rows) == 1 and len(rows[0]) == 1:  # such a table is a frame around text
            yield from self._iter_blocks(rows[0][0])
            return
        yield Piece("table", "\n".join(self._iter_lines(rows)))

    def _iter_lines(self, rows: list[list[_Element]]) -> Iterator[str]:
        """Yield each row of a table as a line; a cell is repeated in each row that it spans.

        A cell that spans several columns is followed by empty cells.
        """
        above: dict[int, str] = {}
        width = min(max(map(len, rows), default=0), _MAX_COLUMNS)
        for row in rows:
            column = 0
            cells: list[str] = []
            for cell in row:
                span, continues = _read_merging(cell)
                text = above.get(column, "") if continues else self._format_cell(cell)
                add_cell(cells, text, span, width)
                above[column] = get_repeated_text(text)
                column += span
            if any(cells):
                yield format_row(cells)

    def _format_cell(self, cell: _Element) -> str:
        texts: list[str] = []
        for child in cell:
            if child.tag == _PARAGRAPH:
                inline = read_inline(child, self._styles.hidden)
                texts.append(self._number_notes(inline))
                texts += map(self._format_cell, inline.boxes)
            elif child.tag == _TABLE:
                rows = [list(_iter_cells(row)) for row in _iter_parts(child, _ROW)]
                texts += (f"{line};" for line in self._iter_lines(rows))
            elif child.tag not in OMITTED_TAGS:
                texts.append(self._format_cell(child))
        return clean(collapse_spaces(" ".join(texts)))

    def _number_notes(self, inline: Inline) -> str:
        """Return a text with numbers such as [1] in place of references to notes."""
        for kind, note_id, at in inline.notes:
            # Each note is shown once, however often it is referenced.
            note = self._notes.pop((kind, note_id), None)
            paragraphs = () if note is None else note.iter(_PARAGRAPH)
            if text := collapse_spaces(
                " ".join(read_inline(p, self._styles.hidden).text for p in paragraphs)
            ):
                self._note_count += 1
                inline.texts[at] = f"[{self._note_count}]"
                self._due_notes.append(Piece("paragraph", clean(f"[{self._note_count}] {text}")))
        return inline.text

    def _iter_due_notes(self) -> Iterator[Piece]:
        yield from self._due_notes
        self._due_notes.clear()


def _iter_parts(node: _Element, tag: str) -> Iterator[_Element]:
    """Yield the rows of a table, or the cells of a row, including those in content controls."""
    for child in node:
        if child.tag == tag:
            yield child
        elif child.tag not in OMITTED_TAGS and child.tag not in {_PARAGRAPH, _TABLE}:
            yield from _iter_parts(child, tag)


def _iter_cells(row: _Element) -> Iterator[_Element]:
    return _iter_parts(row, _CELL)


def _is_deleted(row: _Element) -> bool:
    properties = row.find(f"{W}trPr")
    return properties is not None and properties.find(f"{W}del") is not None


def _read_merging(cell: _Element) -> tuple[int, bool]:
    """Return how many columns a cell spans, and whether it continues the cell above it."""
    properties = cell.find(f"{W}tcPr")
    if properties is None:
        return 1, False
    span, merge = properties.find(f"{W}gridSpan"), properties.find(f"{W}vMerge")
    columns = span.get(f"{W}val", "1")[:4] if span is not None else "1"
    continues = merge is not None and merge.get(f"{W}val", "continue") == "continue"
    return (min(int(columns), _MAX_COLUMNS) if columns.isdecimal() else 1), continues
