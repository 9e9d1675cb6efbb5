"""XLSX: each sheet is a section, its header a heading above its rows, each row a block.

calamine reads the last computed values of the cells, without formulas and macros. It gets a copy
of the workbook that contains only sheets, styles and texts. It does not report number formats,
hidden rows and columns, and formulas without a value, so these are read from the XML of the sheets.
Hidden sheets, rows and columns are omitted.
"""

from __future__ import annotations

import io
import re
import zipfile
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import chain, compress, dropwhile, zip_longest
from string import ascii_letters
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_assets.common.errors import DocumentEmpty, DocumentRejected, DocumentTooLarge
from rag_assets.ingest.parsing.blocks import (
    Piece,
    assemble,
    clean,
    format_row,
    get_repeated_text,
    is_name,
    limit_pieces,
    names_columns,
)
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.ooxml import R_ID, Package
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

_NEEDED = frozenset({"worksheet", "sharedStrings", "styles"})
_PACKAGE_PARTS = ("[Content_Types].xml", "_rels/.rels")
_MAX_WHOLE_NUMBER = 1e15  # above it, even spreadsheets do not keep all digits
# References of any cell, and of a filled cell. Repetitions are bounded, so that no tag is scanned
# twice.
_REFERENCE = re.compile(rb"""r\s{0,9}=\s{0,9}["']([A-Za-z]{1,3})([0-9]{1,7})["']""")
_FILLED = re.compile(
    rb"""<(?:\w{1,20}:)?c\s[^<>]{0,200}?\br\s{0,9}=\s{0,9}["']([A-Za-z]{1,3})([0-9]{1,7})["']"""
    rb"""[^<>]{0,200}(?<!/)>"""
)
_TAG = re.compile(rb"<(?:\w{1,20}:)?(c|row|col)((?=[\s/>])[^<>]{0,500})>")
_ATTRIBUTE = re.compile(
    rb"""\s(r|s|hidden|min|max)\s{0,9}=\s{0,9}["']([A-Za-z]{0,4}[0-9]{0,7})["']"""
)
# A formula of which no program has stored the value; a stored empty text has the type "str".
_NOT_COMPUTED = re.compile(
    rb"""<(?:\w{1,20}:)?c\s(?![^<>]{0,200}\bt=["']str)[^<>]{0,200}>\s{0,9}"""
    rb"""<(?:\w{1,20}:)?f(?:\s[^<>]{0,200})?(?:/>|>[^<]{0,9000}</(?:\w{1,20}:)?f>)\s{0,9}"""
    rb"""(?:<(?:\w{1,20}:)?v\s?/>|<(?:\w{1,20}:)?v></(?:\w{1,20}:)?v>)?\s{0,9}"""
    rb"""</(?:\w{1,20}:)?c>"""
)
_LETTERS = ascii_letters.encode()
_MAX_COLUMNS = 16_384
_MAX_STYLES = 65_535
_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"

