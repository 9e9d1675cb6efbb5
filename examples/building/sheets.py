"""Writes Excel workbooks with formulas and their values."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from examples.building.archives import EPOCH, with_fixed_times

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet


def build(source: str) -> bytes:
    """Return the workbook of a source, in YAML: title, author, and sheets of rows.

    A cell is text, a number, or a formula with the value it has. The first row is the header.
    """
    import xlsxwriter
    from ruamel.yaml import YAML

    facts = YAML(typ="safe").load(source)
    target = io.BytesIO()
    with xlsxwriter.Workbook(target, {"in_memory": True}) as book:
        made = EPOCH.replace(tzinfo=None)
        book.set_properties({"title": facts["title"], "author": facts["author"], "created": made})
        bold, number = book.add_format({"bold": True}), book.add_format({"num_format": "#,##0.##"})
        for sheet in facts["sheets"]:
            page = book.add_worksheet(sheet["name"])
            page.freeze_panes(1, 1)
            for column, width in enumerate(sheet["widths"]):
                page.set_column(column, column, width)
            for row, cells in enumerate(sheet["rows"]):
                for column, cell in enumerate(cells):
                    _write(page, (row, column), cell, number if row else bold)
    return with_fixed_times(target.getvalue())


def _write(page: Worksheet, at: tuple[int, int], cell: Any, style: Format) -> None:
    if isinstance(cell, list):
        formula, value = cell
        page.write_formula(*at, formula, style, value)
    else:
        page.write(*at, cell, style)
