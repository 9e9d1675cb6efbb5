from __future__ import annotations

import pytest

from rag_assets.ingest.parsing.masking import find_credential_cells, join_spans
from rag_assets.ingest.parsing.media_types import CSV, MARKDOWN, XLSX
from rag_assets.ingest.parsing.model import MaskedSpan
from rag_assets.ingest.parsing.registry import parse
from tests.unit.ingest.parsing.office_files import sheet

VALUE = "tr0ub4dor&3x"


def cells(data: bytes, media_type: str) -> list[str]:
    parsed = parse(data, media_type)
    return [parsed.text[span.start : span.end] for span in find_credential_cells(parsed)]


@pytest.mark.parametrize(
    "table",
    [
        f"user,password\nada,{VALUE}\nbob,none\n",
        f'user;DB Password\nada;"{VALUE}"\n',
        f"user\tapi-pwd\tnote\nada\t{VALUE}\tx1y2z3\n",
        f'"name, first",password\n"Lovelace, Ada",{VALUE}\n',
        f'note,password\n"a ""quoted"", and a comma",{VALUE}\n',
        f'note,password\n"""so, she said""",{VALUE}\n',
        f'note,password\n"",{VALUE}\n',
    ],
)
def test_a_value_below_a_column_of_passwords_is_found(table: str) -> None:
    assert cells(table.encode(), CSV) == [VALUE]


def test_a_markdown_table_and_a_sheet_are_looked_through_as_well() -> None:
    table = f"| user | **Password** |\n|---|---|\n| ada | `{VALUE}` |\n"
    assert cells(f"# Access\n\n{table}".encode(), MARKDOWN) == [VALUE]
    book = sheet(["user", "passwd"], ["ada", VALUE])
    assert cells(book, XLSX) == [VALUE]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API key", "8e9a19ab579ee25f" + "db030843a1bfe2b2"),
        ("token", "a1b2" + "c3d4"),
        ("client_secret", "mWiRTeuu" + "TOYmfNumBKU7"),
        ("password (temporary)", "Sommer" + "26"),
        ("PIN", "48" + "21"),
        ("Passwort", "zozapi" + "sovupoth"),
        ("secret", "lantern" + "Granite51!"),
        ("contraseña", "luna-walnut" + "-falcon-thunder"),
        ("pw", "?@~@" + "+#*=%"),
    ],
)
def test_whatever_a_column_or_a_label_promises_is_found(name: str, value: str) -> None:
    below = f"host,{name},owner\ndb-1,{value},ada\ndb-2,,bob\n"
    assert cells(below.encode(), CSV) == [value]
    beside = f"| setting | value |\n|---|---|\n| host | db-1 |\n| {name} | `{value}` |\n"
    assert cells(beside.encode(), MARKDOWN) == [value]


@pytest.mark.parametrize(
    "row",
    [
        "| password | string | The password of the user |",
        "| token_ttl | 3600 | seconds |",
        "| password | required |",
        "| API key | `<your-api-key>` |",
        "| token | $TOKEN |",
        "| password | see the vault |",
        "| secret | app.config.secret |",
        "| PIN | none |",
    ],
)
def test_a_row_about_a_credential_is_left_alone(row: str) -> None:
    table = f"| name | type |\n|---|---|\n| host | string |\n{row}\n"
    assert cells(table.encode(), MARKDOWN) == []


@pytest.mark.parametrize(
    "table",
    [
        "field,password\nlength,at least 12 characters\n",
        "user,password\nada,changeme\nbob,<your-password1>\ncy,\n",
        "design token,value\ncolour-primary-500,#ffffff\n",
        f"user,password policy\nada,{VALUE}\n",
        f"password\n{VALUE}\n",  # one column is no table, and its words are prose
    ],
)
def test_texts_about_passwords_stay_unmasked(table: str) -> None:
    assert cells(table.encode(), CSV) == []


def test_spans_that_overlap_become_one() -> None:
    spans = [MaskedSpan(5, 9, "b"), MaskedSpan(0, 3, "a"), MaskedSpan(2, 6, "c")]
    assert join_spans(spans) == (MaskedSpan(0, 9, "a"),)
