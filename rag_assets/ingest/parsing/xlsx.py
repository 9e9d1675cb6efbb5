"""XLSX: each sheet is a section, its header a heading above its rows, each row a block.

calamine reads the last computed values of the cells, without formulas and macros. It gets a copy
of the workbook that contains only sheets, styles and texts. Hidden sheets are omitted.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import chain, compress
from typing import TYPE_CHECKING, TypeAlias

from rag_assets.common.errors import DocumentEmpty, DocumentRejected, DocumentTooLarge
from rag_assets.ingest.parsing.blocks import (
    Piece,
    assemble,
    clean,
    format_row,
    get_repeated_text,
    limit_pieces,
    names_columns,
)
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.ooxml import Package
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

_NEEDED = frozenset({"worksheet", "sharedStrings", "styles"})
_PACKAGE_PARTS = ("[Content_Types].xml", "_rels/.rels")
_LARGEST_WHOLE = 1e15  # above it, even spreadsheets do not keep all digits
# References of any cell, and of a filled cell. Repetitions are bounded, so that no tag is scanned
# twice.
_REFERENCE = re.compile(rb"""r\s{0,9}=\s{0,9}["']([A-Za-z]{1,3})([0-9]{1,7})["']""")
_FILLED = re.compile(
    rb"""<(?:\w{1,20}:)?c\s[^<>]{0,200}?\br\s{0,9}=\s{0,9}["']([A-Za-z]{1,3})([0-9]{1,7})["']"""
    rb"""[^<>]{0,200}(?<!/)>"""
)

_Value: TypeAlias = int | float | str | bool | time | date | datetime | timedelta


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read a workbook; see registry.ParseFunction."""
    package = Package(data, options, limits)
    workbook = _open_workbook(_copy_needed_parts(package, limits))
    names = _list_shown_sheets(workbook)
    limits.check_pages(len(names))
    sheet_pieces = chain.from_iterable(_read_sheet(workbook, name, limits) for name in names)
    pieces = list(limit_pieces(sheet_pieces, limits))
    if not pieces:
        raise DocumentEmpty("the workbook has no cell with content on any visible sheet")
    text, blocks = assemble(pieces)
    pages = len(workbook.sheet_names)
    return ParsedText(text, blocks, package.get_title(), pages, has_lines=False)


def _copy_needed_parts(package: Package, limits: ParseLimits) -> bytes:
    """Return a copy of the workbook that contains only sheets, styles and texts."""
    related = package.list_related(package.main)
    folder, _, name = package.main.rpartition("/")
    relations = f"{folder}/_rels/{name}.rels".lstrip("/")
    sheets = {r.part for r in related if r.kind == "worksheet"}
    needed = [r.part for r in related if r.kind in _NEEDED]
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for part in dict.fromkeys((*_PACKAGE_PARTS, package.main, relations, *needed)):
            content = package.archive.read(part)
            if part in sheets:
                _check_extent(content, limits)
            copy.writestr(zipfile.ZipInfo(part), content)
    return target.getvalue()


def _check_extent(sheet: bytes, limits: ParseLimits) -> None:
    """Refuse a sheet whose cells are too far apart, as calamine reserves memory for all between."""
    cells = _compute_extent(_REFERENCE.findall(sheet))
    if cells > limits.cells:
        # Empty cells that only have a format may lie anywhere; calamine reserves no memory for
        # them.
        cells = _compute_extent(_FILLED.findall(sheet))
    if cells > limits.cells:
        raise DocumentTooLarge(
            f"a sheet extends over {cells:,} cells, over the limit of {limits.cells:,}",
            hint="split the sheet, or clear the cells that are far away from all others",
        )


def _compute_extent(references: list[tuple[bytes, bytes]]) -> int:
    """Return the number of cells in the smallest rectangle that contains all cell references."""
    if not references:
        return 0
    letters, numbers = map(set, zip(*references, strict=True))
    columns, rows = [*map(_parse_column, letters)], [*map(int, numbers)]
    return (max(rows) - min(rows) + 1) * (max(columns) - min(columns) + 1)


def _parse_column(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - ord("A") + 1
    return number


def _open_workbook(data: bytes) -> CalamineWorkbook:
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        return CalamineWorkbook.from_filelike(io.BytesIO(data))
    except CalamineError:
        # The library's message may quote the document.
        raise _build_damage_error() from None


def _build_damage_error() -> DocumentRejected:
    return DocumentRejected("the document is damaged: not a readable workbook")


def _list_shown_sheets(workbook: CalamineWorkbook) -> list[str]:
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    return [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible
    ]


def _read_sheet(workbook: CalamineWorkbook, name: str, limits: ParseLimits) -> Iterator[Piece]:
    from python_calamine import CalamineError

    try:
        sheet = workbook.get_sheet_by_name(name)
    except CalamineError:
        raise _build_damage_error() from None
    rows = _read_rows(sheet, limits)
    if rows:
        sheet_name = clean(" ".join(name.split()))
        yield Piece("heading", sheet_name, 1, sheet=sheet_name)
        yield from _iter_records(rows, sheet_name)


def _iter_records(rows: dict[int, list[str]], sheet: str) -> Iterator[Piece]:
    """Yield the lines above a table, its header as a heading, and its rows, with row numbers."""
    columns = max(sum(map(bool, row)) for row in rows.values())
    above = True
    for number, row in rows.items():
        text = format_row(row)
        if above and columns > 1 and sum(map(bool, row)) == 1:
            yield Piece("paragraph", text.lstrip(" |"), sheet=sheet, row=number)
        elif above and len(rows) > 1 and names_columns(row, columns):
            yield Piece("heading", text.lstrip(" |"), 2, sheet=sheet, row=number)
            above = False
        else:
            yield Piece("row", text, sheet=sheet, row=number)
            above = False


def _read_rows(sheet: CalamineSheet, limits: ParseLimits) -> dict[int, list[str]]:
    """Return texts of non-empty rows by number, from 1, without columns that are always empty."""
    if sheet.start is None:
        return {}
    first_row, _ = sheet.start
    rows = [list(map(_format_value, row)) for row in sheet.to_python(skip_empty_area=True)]
    _repeat_merged(sheet, rows, limits)
    used = [any(column) for column in zip(*rows, strict=True)]
    if not all(used):
        rows = [list(compress(row, used)) for row in rows]
    return {number: row for number, row in enumerate(rows, start=first_row + 1) if any(row)}


def _repeat_merged(sheet: CalamineSheet, rows: list[list[str]], limits: ParseLimits) -> None:
    """Copy the value of a cell that spans several rows into each of these that is not empty."""
    first_row, first_column = sheet.start or (0, 0)
    columns = range(first_column, first_column + sheet.width)
    left = limits.cells
    for (top, column), (bottom, _) in sheet.merged_cell_ranges or ():
        below = rows[max(0, top + 1 - first_row) : bottom + 1 - first_row]
        left -= len(below)
        if left < 0:
            raise _build_damage_error()
        if top >= first_row and column in columns and below:
            value = get_repeated_text(rows[top - first_row][column - first_column])
            for row in filter(any, below):
                row[column - first_column] = value


def _format_value(value: _Value) -> str:
    """Return the text of a cell value as a person would write it: `3` for 3.0, `TRUE`."""
    if isinstance(value, str):
        text = " ".join(value.split())
        return text if text.isprintable() else clean(text)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < _LARGEST_WHOLE
        return str(int(value)) if whole else f"{value:.15g}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes" if value.second == 0 else "seconds")
    if isinstance(value, time):
        return value.isoformat("minutes" if value.second == 0 else "seconds")
    return str(value)
