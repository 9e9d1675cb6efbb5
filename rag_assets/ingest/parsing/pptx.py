"""PPTX: each slide's title, text, tables and notes, in the order of the slides.

The XML itself is parsed, without a library for presentations
(docs/decisions/10-document-types-and-readers.md). Hidden slides, dates, footers, slide numbers and
charts are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from rag_assets.common.errors import DocumentEmpty
from rag_assets.ingest.parsing.blocks import (
    Piece,
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
from rag_assets.ingest.parsing.ooxml import R_ID, Package
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions

if TYPE_CHECKING:
    from lxml.etree import _Element


A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_RUNS = frozenset({f"{A}r", f"{A}fld"})
_BREAK = f"{A}br"
_NUMBERED = f"{A}buAutoNum"
_BULLETS = frozenset({f"{A}buChar", f"{A}buBlip", _NUMBERED})
_NO_BULLET = f"{A}buNone"
_MAX_LEVEL = 8


def get_body_text(body: _Element) -> str:
    """Return all paragraphs of a text body, each on a line, without blank paragraphs."""
    return clean("\n".join(filter(str.strip, map(_get_text, body.iter(f"{A}p")))))


def iter_pieces(body: _Element, *, is_list: bool) -> Iterator[Piece]:
    """Yield the paragraphs of a text body; consecutive paragraphs with bullets form one list."""
    paragraphs = [(p, text) for p in body.iter(f"{A}p") if (text := clean(_get_text(p)))]
    for bulleted, group in groupby(
        paragraphs, key=lambda item: _has_bullet(item[0], default=is_list)
    ):
        if bulleted:
            yield Piece("list", "\n".join(_iter_items(list(group))))
        else:
            yield from (Piece("paragraph", text) for _, text in group)


def iter_table_lines(table: _Element) -> Iterator[str]:
    """Yield each row of a table as a line; a cell is repeated in each row that it spans."""
    above: dict[int, str] = {}
    for row in table.iter(f"{A}tr"):
        cells: list[str] = []
        for column, cell in enumerate(row.iter(f"{A}tc")):
            if _is_true(cell.get("hMerge")):
                cells.append("")
            elif _is_true(cell.get("vMerge")):
                cells.append(above.get(column, ""))
            else:
                cells.append(" ".join(get_body_text(cell).split()))
                above[column] = get_repeated_text(cells[-1])
        if any(cells):
            yield format_row(cells)


def _iter_items(paragraphs: list[tuple[_Element, str]]) -> Iterator[str]:
    counts: dict[int, int] = {}
    for paragraph, text in paragraphs:
        depth, indent = _get_depth(paragraph), "  " * _get_depth(paragraph)
        counts = {level: count for level, count in counts.items() if level <= depth}
        marker = "-"
        if any(mark.tag == _NUMBERED for mark in _list_properties(paragraph)):
            counts[depth] = counts.get(depth, 0) + 1
            marker = f"{counts[depth]}."
        yield f"{indent}{marker} " + text.replace("\n", f"\n{indent}  ")


def _get_text(paragraph: _Element) -> str:
    parts: list[str] = []
    for child in paragraph:
        if child.tag in _RUNS:
            text = child.findtext(f"{A}t") or ""
            properties = child.find(f"{A}rPr")
            is_raised = properties is not None and properties.get("baseline", "0")[:1] not in "-0"
            parts += [get_power_mark(parts, text) if is_raised else "", text]
        elif child.tag == _BREAK:
            parts.append("\n")
        else:  # such as a formula
            parts += (t.text or "" for t in child.iter("{*}t"))
    return "".join(parts).replace("\v", "\n")


def _has_bullet(paragraph: _Element, *, default: bool) -> bool:
    marks = {mark.tag for mark in _list_properties(paragraph)}
    return bool(marks & _BULLETS) or (default and _NO_BULLET not in marks)


def _get_depth(paragraph: _Element) -> int:
    properties = paragraph.find(f"{A}pPr")
    level = properties.get("lvl", "0") if properties is not None else "0"
    return min(int(level[:3]), _MAX_LEVEL) if level[:3].isdecimal() else 0


def _list_properties(paragraph: _Element) -> list[_Element]:
    properties = paragraph.find(f"{A}pPr")
    return [] if properties is None else list(properties)


def _is_true(value: str | None) -> bool:
    return value in {"1", "true", "on"}


_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_P14 = "{http://schemas.microsoft.com/office/powerpoint/2010/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_DIAGRAM_DATA = R_ID.replace("}id", "}dm")
_TITLES = frozenset({"title", "ctrTitle"})
_OMITTED_PLACEHOLDERS = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})
_LISTS = frozenset({"body", "obj"})  # placeholders whose paragraphs are list items
_GROUPS = frozenset({f"{_P}grpSp", f"{_MC}AlternateContent", f"{_MC}Choice"})
_NO_TITLE = "PowerPoint Presentation"  # PowerPoint's default titles


@dataclass(frozen=True, slots=True)
class _Slide:
    """A slide: its number from 1, its part, and the name of the section that it starts, if any."""

    number: int
    part: str
    section: str | None = None


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read a presentation; see registry.ParseFunction."""
    package = Package(data, options, limits)
    root = package.read_main_xml()
    listed = [(s.get("id", ""), s.get(R_ID, "")) for s in root.iter(f"{_P}sldId")]
    limits.check_pages(len(listed))
    sections = _find_sections(root)
    slides = list(_iter_slides(package, listed, sections))
    level = 2 if sections else 1
    pieces = list(limit_pieces((p for s in slides for p in _read_slide(package, s, level)), limits))
    if not pieces:
        raise DocumentEmpty("the presentation has no text on any visible slide")
    text, blocks = assemble(pieces)
    opening = [p.text for p in pieces if p.slide == pieces[0].slide and p.level == level]
    title = _find_title(package, opening) or find_first_title(blocks)
    return ParsedText(text, blocks, title, pages=len(listed), has_lines=False)


