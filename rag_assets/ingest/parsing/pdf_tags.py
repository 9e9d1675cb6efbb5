"""Tagged PDF: headings, paragraphs, lists and tables as the file itself states them.

Browsers and office programs write a tree of elements, whose leaves refer to marked parts of a page.
The tree gives the order of the text and the cells of tables, which an analysis of the layout can
only guess. Headers and footers are not in the tree.
"""

from __future__ import annotations

import ctypes
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rag_assets.ingest.parsing.blocks import Piece, clean, format_row
from rag_assets.ingest.parsing.pdf_marks import read_characters

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

_MIN_TAGGED_SHARE: Final = 0.95
"""Minimum share of a document's text that is in the tree; with less, the tree is not used."""
_MAX_DEPTH: Final = 100
_NAME_BYTES: Final = 256
_HEADING: Final = re.compile(r"H([1-6]?)|Title")
_PARAGRAPHS: Final = frozenset(
    {"P", "H", "H1", "H2", "H3", "H4", "H5", "H6", "Title", "Caption", "Note", "FENote"}
)
_BLOCKS: Final = frozenset(
    {*_PARAGRAPHS, "L", "LI", "Table", "TR", "Sect", "Part", "Art", "BlockQuote", "TOC"}
)
_OMITTED_TYPES: Final = frozenset({"Artifact", "TOC"})
_ARTIFACT, _NO_MARK = -2, -1
_SPAN: Final = 64
_MARKER: Final = re.compile(r"[^\w\s]|\(?(?:[0-9]{1,4}|[A-Za-z]|[ivx]{1,6})[.)]")
_UNSPACED: Final = "\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
_HYPHEN_END: Final = re.compile(r"[\xad\ufffe]\s*")
_UNSPACED_END: Final = re.compile(rf"(?<=[{_UNSPACED}])\s*\n\s*(?=[{_UNSPACED}])")


@dataclass(slots=True)
class _Element:
    """An element of the tree: its standard type, and its texts and inner elements."""

    type: str
    children: list[_Element | str] = field(default_factory=list)

    @property
    def inner(self) -> Iterator[_Element]:
        return (child for child in self.children if isinstance(child, _Element))

    def has_blocks(self) -> bool:
        return any(inner.type in _BLOCKS or inner.has_blocks() for inner in self.inner)


def read_tagged_pages(document: PdfDocument) -> list[tuple[int, list[Piece]]]:
    """Return the number and the pieces of each page; [] if too much of the text is untagged.

    [] for forms, because the values of their fields are untagged.
    """
    from pypdfium2 import PdfiumError
    from pypdfium2.raw import FORMTYPE_NONE, FPDF_GetFormType, FPDFCatalog_IsTagged

    if not FPDFCatalog_IsTagged(document) or FPDF_GetFormType(document) != FORMTYPE_NONE:
        return []
    pages: list[tuple[int, list[Piece]]] = []
    tagged = total = 0
    try:
        for number, page in enumerate(document, start=1):
            texts, others = _read_marked_texts(page)
            unread = dict(texts)
            seen: set[int | None] = set()
            with _open_tree(page) as roots:
                elements = [_read_element(root, unread, seen) for root in roots]
            page.close()
            size, unread_size = (sum(map(_count_visible, t.values())) for t in (texts, unread))
            tagged += size - unread_size
            total += size + others
            pieces = (piece for element in elements for piece in _iter_pieces(element, number))
            pages.append((number, [piece for piece in pieces if piece.text]))
    except PdfiumError:  # a page is damaged
        return []
    return pages if tagged and tagged >= _MIN_TAGGED_SHARE * total else []


def _read_marked_texts(page: PdfPage) -> tuple[dict[int, str], int]:
    """Return the text of each marked part by its id, and the number of other visible characters.

    Artifacts, such as headers and footers, are not counted.
    """
    parts: defaultdict[int, list[str]] = defaultdict(list)
    others, mark = 0, _ARTIFACT
    text_page = page.get_textpage()
    try:
        characters = zip(read_characters(text_page), _list_marks(text_page), strict=True)
        for character, own_mark in characters:
            mark = mark if own_mark is None else own_mark
            if mark >= 0:
                parts[mark].append(character)
            elif mark == _NO_MARK:
                others += not character.isspace()
    finally:
        text_page.close()
    return {mark: _join_characters(part) for mark, part in parts.items()}, others


