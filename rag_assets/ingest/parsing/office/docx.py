"""DOCX: headings, paragraphs, lists, tables, notes and text boxes, in the order of the text.

The XML itself is parsed, without a library for Word documents
(docs/decisions/10-document-types-and-readers.md). Headers, footers, comments, tables of contents,
deleted and hidden text are left out. Page numbers are unknown, because only a program that lays out
the document can determine them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from rag_assets.common.errors import DocumentEmpty
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.office.docx_styles import (
    Numbering,
    Style,
    Styles,
    list_place,
    outline_level,
)
from rag_assets.ingest.parsing.office.docx_text import LEFT_OUT, Inline, W, inline, on_one_line
from rag_assets.ingest.parsing.office.ooxml import Package
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.outline import first_title, heading_name
from rag_assets.ingest.parsing.pieces import Piece, assembled, bounded, clean
from rag_assets.ingest.parsing.tables import on_a_line, repeated

if TYPE_CHECKING:
    from lxml.etree import _Element

_PARAGRAPH, _TABLE, _ROW, _CELL = (f"{W}{name}" for name in ("p", "tbl", "tr", "tc"))
_MOST_COLUMNS = 1_000


def warm_up() -> None:
    """Load the XML parser."""
    from lxml import etree  # noqa: F401


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read a Word document; see registry.ParseFunction.

    Raises:
        DocumentRejected: the document is encrypted, damaged, too long, or has no text.
    """
    reader = _Reader(Package(data, options, limits))
    pieces = list(bounded(_whole_runs(reader.pieces()), limits))
    if not pieces:
        raise DocumentEmpty("the document contains no text")
    text, blocks = assembled(pieces)
    title = reader.title or reader.package.title() or first_title(blocks)
    return ParsedText(text, blocks, title, has_lines=False)