def _find_title(package: Package, opening: list[str]) -> str | None:
    """Return the title of the first slide with text, or else the title in the properties."""
    if opening and opening[0] != "Slide 1":
        return shorten_heading(opening[0])
    title = package.get_title()
    return None if title == _NO_TITLE else title


def _find_sections(root: _Element) -> dict[str, str]:
    """Return names of sections by the id of the first slide; none for a single section."""
    names: dict[str, str] = {}
    for section in root.iter(f"{_P14}section"):
        first = next(section.iter(f"{_P14}sldId"), None)
        name = clean(" ".join(section.get("name", "").split()))
        if first is not None and name:
            names[first.get("id", "")] = name
    return names if len(names) > 1 else {}


def _iter_slides(
    package: Package, listed: list[tuple[str, str]], sections: dict[str, str]
) -> Iterator[_Slide]:
    parts = {r.id: r.part for r in package.list_related(package.main) if r.kind == "slide"}
    for number, (slide_id, relation) in enumerate(listed, start=1):
        if relation in parts:
            yield _Slide(number, parts[relation], sections.get(slide_id))


def _read_slide(package: Package, slide: _Slide, level: int) -> Iterator[Piece]:
    if slide.section is not None:
        yield Piece("heading", slide.section, 1, slide=slide.number)
    root = package.read_xml(slide.part)
    if root is None or root.get("show") in {"0", "false"}:
        return
    shapes = list(_iter_shapes(root))
    title = next((t for s in shapes if _get_role(s) in _TITLES and (t := _get_shape_text(s))), "")
    content = [
        p for s in shapes if _get_role(s) not in _TITLES for p in _read_shape(package, slide, s)
    ]
    content = [piece for piece in (*content, *_read_notes(package, slide)) if piece.text]
    if title or content:
        name = " ".join(title.split()) or f"Slide {slide.number}"
        yield Piece("heading", name, level, slide=slide.number)
    yield from (replace(piece, slide=slide.number) for piece in content)


def _iter_shapes(node: _Element) -> Iterator[_Element]:
    """Yield shapes and frames in drawing order, including those in groups."""
    tree = node.find(f"{_P}cSld/{_P}spTree") if node.tag in {f"{_P}sld", f"{_P}notes"} else node
    for child in () if tree is None else tree:
        if child.tag in {f"{_P}sp", f"{_P}graphicFrame"}:
            yield child
        elif child.tag in _GROUPS:
            yield from _iter_shapes(child)


def _get_role(shape: _Element) -> str:
    """Return the placeholder type of a shape; "" if it is not a placeholder."""
    placeholder = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return placeholder.get("type", "obj") if placeholder is not None else ""


def _get_shape_text(shape: _Element) -> str:
    body = shape.find(f"{_P}txBody")
    return get_body_text(body) if body is not None else ""


def _read_shape(package: Package, slide: _Slide, shape: _Element) -> Iterator[Piece]:
    role = _get_role(shape)
    if role in _OMITTED_PLACEHOLDERS:
        return
    body = shape.find(f"{_P}txBody")
    if body is not None:
        yield from iter_pieces(body, is_list=role in _LISTS)
    for table in shape.iter(f"{A}tbl"):
        yield Piece("table", "\n".join(iter_table_lines(table)))
    for diagram in shape.iter(_DIAGRAM):
        yield from _read_diagram(package, slide, diagram.get(_DIAGRAM_DATA, ""))


def _read_diagram(package: Package, slide: _Slide, relation: str) -> Iterator[Piece]:
    """Yield the text of a SmartArt graphic as a list."""
    part = next((r.part for r in package.list_related(slide.part) if r.id == relation), None)
    root = package.read_xml(part) if part else None
    texts = [] if root is None else map(get_body_text, root.iter("{*}t"))
    yield Piece("list", "\n".join("- " + " ".join(text.split()) for text in texts if text))


def _read_notes(package: Package, slide: _Slide) -> Iterator[Piece]:
    root = package.read_related(slide.part, "notesSlide")
    shapes = [] if root is None else [s for s in _iter_shapes(root) if _get_role(s) == "body"]
    texts = [text for shape in shapes if (text := _get_shape_text(shape))]
    if texts:
        yield Piece("paragraph", "Notes: " + "\n".join(texts))
