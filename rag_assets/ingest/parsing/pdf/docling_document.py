"""Convert docling's documents to pieces of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rag_assets.ingest.parsing.pieces import DEEPEST_LEVEL, Piece, clean

if TYPE_CHECKING:
    from docling_core.types.doc.document import DoclingDocument

_INDENT = " "  # two for each level, since docling counts a list and its item as a level each


def pieces_of(document: DoclingDocument) -> Iterator[Piece]:
    """Yield the pieces of a document in reading order, without running headers and footers.

    A title is a heading of the first level, and section headers are below it.
    """
    items = document.iterate_items()
    for listed, run in groupby(items, key=lambda found: _is_list_item(found[0])):
        if listed:
            yield from _lists(run)
        else:
            yield from (piece for item, _ in run for piece in _piece(item, document))


def _piece(item: Any, document: DoclingDocument) -> Iterator[Piece]:
    page = _page(item)
    match item.label:
        case "table" | "document_index":
            yield Piece("table", _table(item, document), page=page)
        case "title":
            yield Piece("heading", clean(item.text), 1, page)
        case "section_header":
            yield Piece("heading", clean(item.text), min(item.level + 1, DEEPEST_LEVEL), page)
        case "code":
            yield Piece("code", clean(item.text), page=page)
        case _ if text := clean(getattr(item, "text", "")):
            yield Piece("paragraph", text, page=page)


def _lists(run: Iterable[tuple[Any, int]]) -> Iterator[Piece]:
    """Yield a run of list items as one list per page; deeper items are indented."""
    for page, items in groupby(run, key=lambda found: _page(found[0])):
        found = list(items)
        outermost = min(depth for _, depth in found)
        lines = (
            f"{_INDENT * (depth - outermost)}{item.marker or '-'} {clean(item.text)}"
            for item, depth in found
            if clean(item.text)
        )
        yield Piece("list", "\n".join(lines), page=page)


def _table(item: Any, document: DoclingDocument) -> str:
    """Return each row on a line; a cell that spans several cells is only in the first of these."""
    lines = []
    for number, row in enumerate(item.data.grid):
        cells = (
            clean(cell.text)
            if (cell.start_row_offset_idx, cell.start_col_offset_idx) == (number, column)
            else ""
            for column, cell in enumerate(row)
        )
        lines.append(" | ".join(" ".join(cell.split()) for cell in cells).strip())
    caption = clean(item.caption_text(document))
    return "\n".join(filter(None, [caption, *lines]))


def _is_list_item(item: Any) -> bool:
    return bool(item.label == "list_item")


def _page(item: Any) -> int | None:
    return item.prov[0].page_no if getattr(item, "prov", None) else None