def _join_characters(characters: list[str]) -> str:
    """Return the text of these characters; pairs of surrogates become one character."""
    text = "".join(characters).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return text.replace("\r\n", "\n")


def _list_marks(text_page: PdfTextPage) -> list[int | None]:
    """Return the mark of each character; None for blanks and line ends that pdfium has added.

    The characters of one drawn text follow each other. So if two characters belong to the same
    drawn text, those between them do as well.
    """
    from pypdfium2.raw import FPDFText_GetTextObject

    count = text_page.count_chars()
    marks: list[int | None] = [None] * count
    known: dict[int | None, int] = {}

    def read_mark(index: int) -> int | None:
        drawn = FPDFText_GetTextObject(text_page, index)
        if not drawn:
            return None
        address = _get_address(drawn)
        if address not in known:
            known[address] = _get_mark(drawn)
        marks[index] = known[address]
        return address

    spans = [
        (start, read_mark(start), end, read_mark(end))
        for start in range(0, count, _SPAN)
        for end in [min(start + _SPAN, count) - 1]
    ]
    while spans:
        start, first, end, last = spans.pop()
        if first is not None and first == last:
            marks[start:end] = [marks[start]] * (end - start)
        elif end - start > 1:
            middle = (start + end) // 2
            address = read_mark(middle)
            spans += [(start, first, middle, address), (middle, address, end, last)]
    return marks


def _get_mark(drawn: Any) -> int:
    """Return the id of the marked part that contains a text, _ARTIFACT or _NO_MARK."""
    from pypdfium2.raw import (
        FPDFPageObj_CountMarks,
        FPDFPageObj_GetMark,
        FPDFPageObj_GetMarkedContentID,
        FPDFPageObjMark_GetName,
    )

    if (mark := FPDFPageObj_GetMarkedContentID(drawn)) >= 0:
        return int(mark)
    buffer = ctypes.create_string_buffer(_NAME_BYTES)
    name, size = ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), ctypes.c_ulong()
    for index in range(FPDFPageObj_CountMarks(drawn)):
        FPDFPageObjMark_GetName(FPDFPageObj_GetMark(drawn, index), name, _NAME_BYTES, size)
        if _decode_name(buffer, size.value) == "Artifact":
            return _ARTIFACT
    return _NO_MARK


def _get_address(handle: Any) -> int | None:
    return ctypes.c_void_p.from_buffer(handle).value


def _decode_name(buffer: ctypes.Array[ctypes.c_char], size: int) -> str:
    return bytes(buffer.raw[:size]).decode("utf-16-le", "replace").rstrip("\0")


@contextmanager
def _open_tree(page: PdfPage) -> Iterator[list[Any]]:
    """Open the tree of a page, and return its roots."""
    from pypdfium2.raw import (
        FPDF_StructTree_Close,
        FPDF_StructTree_CountChildren,
        FPDF_StructTree_GetChildAtIndex,
        FPDF_StructTree_GetForPage,
    )

    tree = FPDF_StructTree_GetForPage(page)
    if not tree:
        yield []
        return
    try:
        roots = range(FPDF_StructTree_CountChildren(tree))
        yield [root for n in roots if (root := FPDF_StructTree_GetChildAtIndex(tree, n))]
    finally:
        FPDF_StructTree_Close(tree)


