"""Keys of routes and tables: the spellings people use, and what they find."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.symbols.names import (
    format_path_template,
    list_route_keys,
    list_search_keys,
    list_table_keys,
    split_name,
)

KEYS = list_route_keys(("GET", "HEAD"), "/invoices/{invoice}/edit", "invoices.edit")


@pytest.mark.parametrize(
    "said",
    [
        "invoices.edit",
        "Invoices.Edit",
        "/invoices/{invoice}/edit",
        "/invoices/{id}/edit/",
        "/invoices/42/edit",
        "/invoices/0b7ce4b2-4f35-4a52-9d8c-3f1a2b3c4d5e/edit?tab=2",
        "GET /invoices/{invoice}/edit",
        "head /invoices/7/edit",
        "route:GET /invoices/{invoice}/edit",
        "invoices/{invoice}/edit",
        "GET invoices/42/edit",
        "GET|HEAD /invoices/42/edit",
        "GET:/invoices/42/edit",
        "https://shop.test/invoices/42/edit?tab=2",
    ],
)
def test_a_route_is_found_by_what_people_call_it(said: str) -> None:
    assert set(list_search_keys(said)) & set(KEYS)


@pytest.mark.parametrize(
    "said",
    [
        *("POST /invoices/{invoice}/edit", "/invoices/new/edit", "invoices", "edit", ""),
        *("get", "GET me the invoices", "get.invoices/{invoice}/edit and more"),
    ],
)
def test_nothing_else_finds_it(said: str) -> None:
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


def test_long_names_without_an_end_of_type_arguments_are_split_quickly() -> None:
    assert split_name("a<b" * 300)[-1].endswith("a<b")