_Value: TypeAlias = int | float | str | bool | time | date | datetime | timedelta


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read a workbook; see registry.ParseFunction."""
    reader = _WorkbookReader(Package(data, options, limits), limits)
    names = _list_shown_sheets(reader.workbook)
    limits.check_pages(len(names))
    sheet_pieces = chain.from_iterable(map(reader.iter_pieces, names))
    pieces = list(limit_pieces(sheet_pieces, limits))
    if not pieces:
        raise DocumentEmpty("the workbook has no cell with content on any visible sheet")
    text, blocks = assemble(pieces)
    pages = len(reader.workbook.sheet_names)
    title = reader.package.get_title()
    notes = reader.build_notes()
    return ParsedText(text, blocks, title, pages, has_lines=False, notes=notes)


def _copy_needed_parts(package: Package, limits: ParseLimits) -> tuple[bytes, dict[str, bytes]]:
    """Return a copy of the workbook with only sheets, styles and texts; and the sheets by part."""
    related = package.list_related(package.main)
    folder, _, name = package.main.rpartition("/")
    relations = f"{folder}/_rels/{name}.rels".lstrip("/")
    sheets = {r.part: b"" for r in related if r.kind == "worksheet"}
    needed = [r.part for r in related if r.kind in _NEEDED]
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for part in dict.fromkeys((*_PACKAGE_PARTS, package.main, relations, *needed)):
            content = package.archive.read(part)
            if part in sheets:
                _check_extent(content, limits)
                sheets[part] = content
            copy.writestr(zipfile.ZipInfo(part), content)
    return target.getvalue(), sheets


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


class _WorkbookReader:
    def __init__(self, package: Package, limits: ParseLimits) -> None:
        copy, sheets = _copy_needed_parts(package, limits)
        self.package, self.workbook = package, _open_workbook(copy)
        self._limits = limits
        self._formats = _read_formats(package)
        parts = {r.id: r.part for r in package.list_related(package.main)}
        self._sheets = {
            sheet.get("name", ""): sheets.get(parts.get(sheet.get(R_ID, ""), ""), b"")
            for sheet in package.read_main_xml().iter(f"{_S}sheet")
        }
        self._not_computed = 0

    def iter_pieces(self, name: str) -> Iterator[Piece]:
        """Yield the sheet's name as a heading, and its tables."""
        from python_calamine import CalamineError

        content = self._sheets.get(name, b"")
        self._not_computed += sum(1 for _ in _NOT_COMPUTED.finditer(content))
        try:
            sheet = self.workbook.get_sheet_by_name(name)
        except CalamineError:
            raise _build_damage_error() from None
        rows = _read_rows(sheet, content, self._formats, self._limits)
        if any(rows.values()):
            sheet_name = clean(" ".join(name.split()))
            yield Piece("heading", sheet_name, 1, sheet=sheet_name)
            yield from _iter_tables(rows, sheet_name)

    def build_notes(self) -> tuple[str, ...]:
        """Return a note if the workbook has formulas whose values are not stored."""
        if not self._not_computed:
            return ()
        return (f"{self._not_computed:,} formulas without a stored value are left out",)


def _iter_tables(rows: dict[int, list[str]], sheet: str) -> Iterator[Piece]:
    """Yield the tables of a sheet; empty rows separate them."""
    tables: list[dict[int, list[str]]] = []
    title: dict[int, list[str]] = {}
    for part in _split_at_empty_rows(rows):
        if not tables:
            tables.append(part)
        elif _has_rows(tables[-1]) and _starts_table(list(part.values())):
            tables.append(title | part)
            title = {}
        else:
            tables[-1] |= title
            title = {} if _has_rows(part) else part
            tables[-1] |= part if _has_rows(part) else {}
    tables[-1] |= title
    for number, table in enumerate(tables):
        yield from _iter_records(table, sheet, is_first=number == 0)


def _split_at_empty_rows(rows: dict[int, list[str]]) -> Iterator[dict[int, list[str]]]:
    part: dict[int, list[str]] = {}
    for number, row in rows.items():
        if part and number - 1 not in rows:
            yield part
            part = {}
        if row:
            part[number] = row
    if part:
        yield part


def _starts_table(rows: list[list[str]]) -> bool:
    """Return whether rows below an empty row start a table with a header.

    Below the header, a row must have a number or date in a named column: without one, records of
    words below an empty row would be taken for a header.
    """
    below_title = [*dropwhile(_has_one_cell, rows)]
    columns = max((sum(map(bool, row)) for row in below_title), default=0)
    return (
        len(below_title) > 1
        and names_columns(below_title[0], columns)
        and any(
            name and cell and not is_name(cell) for name, cell in zip(*below_title[:2], strict=True)
        )
    )


def _has_rows(part: dict[int, list[str]]) -> bool:
    """Return whether a part of a sheet is more than lines of text, such as titles."""
    return not all(map(_has_one_cell, part.values()))


def _has_one_cell(row: list[str]) -> bool:
    return sum(map(bool, row)) == 1


def _iter_records(rows: dict[int, list[str]], sheet: str, *, is_first: bool) -> Iterator[Piece]:
    """Yield the lines above a table, its header as a heading, and its rows, with row numbers.

    The lines above further tables are headings: as paragraphs, they would be below the header of
    the table before.
    """
    columns = max(sum(map(bool, row)) for row in rows.values())
    above, level = True, 2
    for number, row in rows.items():
        text = format_row(row)
        if above and columns > 1 and _has_one_cell(row):
            title = text.lstrip(" |")
            if is_first:
                yield Piece("paragraph", title, sheet=sheet, row=number)
            else:
                yield Piece("heading", title, level, sheet=sheet, row=number)
                level = 3
        elif above and len(rows) > 1 and names_columns(row, columns):
            yield Piece("heading", text.lstrip(" |"), level, sheet=sheet, row=number)
            above = False
        else:
            yield Piece("row", text, sheet=sheet, row=number)
            above = False


