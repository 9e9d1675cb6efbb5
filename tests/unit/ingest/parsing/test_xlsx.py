import io
import zipfile
from datetime import date, datetime, time
from time import process_time
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


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("0.0%", 0.075, "7.5%"),
        ('"$"#,##0.00', 1234.5, "$1,234.50"),
        ("[$€-407] #,##0.00", -1234.565, "-€ 1,234.57"),
        ('_-* #,##0.00\\ "zł"_-;\\-* #,##0.00\\ "zł"_-;_-* "-"??_-', -0.5, "-0.50 zł"),
        ('_($* #,##0_);_($* (#,##0);_($* "-"??_)', -1500, "$(1,500)"),
        ('_($* #,##0_);_($* (#,##0);_($* "-"??_)', 0, "$-"),
        ("[Red]-0", 3, "-3"),
        ("00000", 501, "00501"),
        ("000-00-0000", 12345678, "012-34-5678"),
        ('#,##0" kg"', 1200, "1,200 kg"),
        ('"INV-"0000', 42, "INV-0042"),
        ('"a;b "0', 1, "a;b 1"),
        ('General" items"', 2.5, "2.5 items"),
        ('#,##0.0,,"M"', 12_340_000, "12.3M"),
        ("0.0##", 1.25, "1.25"),
        ("0;-0;;@", 0, ""),
        ("0.00E+00", 0.25, "0.25"),
        ("# ?/?", 0.25, "0.25"),
        ("[<1]0.00;0", 2.5, "2.5"),
        ("0.00", 1e20, "1e+20"),
        ("0.0", -0.01, "0.0"),
        ("0.000000000", 0, "0.000000000"),
        ("0.0000000000", 0.5, "0.5"),
        ("0%%%%", 999999999999999, "999999999999999"),
        ("0.000000000%%", 999999999999999, "9999999999999990000.000000000%%"),
        ("000-0000", -5550000, "-555-0000"),
        ("[h]:mm", 1.5, "36:00"),
        ("[mm]:ss", 0.0625, "90:00"),
        ("mmm yyyy", 46082, "Mar 2026"),
        ("mmmm\\ yy", 46082, "March 2026"),
        ("yyyy/mm", 46082, "2026-03"),
        ("yyyy", 46082, "2026"),
        ("dd/mm/yyyy", 46096, "2026-03-15"),
        ("d mmm", 46096, "2026-03-15"),
    ],
)
def test_numbers_and_months_are_written_as_shown(code: str, value: float, text: str) -> None:
    def build(book: Any) -> None:
        made = book.add_worksheet("Values")
        made.write(0, 0, "value")
        made.write_number(0, 1, value, book.add_format({"num_format": code}))

    [_, (_, row)] = lines(parse(workbook(build)))
    assert row == f"value | {text}".rstrip(" |")


def test_formats_apply_to_cells_that_another_program_wrote() -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["Anteil", 0.25])
    book.active["B1"].number_format = "0%"
    target = io.BytesIO()
    book.save(target)
    assert lines(parse(target.getvalue()))[1] == ("row", "Anteil | 25%")


def test_hidden_rows_and_columns_are_left_out() -> None:
    def build(book: Any) -> None:
        made = book.add_worksheet("Plan")
        for number, row in enumerate((HEADER, ["49", 7, "x"], ["50", 8, "y"], ["51", 9, "z"])):
            made.write_row(number + 2, 1, row)
        made.set_row(4, None, None, {"hidden": True})
        made.set_column(2, 2, None, None, {"hidden": True})

    result = parse(workbook(build))
    assert [text for _, text in lines(result)] == ["Plan", "Week | Remark", "49 | x", "51 | z"]
    assert [b.row for b in result.blocks] == [None, 3, 4, 6]


