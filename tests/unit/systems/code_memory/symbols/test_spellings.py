"""Names as people write them, and as the index stores them."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.symbols.names import (
    iter_route_spellings,
    list_path_spellings,
    list_symbol_spellings,
    list_table_spellings,
)

MOST = 63


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Invoice::class", "Invoice"),
        ("\\App\\Models\\Invoice::class", "\\App\\Models\\Invoice"),
        ("App\\\\Models\\\\Invoice", "App\\Models\\Invoice"),
        ("App/Models/Invoice", "App\\Models\\Invoice"),
        ("Invoice->total()", "Invoice::total"),
        ("Invoice::total(int $of)", "Invoice::total"),
        ("$invoice->total(", "total"),
        ("$this->bills?->total()", "total"),
        ("`Invoice`", "Invoice"),
        ("(*Invoice).Total", "Invoice.Total"),
        ("invoice_controller", "invoicecontroller"),
        ("config:app.name", "config:app.name"),
    ],
)
def test_a_symbol_may_be_written_as_code_has_it(said: str, meant: str) -> None:
    assert meant in list_symbol_spellings(said)
    assert list_symbol_spellings(said)[0] == said


def test_a_table_may_have_quotes_and_a_schema() -> None:
    assert list_table_spellings("`shop`.`invoices`") == ["shop.invoices", "invoices"]
    assert list_table_spellings("[dbo].[invoices]") == ["dbo.invoices", "invoices"]
    assert list_table_spellings("table:invoices") == ["invoices"]


def test_any_part_of_a_requested_path_may_stand_for_a_parameter_the_last_first() -> None:
    assert [*iter_route_spellings("GET /bills/pdf/a1b2")][:4] == [
        "get /bills/pdf/{}",
        "get /bills/{}/a1b2",
        "get /{}/pdf/a1b2",
        "get /bills/{}/{}",
    ]
    assert next(iter_route_spellings("bills/7/x")) == "/bills/{}/{}"
    assert [*iter_route_spellings("bills.show")] == []
    assert len([*iter_route_spellings("/" + "/".join("abcdefghijklmn"))]) == MOST


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("./app/A.php", "app/A.php"),
        ("app\\A.php", "app/A.php"),
        ("app/A.php:12", "app/A.php"),
        ("app/A.php:12-40", "app/A.php"),
        ("/srv/shop/app/A.php", "app/A.php"),
        ("C:\\shop\\app\\A.php", "app/A.php"),
        ("../../app/A.php", "app/A.php"),
        ("app/", "app"),
    ],
)
def test_a_path_may_be_written_as_shells_and_editors_have_it(said: str, path: str) -> None:
    assert path in list_path_spellings(said)


def test_nothing_and_what_is_too_long_are_no_trouble() -> None:
    for spell in (list_symbol_spellings, list_table_spellings, list_path_spellings):
        assert spell("") == []
        assert all(len(one) <= 10_000 for one in spell("a/" * 5_000))
    assert [*iter_route_spellings("")] == []
    assert len([*iter_route_spellings("/a" * 5_000)]) == MOST
