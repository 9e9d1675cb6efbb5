"""XLSX: sheets, headers, rows, values, and omitted parts."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import pytest

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.media_types import XLSX
from rag_assets.ingest.parsing.registry import parse
from tests.unit.ingest.parsing.office_files import lines, sheet, workbook

HEADER = ["Week", "Parcels", "Remark"]


def test_a_sheet_is_a_section_its_header_a_heading_and_each_row_a_block() -> None:
    result = parse(sheet(["Peak plan 2026"], [], HEADER, ["49", 338000, "early"], [], ["50", 9]))
    assert lines(result) == [
        ("heading1", "Plan"), ("paragraph", "Peak plan 2026"),
        ("heading2", "Week | Parcels | Remark"), ("row", "49 | 338000 | early"), ("row", "50 | 9"),
    ]  # fmt: skip
    assert [b.row for b in result.blocks] == [None, 1, 3, 4, 6]
    assert {b.sheet for b in result.blocks} == {"Plan"}
    assert result.blocks[-1].heading_path == ("Plan", "Week | Parcels | Remark")
    assert result.text.endswith("early\n50 | 9")
    assert (result.pages, result.title, result.media_type) == (1, None, XLSX)
    assert not result.has_lines


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (["Week", "Parcels", "Remark"], "heading2"),
        (["Depot", 2025, 2026], "heading2"),
        (["Depot", "2025", "Q1 2026"], "heading2"),
        ([1, 2, 3], "row"),
        ([2024, 2025, 2026], "row"),
        (["a", "a", "b"], "row"),
        (["a", "", "c"], "heading2"),
        (["12.5 kg", "3 %", "1,000"], "row"),
    ],
)
def test_which_first_row_names_the_columns(first: list[Any], kind: str) -> None:
    result = parse(sheet(first, ["x", 1, 2], ["y", 3, 4]))
    assert lines(result)[1][0] == kind


def test_a_row_alone_and_a_single_column_have_no_header() -> None:
    assert lines(parse(sheet(HEADER)))[1][0] == "row"
    assert lines(parse(sheet(["Name"], ["Anna"])))[1:] == [("row", "Name"), ("row", "Anna")]


def test_values_are_written_as_a_reader_would() -> None:
    def build(book: Any) -> None:
        made = book.add_worksheet("Values")
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm"})
        clock = book.add_format({"num_format": "hh:mm"})
        made.write_row(0, 0, [3.0, 0.1 + 0.2, -1e20, True, "two\nlines  wide"])
        made.write_datetime(1, 0, date(2026, 3, 1), day)
        made.write_datetime(1, 1, datetime(2026, 3, 1, 9, 30), moment)  # noqa: DTZ001
        made.write_datetime(1, 2, time(4, 50), clock)
        made.write_formula(1, 3, "=1+1", None, 2)
        made.write_formula(1, 4, "=A1/0", None, "#DIV/0!")

    assert [text for _, text in lines(parse(workbook(build)))[1:]] == [
        "3 | 0.3 | -1e+20 | TRUE | two lines wide",
        "2026-03-01 | 2026-03-01 09:30 | 04:50 | 2",
    ]


def test_hidden_sheets_and_empty_columns_are_left_out() -> None:
    def build(book: Any) -> None:
        shown = book.add_worksheet("Shown")
        shown.write_row(4, 2, ["a", None, "b"])
        shown.write_row(5, 2, [1, None, 2])
        hidden = book.add_worksheet("Prices")
        hidden.write(0, 0, "hidden")
        hidden.hide()
        book.add_worksheet("Empty")

    result = parse(workbook(build))
    assert lines(result) == [("heading1", "Shown"), ("heading2", "a | b"), ("row", "1 | 2")]
    assert [b.row for b in result.blocks] == [None, 5, 6]
    assert result.pages == 3


def test_cells_merged_over_rows_are_repeated_in_each_row_with_other_values() -> None:
    def build(book: Any) -> None:
        made = book.add_worksheet("Plan")
        made.write_row(0, 0, ["Depot", "Day", "Vans"])
        made.merge_range(1, 0, 3, 0, "Leeds")
        made.write_row(1, 1, ["Mon", 3])
        made.write_row(2, 1, ["Tue", 4])
        made.merge_range(4, 0, 5, 2, "all depots")

    assert [text for kind, text in lines(parse(workbook(build))) if kind == "row"] == [
        "Leeds | Mon | 3", "Leeds | Tue | 4", "all depots",
    ]  # fmt: skip


def test_the_title_in_the_properties_is_the_title() -> None:
    def build(book: Any) -> None:
        book.set_properties({"title": "Peak plan"})
        book.add_worksheet().write(0, 0, "x")

    assert parse(workbook(build)).title == "Peak plan"


def test_a_workbook_without_values_is_rejected() -> None:
    with pytest.raises(DocumentRejected, match="no cell"):
        parse(sheet())