def _read_rows(
    sheet: CalamineSheet, content: bytes, formats: Mapping[int, str], limits: ParseLimits
) -> dict[int, list[str]]:
    """Return the texts of rows that are not empty, by number from 1; a hidden row has none.

    Columns that are hidden, or empty in all shown rows, are left out.
    """
    if sheet.start is None:
        return {}
    first_row, first_column = sheet.start
    layout = _read_layout(sheet, content)
    codes = iter(layout.styles)
    rows = [
        [_format_value(value, formats.get(next(codes), "")) for value in row]
        for row in sheet.to_python(skip_empty_area=True)
    ]
    _repeat_merged(sheet, rows, limits)
    shown = [row for n, row in enumerate(rows, first_row + 1) if n not in layout.hidden_rows]
    used = [
        not layout.is_hidden_column(column) and any(cells)
        for column, cells in enumerate(zip(*shown, strict=True), first_column + 1)
    ]
    kept_rows: dict[int, list[str]] = {}
    for number, row in enumerate(rows, first_row + 1):
        if number in layout.hidden_rows:
            kept_rows[number] = []
        elif any(cells := row if all(used) else list(compress(row, used))):
            kept_rows[number] = cells
    return kept_rows


@dataclass(slots=True)
class _Layout:
    """Styles and visibility of the cells of a sheet, read from its XML.

    Attributes:
        styles: index of the style of each cell between the first and the last, row by row.
        hidden_rows: numbers of the hidden rows, from 1.
        hidden_columns: 1 at the number of each hidden column, from 1. Unlike a set, it is fast for
            any number of overlapping ranges.
    """

    styles: array[int]
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: bytearray = field(default_factory=lambda: bytearray(_MAX_COLUMNS + 1))

    def is_hidden_column(self, number: int) -> bool:
        """Return whether a column is hidden; damaged sheets may have columns beyond the last."""
        return number <= _MAX_COLUMNS and self.hidden_columns[number] == 1


def _read_layout(sheet: CalamineSheet, content: bytes) -> _Layout:
    first_row, first_column = sheet.start or (0, 0)
    layout = _Layout(array("H", bytes(2 * sheet.width * sheet.height)))
    row = column = 0
    for match in _TAG.finditer(content):
        values = dict(_ATTRIBUTE.findall(match[2]))
        is_hidden = values.get(b"hidden") in {b"1", b"true"}
        if match[1] == b"c":
            letters = values.get(b"r", b"").rstrip(b"0123456789")
            column = _parse_column(letters) if letters else column + 1
            style = _parse_digits(values.get(b"s", b""))
            down, right = row - first_row - 1, column - first_column - 1
            if style <= _MAX_STYLES and 0 <= down < sheet.height and 0 <= right < sheet.width:
                layout.styles[down * sheet.width + right] = style
        elif match[1] == b"row":
            row, column = _parse_digits(values.get(b"r", b"")) or row + 1, 0
            if is_hidden:
                layout.hidden_rows.add(row)
        elif is_hidden:
            first = _parse_digits(values.get(b"min", b""))
            last = min(_parse_digits(values.get(b"max", b"")), _MAX_COLUMNS)
            layout.hidden_columns[first : last + 1] = b"\1" * (last + 1 - first)
    return layout


def _parse_digits(value: bytes) -> int:
    return int(value.lstrip(_LETTERS) or 0)


def _repeat_merged(sheet: CalamineSheet, rows: list[list[str]], limits: ParseLimits) -> None:
    """Copy the value of a cell that spans several rows into each of the rows that is not empty."""
    first_row, first_column = sheet.start or (0, 0)
    columns = range(first_column, first_column + sheet.width)
    cells_left = limits.cells
    for (top, column), (bottom, _) in sheet.merged_cell_ranges or ():
        below = rows[max(0, top + 1 - first_row) : bottom + 1 - first_row]
        cells_left -= len(below)
        if cells_left < 0:
            raise _build_damage_error()
        if top >= first_row and column in columns and below:
            value = get_repeated_text(rows[top - first_row][column - first_column])
            for row in filter(any, below):
                row[column - first_column] = value


