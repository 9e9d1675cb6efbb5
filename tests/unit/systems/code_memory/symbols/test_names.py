"""Names of symbols, and their spellings."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.symbols.names import (
    format_path_template,
    iter_route_spellings,
    list_path_spellings,
    list_route_keys,
    list_search_keys,
    list_symbol_spellings,
    list_table_keys,
    list_table_spellings,
    split_name,
)

KEYS = list_route_keys(("GET", "HEAD"), "/invoices/{invoice}/edit", "invoices.edit")


@pytest.mark.parametrize(
    "said",
    [
        *("invoices.edit", "Invoices.Edit", "/invoices/{invoice}/edit", "/invoices/{id}/edit/"),
        *("/invoices/42/edit", "/invoices/0b7ce4b2-4f35-4a52-9d8c-3f1a2b3c4d5e/edit?tab=2"),
        *("GET /invoices/{invoice}/edit", "head /invoices/7/edit", "invoices/{invoice}/edit"),
        *("route:GET /invoices/{invoice}/edit", "GET invoices/42/edit"),
        *("GET|HEAD /invoices/42/edit", "GET:/invoices/42/edit"),
        "https://shop.test/invoices/42/edit?tab=2",
    ],
)
def test_a_route_is_found_by_its_names(said: str) -> None:
    assert set(list_search_keys(said)) & set(KEYS)


@pytest.mark.parametrize(
    "said",
    [
        *("POST /invoices/{invoice}/edit", "/invoices/new/edit", "invoices", "edit", ""),
        *("get", "GET me the invoices", "get.invoices/{invoice}/edit and more"),
    ],
)
def test_other_names_do_not_find_the_route(said: str) -> None:
    assert not set(list_search_keys(said)) & set(KEYS)


@pytest.mark.parametrize("said", ["invoices", "table:invoices", "Invoices"])
def test_a_table_is_found_by_its_name(said: str) -> None:
    assert set(list_search_keys(said)) & set(list_table_keys("invoices"))


def test_parameters_are_anonymous_however_they_are_written() -> None:
    written = ["/a/{b}/c", "a/<int:b>/c/", "/a/(?P<b>[0-9]+)/c", "/A/{b?}/c?x=1"]
    assert {format_path_template(one) for one in written} == {"/a/{}/c"}


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("db::List<Key,Order>::Node::setNext", ("db", "list", "node", "setnext")),
        ("Map<String, List<std::pair<K, V>>>.put", ("map", "put")),
        ("Slice::operator<", ("slice", "operator<")),
        ("Version::<=>", ("version", "<=>")),
    ],
)
def test_type_arguments_belong_to_no_part_of_a_name(name: str, parts: tuple[str, ...]) -> None:
    assert split_name(name) == parts


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


def test_empty_and_very_long_names_are_read() -> None:
    assert split_name("a<b" * 300)[-1].endswith("a<b")
    for spell in (list_symbol_spellings, list_table_spellings, list_path_spellings):
        assert spell("") == []
        assert all(len(one) <= 10_000 for one in spell("a/" * 5_000))
    assert [*iter_route_spellings("")] == []
    assert len([*iter_route_spellings("/a" * 5_000)]) == MOST
