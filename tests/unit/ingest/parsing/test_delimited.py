import time
from itertools import pairwise

import pytest

from rag_assets.ingest.parsing.media_types import CSV, TSV
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.registry import parse
from tests.unit.ingest.parsing.office_files import lines


def read(text: str, media_type: str = CSV) -> ParsedText:
    return parse(text.encode(), media_type)


def test_the_header_is_a_heading_above_the_records() -> None:
    source = 'code,depot\r\nLDS1,"Leeds, North"\r\n\r\nDON1,Doncaster\r\n'
    result = read(source)
    assert result.text == source
    assert lines(result) == [
        ("heading1", "code,depot"), ("row", 'LDS1,"Leeds, North"'), ("row", "DON1,Doncaster"),
    ]  # fmt: skip
    assert [b.row for b in result.blocks] == [1, 2, 4]
    assert {b.heading_path for b in result.blocks} == {("code | depot",)}
    assert result.has_lines
    assert result.title is None


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    rows = [["name", "note"], ["Anna", "one, two"], ["Bob", "x"], ["Cy", "3; 4"]]
    quoted = [[f'"{cell}"' for cell in row] for row in rows]
    result = read("\n".join(delimiter.join(row) for row in quoted))
    assert result.blocks[0].heading_path == ("name | note",)


@pytest.mark.parametrize(
    ("source", "names"),
    [("a,b\tc,d\n1,2\t3,4\n", "a,b | c,d"), ("Name,City\nAnna,Ystad\n", "Name | City")],
)
def test_a_tsv_is_split_at_its_tabs_or_else_at_its_delimiter(source: str, names: str) -> None:
    assert read(source, TSV).blocks[0].heading_path == (names,)


def test_quoted_line_ends_belong_to_the_record() -> None:
    result = read('a,b\n1,"x\n""y"", z\n\n"\n2,5" disk\n\n')
    assert lines(result)[1:] == [("row", '1,"x\n""y"", z\n\n"'), ("row", '2,5" disk')]
    assert [b.row for b in result.blocks] == [1, 2, 3]


def test_a_mark_that_is_never_closed_quotes_nothing() -> None:
    result = read('a,b\n1,"open\n2,x\n3,"y"\n')
    assert [text for _, text in lines(result)] == ["a,b", '1,"open', "2,x", '3,"y"']


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("Fangbericht\nStand 2026\n\nSchiff,Art\nSkarv,Dorsch\n", "Schiff | Art"),
        ("Report;;\nShip;Kind;Tons\nSkarv;cod;1\n", "Ship | Kind | Tons"),
        ("# source: a, b\n#\nBuoy,Lat\nB,1\n", "Buoy | Lat"),
        ("sep=;\r\nStation;River, arm\r\nA;B\r\n", "Station | River, arm"),
        ("SEP=\t\nA b\tC\nx\ty\n", "A b | C"),
        ("Country,2019-01,2019-02\nPeru,1.5,2\nChile,3,4\n", "Country | 2019-01 | 2019-02"),
        ("Name,%,#\nAnna,5,1\nBea,6,2\n", "Name | % | #"),
        ("Name,Value,Value\nAnna,5,1\nBea,6,2\n", "Name | Value | Value"),
    ],
)
def test_header_below_remarks_or_with_unusual_names_is_found(source: str, names: str) -> None:
    result = read(source)
    assert result.blocks[-1].heading_path == (names,)
    assert result.text == source


@pytest.mark.parametrize(
    "source", ["Anna,5,1\nBea,6,2\n", "1,2\n3,4\n", "2019-01-01,x\n2019-01-02,y\n", "word\nother\n"]
)
def test_a_first_record_with_numbers_or_one_field_is_no_header(source: str) -> None:
    assert {kind for kind, _ in lines(read(source))} == {"row"}


def test_names_of_wide_table_are_kept() -> None:
    names = [f"Measurement channel number {number}" for number in range(60)]
    result = read(",".join(names) + "\n" + ",".join("v" * 60) + "\n")
    assert result.blocks[-1].heading_path == (" | ".join(names),)
    header = ",".join(f"{name} of {name}" for name in names * 50)
    result = read(f"{header}\n{','.join('1' * 3_000)}")
    assert len(result.blocks[-1].heading_path[0]) == 4_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        "a," + "x" * 1_000_000,
        'a,b\n1,"' + "x\n" * 100_000,
        '"' * 1_000_000,
        ('"' + "," * 9 + "\n") * 20_000,
        "," * 500_000,
        "\r" * 200_000 + "a,b",
        'a,b\n"' + 'x""y\n' * 50_000 + '"\n',
    ],
    ids=["giant field", "open quote", "quotes", "open quotes", "commas", "returns", "giant record"],
)
def test_no_file_takes_long(source: str) -> None:
    started = time.process_time()
    result = read(source)
    assert time.process_time() - started < 10
    assert result.blocks[-1].end <= len(source)
    assert all(a.end <= b.start for a, b in pairwise(result.blocks))