_BUILT_IN_FORMATS: Final = MappingProxyType(
    {
        1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 17: "mmm-yy",
        46: "[h]:mm:ss",
        # The currency of these depends on the reader's computer, so none is shown.
        **dict.fromkeys((5, 6, 37, 38, 41, 42), "#,##0;(#,##0)"),
        **dict.fromkeys((7, 8, 39, 40, 43, 44), "#,##0.00;(#,##0.00)"),
    }
)  # fmt: skip
"""Number formats by ids that workbooks use without defining them."""
_MAX_FORMAT_CHARACTERS = 255
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]|(?P<unseen>[_*].|\[[^\]]*\])'
    r"|(?P<number>General|[0#?][0#?,]*(?:\.[0#?]*,*)?|\.[0#?]+)|(?P<other>.)",
    re.DOTALL | re.IGNORECASE,
)
_MAX_PLACES = 9
_MAX_POWER = 4
_NOT_A_NUMBER = re.compile("[A-Za-z/@]")
_NOT_ZERO = re.compile("[1-9]")
_THOUSANDS = re.compile(r"(?<=\d)(?=(?:\d{3})+$)")


def _read_formats(package: Package) -> dict[int, str]:
    """Return the number formats of a workbook by the index of the style that has them."""
    styles = package.read_related(package.main, "styles")
    if styles is None:
        return {}
    own = {f.get("numFmtId", ""): f.get("formatCode", "") for f in styles.iter(f"{_S}numFmt")}
    codes = {**{str(number): code for number, code in _BUILT_IN_FORMATS.items()}, **own}
    cell_styles = styles.iterfind(f"{_S}cellXfs/{_S}xf")
    formats = (codes.get(style.get("numFmtId", ""), "") for style in cell_styles)
    return {
        i: clean(code) for i, code in enumerate(formats) if 0 < len(code) <= _MAX_FORMAT_CHARACTERS
    }


def _format_value(value: _Value, code: str) -> str:
    """Return the text of a cell as its number format shows it, but whole dates as `2026-03-15`.

    Without a format, or with one that cannot be applied, numbers are written as `3` and `0.25`.
    """
    if isinstance(value, str):
        text = " ".join(value.split())
        return text if text.isprintable() else clean(text)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        text_of_number = _format_number(value, code) if code else None
        return _format_plainly(value) if text_of_number is None else text_of_number
    return _format_time(value, code)


def _format_time(value: time | date | datetime | timedelta, code: str) -> str:
    """Return a duration or a month as the number format shows it, and other times by ISO 8601."""
    if isinstance(value, timedelta):
        return _format_duration(value, code.lower())
    if not isinstance(value, time):
        tokens = chain.from_iterable(_split_sections(code))
        marks = "".join(token["other"] or "" for token in tokens).lower()
        if "y" in marks and not {"d", "h"} & set(marks):
            month = "%B " if "mmmm" in marks else "%b " if "mmm" in marks else ""
            return value.strftime(f"{month}%Y" if month or "m" not in marks else "%Y-%m")
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes" if value.second == 0 else "seconds")
    if isinstance(value, time):
        return value.isoformat("minutes" if value.second == 0 else "seconds")
    return str(value)


def _format_plainly(value: float) -> str:
    is_whole = float(value).is_integer() and abs(value) < _MAX_WHOLE_NUMBER
    return str(int(value)) if is_whole else f"{value:.15g}"


def _format_duration(value: timedelta, code: str) -> str:
    seconds = round(value.total_seconds())
    minutes, second = divmod(seconds, 60)
    if seconds < 0:
        return str(value)
    if "[s" in code:
        return str(seconds)
    if "[m" in code:
        return f"{minutes}:{second:02}"
    return f"{minutes // 60}:{minutes % 60:02}" + (f":{second:02}" if second or "s" in code else "")