def edited_sheet(old: bytes, new: bytes) -> bytes:
    """Return a workbook whose XML contains `new` in place of `old`."""
    source = zipfile.ZipFile(io.BytesIO(sheet(["Name", "Salary"], ["Anna", 7])))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in source.namelist():
            copy.writestr(name, source.read(name).replace(old, new))
    return target.getvalue()


def test_many_overlapping_ranges_of_hidden_columns_take_little_time() -> None:
    ranges = b'<col min="2" max="16384" hidden="1"/>' * 50_000
    data = edited_sheet(b"<sheetData>", b"<cols>" + ranges + b"</cols><sheetData>")
    started = process_time()
    assert [text for _, text in lines(parse(data))] == ["Plan", "Name", "Anna"]
    assert process_time() - started < 10, "a second, and half a minute if each range is walked"


@pytest.mark.parametrize("reference", [b"XFD1", b"XFE1", b"ZZZ1", b"AAAA1"])
def test_a_cell_beyond_the_last_column_is_read(reference: bytes) -> None:
    data = edited_sheet(b'r="B1"', b'r="' + reference + b'"')
    assert lines(parse(data))[-1] == ("row", "Anna | 7")


def test_a_sheet_with_hidden_rows_only_is_left_out() -> None:
    def build(book: Any) -> None:
        made = book.add_worksheet("Old")
        made.write(0, 0, "secret")
        made.set_row(0, None, None, {"hidden": True})
        book.add_worksheet("New").write(0, 0, "shown")

    assert [text for _, text in lines(parse(workbook(build)))] == ["New", "shown"]


def test_a_note_counts_formulas_without_a_stored_value() -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["Total", "=SUM(B2:B3)"], ["Steel", 900], ["Empty", '=""']):
        book.active.append(row)
    target = io.BytesIO()
    book.save(target)
    result = parse(target.getvalue())
    assert result.notes == ("2 formulas without a stored value are left out",)
    computed = sheet(["Total", "=1+1"])
    assert parse(computed).notes == ()


def test_further_tables_of_a_sheet_have_their_own_titles_and_headers() -> None:
    result = parse(
        sheet(
            ["Fortschritt"], [], ["Aufgabe", "", "Stand"], ["Entwurf", "", "fertig"], [],
            ["Kosten"], [], ["Posten", "Plan", "Ist"], ["Stahl", 900, 850], ["Holz", 20], [],
            ["Depot", "Vans"], ["Leeds", 3],
        )
    )  # fmt: skip
    assert lines(result) == [
        ("heading1", "Plan"), ("paragraph", "Fortschritt"), ("heading2", "Aufgabe |  | Stand"),
        ("row", "Entwurf |  | fertig"), ("heading2", "Kosten"),
        ("heading3", "Posten | Plan | Ist"), ("row", "Stahl | 900 | 850"), ("row", "Holz | 20"),
        ("heading2", "Depot | Vans"), ("row", "Leeds | 3"),
    ]  # fmt: skip
    assert result.blocks[-1].heading_path == ("Plan", "Depot | Vans")
    assert result.blocks[-3].heading_path == ("Plan", "Kosten", "Posten | Plan | Ist")


def test_groups_of_rows_below_empty_or_hidden_rows_stay_in_their_table() -> None:
    def build(book: Any) -> None:
        made = book.add_worksheet("Plan")
        names = ["Name", "Team", "Town"]
        rows = [
            names, ["Ana", "Sales", "Oslo"], [], ["NORTH"], ["Bo", "IT", "Bergen"],
            ["Eva", "IT", "Voss"], ["x"], ["Cy", "HR", "Oslo"], ["Di", "HR", 7], [], ["end"],
        ]  # fmt: skip
        for number, row in enumerate(rows):
            made.write_row(number, 0, row)
        made.set_row(6, None, None, {"hidden": True})

    assert [kind for kind, _ in lines(parse(workbook(build)))] == [
        "heading1", "heading2", *["row"] * 7,
    ]  # fmt: skip


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