def _whole_runs(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Join consecutive list items into one list, and consecutive lines of code into one block."""
    for kind, group in groupby(pieces, key=lambda piece: piece.kind):
        if kind in {"list", "code"}:
            yield Piece(kind, "\n".join(piece.text for piece in group))
        else:
            yield from group


class _Reader:
    def __init__(self, package: Package) -> None:
        self.package = package
        self.title: str | None = None
        self._styles = Styles(package.relative(package.main, "styles"))
        self._numbering = Numbering(package.relative(package.main, "numbering"))
        self._notes = {
            (kind, note.get(f"{W}id", "")): note
            for kind in ("footnote", "endnote")
            if (root := package.relative(package.main, f"{kind}s")) is not None
            for note in root.iter(f"{W}{kind}")
        }
        self._noted = 0
        self._due: list[Piece] = []

    def pieces(self) -> Iterator[Piece]:
        """Yield all blocks; the notes of a section follow at the end of the section."""
        body = self.package.main_xml().find(f"{W}body")
        if body is not None:
            yield from self._blocks(body)
        yield from self._due_notes()

    def _blocks(self, container: _Element) -> Iterator[Piece]:
        for child in container:
            if child.tag == _PARAGRAPH:
                yield from self._paragraph(child)
            elif child.tag == _TABLE:
                yield from self._table(child)
            elif child.tag not in LEFT_OUT:  # such as a content control or an insertion
                yield from self._blocks(child)

    def _paragraph(self, paragraph: _Element) -> Iterator[Piece]:
        properties = paragraph.find(f"{W}pPr")
        style = self._style(properties)
        if style.is_contents:
            return
        level = outline_level(properties)
        level = style.level if level is None else level
        if level:
            yield from self._due_notes()
        found = inline(paragraph)
        text = self._with_notes(found)
        if text.strip():
            marker = self._marker(properties, style)
            yield self._piece(text, level, marker, style)
        for box in found.boxes:
            yield from self._blocks(box)

    def _piece(self, text: str, level: int, marker: tuple[str, int] | None, style: Style) -> Piece:
        if level:
            number = f"{marker[0]} " if marker and marker[0] not in {"", "-"} else ""
            name = clean(number + on_one_line(text))
            if style.is_title and self.title is None:
                self.title = heading_name(name)
            return Piece("heading", name, level)
        if style.is_code:
            return Piece("code", clean(text))
        if marker is not None:
            indent = "  " * marker[1]
            item = clean(text).replace("\n", f"\n{indent}  ")
            return Piece("list", f"{indent}{marker[0]} {item}" if marker[0] else f"{indent}{item}")
        return Piece("paragraph", clean(text.replace("\t", " ")))

    def _style(self, properties: _Element | None) -> Style:
        named = properties.find(f"{W}pStyle") if properties is not None else None
        return self._styles.of(named.get(f"{W}val", "") if named is not None else "")

    def _marker(self, properties: _Element | None, style: Style) -> tuple[str, int] | None:
        """Return an item's marker and its depth; None if the paragraph is not an item."""
        place = list_place(properties) or style.place
        if place is None or place.number == 0:
            return None
        return self._numbering.marker(place), place.depth

    def _table(self, table: _Element) -> Iterator[Piece]:
        rows = [list(_cells(row)) for row in _parts(table, _ROW) if not _is_deleted(row)]
        if len(rows) == 1 and len(rows[0]) == 1:  # such a table is a frame around text
            yield from self._blocks(rows[0][0])
            return
        yield Piece("table", "\n".join(self._lines(rows)))

    def _lines(self, rows: list[list[_Element]]) -> Iterator[str]:
        """Yield each row on a line; a cell that spans several rows is repeated in each of them."""
        above: dict[int, str] = {}
        for row in rows:
            column = 0
            shown: list[str] = []
            for cell in row:
                span, continues = _merging(cell)
                shown.append(above.get(column, "") if continues else self._cell(cell))
                above[column] = repeated(shown[-1])
                column += span
            if any(shown):
                yield on_a_line(shown)

    def _cell(self, cell: _Element) -> str:
        texts: list[str] = []
        for child in cell:
            if child.tag == _PARAGRAPH:
                found = inline(child)
                texts.append(self._with_notes(found))
                texts += map(self._cell, found.boxes)
            elif child.tag == _TABLE:
                rows = [list(_cells(row)) for row in _parts(child, _ROW)]
                texts += (f"{line};" for line in self._lines(rows))
            elif child.tag not in LEFT_OUT:
                texts.append(self._cell(child))
        return clean(on_one_line(" ".join(texts)))

    def _with_notes(self, found: Inline) -> str:
        """Return the text with numbers in place of note references; notes follow the section."""
        for kind, note_id, at in found.notes:
            # Each note is shown once, however often it is referenced.
            note = self._notes.pop((kind, note_id), None)
            paragraphs = () if note is None else note.iter(_PARAGRAPH)
            if text := on_one_line(" ".join(inline(p).text for p in paragraphs)):
                self._noted += 1
                found.texts[at] = f"[{self._noted}]"
                self._due.append(Piece("paragraph", clean(f"[{self._noted}] {text}")))
        return found.text

    def _due_notes(self) -> Iterator[Piece]:
        yield from self._due
        self._due.clear()


def _parts(node: _Element, tag: str) -> Iterator[_Element]:
    """Yield the rows of a table or the cells of a row, including those in content controls."""
    for child in node:
        if child.tag == tag:
            yield child
        elif child.tag not in LEFT_OUT and child.tag not in {_PARAGRAPH, _TABLE}:
            yield from _parts(child, tag)


def _cells(row: _Element) -> Iterator[_Element]:
    return _parts(row, _CELL)


def _is_deleted(row: _Element) -> bool:
    properties = row.find(f"{W}trPr")
    return properties is not None and properties.find(f"{W}del") is not None


def _merging(cell: _Element) -> tuple[int, bool]:
    """Return how many columns a cell spans, and whether it continues the cell above."""
    properties = cell.find(f"{W}tcPr")
    if properties is None:
        return 1, False
    span, merge = properties.find(f"{W}gridSpan"), properties.find(f"{W}vMerge")
    columns = span.get(f"{W}val", "1")[:4] if span is not None else "1"
    continues = merge is not None and merge.get(f"{W}val", "continue") == "continue"
    return (min(int(columns), _MOST_COLUMNS) if columns.isdecimal() else 1), continues