@lru_cache(maxsize=1000)
def _split_sections(code: str) -> list[list[re.Match[str]]]:
    """Return the tokens of each section of a number format."""
    sections: list[list[re.Match[str]]] = [[]]
    for token in _TOKEN.finditer(code):
        if token["other"] == ";":
            sections.append([])
        else:
            sections[-1].append(token)
    return sections


@dataclass(frozen=True, slots=True)
class _NumberFormat:
    """A section of a number format.

    Attributes:
        literals: the texts before, between and after the runs of placeholders.
        runs: lengths of the runs; the last one also has the decimals.
        is_general: whether the digits are as many as the number needs.
        digits: minimum number of digits before the decimal point.
        decimals: minimum number of decimals; `unit` is the place of the last possible decimal.
        power: power of ten by which the number is multiplied.
    """

    literals: list[str]
    runs: list[int]
    is_general: bool
    digits: int
    decimals: int
    unit: Decimal
    power: int
    is_grouped: bool


@lru_cache(maxsize=1000)
def _read_number_formats(code: str) -> list[_NumberFormat | None]:
    """Return the sections of a number format; None for one with a condition, date or exponent."""
    return [*map(_read_number_format, _split_sections(code))]


def _read_number_format(tokens: list[re.Match[str]]) -> _NumberFormat | None:
    others = "".join(token["other"] or "" for token in tokens)
    has_condition = any(token[0].startswith(("[<", "[>", "[=")) for token in tokens)
    runs = [token["number"] for token in tokens if token["number"]]
    is_general = [run.lower() for run in runs] == ["general"]
    whole, _, fraction = "".join(runs).partition(".")
    bare, places = whole.rstrip(","), fraction.rstrip(",")
    commas = len(whole) - len(bare) + len(fraction) - len(places)
    power = 2 * others.count("%") - 3 * commas
    # Within these bounds, a decimal number keeps all digits.
    is_exact = len(places) <= _MAX_PLACES and power <= _MAX_POWER
    is_divided = len(runs) > 1 and ("." in "".join(runs) or "," in whole)
    if has_condition or is_divided or not is_exact or _NOT_A_NUMBER.search(others):
        return None
    literals = [""]
    for token in tokens:
        if token["number"]:
            literals.append("")
        elif token["unseen"]:
            literals[-1] += " " if token["unseen"].startswith("_") else ""
        else:
            literals[-1] += next(filter(None, token.groups()), "")
    return _NumberFormat(
        literals,
        runs=[*map(len, runs)],
        is_general=is_general,
        digits=bare.count("0"),
        decimals=places.count("0"),
        unit=Decimal(1).scaleb(-len(places)),
        power=power,
        is_grouped="," in bare,
    )


def _format_number(value: float, code: str) -> str | None:
    """Return a number as its format shows it; None if the format cannot be applied."""
    sections = _read_number_formats(code)
    place = 1 if value < 0 else 2 if value == 0 else 0
    chosen = sections[place if place < len(sections) else 0]
    if chosen is None or abs(value) >= _MAX_WHOLE_NUMBER:
        return None
    digits = _format_digits(abs(value), chosen)
    needs_sign = value < 0 and len(sections) == 1 and _NOT_ZERO.search(digits)
    runs = []
    for length in reversed(chosen.runs[1:]):  # such as 000-0000
        runs.append(digits[-length:])
        digits = digits[:-length]
    runs += [digits] if chosen.runs else []
    text = "".join(chain.from_iterable(zip_longest(chosen.literals, reversed(runs), fillvalue="")))
    return " ".join((f"-{text.strip()}" if needs_sign else text).split())


def _format_digits(value: float, chosen: _NumberFormat) -> str:
    if chosen.is_general:
        return _format_plainly(value)
    number = Decimal(f"{value:.15g}").scaleb(chosen.power)
    integer, _, decimals = f"{number.quantize(chosen.unit, ROUND_HALF_UP):f}".partition(".")
    integer = integer.lstrip("0").zfill(chosen.digits)
    if chosen.is_grouped:
        integer = _THOUSANDS.sub(",", integer)
    optional_decimals = decimals[chosen.decimals :].rstrip("0")
    decimals = decimals[: chosen.decimals] + optional_decimals
    return f"{integer}.{decimals}" if decimals else integer
