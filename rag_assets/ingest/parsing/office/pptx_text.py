"""Text bodies and tables of DrawingML, the content of shapes on slides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from rag_assets.ingest.parsing.pieces import Piece, clean
from rag_assets.ingest.parsing.tables import on_a_line, repeated

if TYPE_CHECKING:
    from lxml.etree import _Element

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_RUNS = frozenset({f"{A}r", f"{A}fld"})
_BREAK = f"{A}br"
_NUMBERED = f"{A}buAutoNum"
_BULLETS = frozenset({f"{A}buChar", f"{A}buBlip", _NUMBERED})
_NO_BULLET = f"{A}buNone"
_DEEPEST = 8


def text_of(body: _Element) -> str:
    """Return all paragraphs of a text body, each on a line."""
    return clean("\n".join(filter(str.strip, map(_text, body.iter(f"{A}p")))))


def blocks_of(body: _Element, *, is_list: bool) -> Iterator[Piece]:
    """Yield the paragraphs of a text body; consecutive paragraphs with bullets form one list.

    Args:
        body: text body of a shape.
        is_list: whether paragraphs have bullets by default.
    """
    shown = [(p, text) for p in body.iter(f"{A}p") if (text := clean(_text(p)))]
    for bulleted, group in groupby(shown, key=lambda item: _has_bullet(item[0], default=is_list)):
        if bulleted:
            yield Piece("list", "\n".join(_items(list(group))))
        else:
            yield from (Piece("paragraph", text) for _, text in group)


def table_lines(table: _Element) -> Iterator[str]:
    """Yield each row on one line; a cell that spans several rows is repeated in each of them."""
    above: dict[int, str] = {}
    for row in table.iter(f"{A}tr"):
        shown: list[str] = []
        for column, cell in enumerate(row.iter(f"{A}tc")):
            if _is_on(cell.get("hMerge")):
                continue
            if _is_on(cell.get("vMerge")):
                shown.append(above.get(column, ""))
            else:
                shown.append(" ".join(text_of(cell).split()))
                above[column] = repeated(shown[-1])
        if any(shown):
            yield on_a_line(shown)


def _items(paragraphs: list[tuple[_Element, str]]) -> Iterator[str]:
    counts: dict[int, int] = {}
    for paragraph, text in paragraphs:
        depth, indent = _depth(paragraph), "  " * _depth(paragraph)
        counts = {level: count for level, count in counts.items() if level <= depth}
        marker = "-"
        if any(mark.tag == _NUMBERED for mark in _properties(paragraph)):
            counts[depth] = counts.get(depth, 0) + 1
            marker = f"{counts[depth]}."
        yield f"{indent}{marker} " + text.replace("\n", f"\n{indent}  ")


def _text(paragraph: _Element) -> str:
    parts: list[str] = []
    for child in paragraph:
        if child.tag in _RUNS:
            parts.append(child.findtext(f"{A}t") or "")
        elif child.tag == _BREAK:
            parts.append("\n")
        else:  # such as a formula
            parts += (t.text or "" for t in child.iter("{*}t"))
    return "".join(parts).replace("\v", "\n")


def _has_bullet(paragraph: _Element, *, default: bool) -> bool:
    marks = {mark.tag for mark in _properties(paragraph)}
    return bool(marks & _BULLETS) or (default and _NO_BULLET not in marks)


def _depth(paragraph: _Element) -> int:
    found = paragraph.find(f"{A}pPr")
    level = found.get("lvl", "0") if found is not None else "0"
    return min(int(level[:3]), _DEEPEST) if level[:3].isdecimal() else 0


def _properties(paragraph: _Element) -> list[_Element]:
    found = paragraph.find(f"{A}pPr")
    return [] if found is None else list(found)


def _is_on(value: str | None) -> bool:
    return value in {"1", "true", "on"}