def _read_element(
    handle: Any, unread: dict[int, str], seen: set[int | None], depth: int = 0
) -> _Element:
    """Return an element with the texts of its marked parts.

    Args:
        unread: texts of marked parts; those that are read are removed.
        seen: addresses of elements. An element that is listed twice is read once: 20 levels of
            elements that list their child twice would take a million reads.
    """
    from pypdfium2.raw import (
        FPDF_StructElement_CountChildren,
        FPDF_StructElement_GetChildAtIndex,
        FPDF_StructElement_GetChildMarkedContentID,
        FPDF_StructElement_GetType,
    )

    name = ctypes.create_string_buffer(_NAME_BYTES)
    element = _Element(_decode_name(name, FPDF_StructElement_GetType(handle, name, _NAME_BYTES)))
    children = range(FPDF_StructElement_CountChildren(handle)) if depth < _MAX_DEPTH else ()
    for index in children:
        # The id is -1 for an inner element, and for a part on another page.
        mark = FPDF_StructElement_GetChildMarkedContentID(handle, index)
        if mark in unread:
            element.children.append(unread.pop(mark))
            continue
        child = FPDF_StructElement_GetChildAtIndex(handle, index)
        if child and (address := _get_address(child)) not in seen:
            seen.add(address)
            element.children.append(_read_element(child, unread, seen, depth + 1))
    return element


def _iter_pieces(element: _Element, page: int) -> Iterator[Piece]:
    heading = _HEADING.fullmatch(element.type)
    if element.type in _OMITTED_TYPES:
        return
    if heading:
        yield Piece("heading", _read_on_one_line(element), int(heading[1] or 1), page)
    elif element.type == "L":
        yield Piece("list", "\n".join(_iter_items(element)), 0, page)
    elif element.type == "Table":
        for caption in element.inner:
            if caption.type == "Caption":
                yield Piece("paragraph", _read_on_one_line(caption), 0, page)
        rows = (format_row(cells) for cells in _iter_rows(element))
        yield Piece("table", "\n".join(filter(None, rows)), 0, page)
    else:
        yield from _iter_paragraphs(element, page)


def _iter_paragraphs(element: _Element, page: int) -> Iterator[Piece]:
    """Yield the text between the blocks of an element, and these blocks, in order."""
    # Other elements may contain code, so their lines are kept.
    read = _read_on_one_line if element.type in _PARAGRAPHS else _read_lines
    text = _Element(element.type)
    for child in (*element.children, _Element("Sect")):
        is_block = isinstance(child, _Element) and (child.type in _BLOCKS or child.has_blocks())
        if not is_block:
            text.children.append(child)
            continue
        yield Piece("paragraph", read(text), 0, page)
        text.children.clear()
        if isinstance(child, _Element) and child.children:
            yield from _iter_pieces(child, page)


def _iter_rows(element: _Element) -> Iterator[list[str]]:
    for inner in element.inner:
        if inner.type == "TR":
            yield [_read_on_one_line(cell) for cell in inner.inner]
        else:
            yield from _iter_rows(inner)


def _iter_items(element: _Element, indent: str = "") -> Iterator[str]:
    """Yield each item of a list on a line, with nested items indented below it."""
    for inner in element.inner:
        if inner.type == "L":
            yield from _iter_items(inner, f"{indent}  ")
        elif inner.type == "LI":
            if text := _read_on_one_line(inner, without="L"):
                yield f"{indent}{'' if _MARKER.match(text) else '- '}{text}"
            yield from _iter_items(inner, indent)
        else:
            yield from _iter_items(inner, indent)


def _read_on_one_line(element: _Element, without: str = "") -> str:
    """Return the text of an element; inner elements of the type `without` are left out."""
    return clean(" ".join(_join_lines(_iter_texts(element, without)).split()))


def _join_lines(texts: Iterable[str]) -> str:
    """Return a text without the hyphens at line ends, and the line ends of unspaced scripts."""
    text = _HYPHEN_END.sub(
        lambda end: "" if end.string[end.end() : end.end() + 1].islower() else "-", "".join(texts)
    )
    return _UNSPACED_END.sub("", text)


def _read_lines(element: _Element) -> str:
    lines = _join_lines(_iter_texts(element, "")).split("\n")
    return clean("\n".join(filter(None, (line.rstrip() for line in lines))))


def _iter_texts(element: _Element, without: str) -> Iterable[str]:
    for child in element.children:
        if isinstance(child, str):
            yield child
        elif child.type != without and child.type not in _OMITTED_TYPES:
            yield from _iter_texts(child, without)
            if child.type in _BLOCKS or child.type == "Lbl":
                yield "\n"


def _count_visible(text: str) -> int:
    return sum(map(len, text.split()))
