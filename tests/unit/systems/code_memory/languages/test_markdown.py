"""Sections, decisions, rules and mentions in documents."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.systems.code_memory.languages.texts import list_known_bugs, read_markdown
from rag_assets.systems.code_memory.symbols.model import CodeText
from tests.unit.systems.code_memory.languages.readers import assert_covers

TEXT = """---
globs: app/**/*.php, "tests/**"
description: Style
alwaysApply: true
---
Intro.

# 1. Money

Status: Accepted
Date: 2024-02-03

```
## no heading
```

## Why
See `App\\Models\\Invoice`, `InvoiceController@store`, `app/Models/Invoice.php`, `POST /invoices`,
[the report](../report.md#top), [out](https://x.example/a.md), `true`, and `invoices.store`.

Under
-----
#### deep
text
"""


def test_sections_are_named_by_the_headings_above_them() -> None:
    reading = read_markdown(TEXT)
    assert_covers(TEXT, reading)
    names = [unit.symbol for unit in reading.units if unit.role == "section"]
    assert names == ["1. Money", "1. Money > Why", "1. Money > Under"]


def test_facts_of_documents() -> None:
    facts = read_markdown(TEXT).facts
    told = {fact.kind: dict(fact.values) for fact in facts}
    assert told["applies_to"]["globs"] == ["app/**/*.php", "tests/**"]
    assert told["applies_to"]["always"] is True
    mentions = [
        (fact.values["name"], fact.values["what"]) for fact in facts if fact.kind == "mentions"
    ]
    assert mentions == [
        ("App\\Models\\Invoice", "symbol"),
        ("InvoiceController@store", "symbol"),
        ("app/Models/Invoice.php", "path"),
        ("POST /invoices", "route"),
        ("../report.md", "path"),
        ("invoices.store", "name"),
    ]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("# Bugs\n\n## One\na\n## Two\nb\n", 2),
        ("# Bugs\n\n- one\n  more\n- two\n", 2),
        ("# Bugs\n\n## One\na\n### Steps\nb\n### Cause\nc\n## Two\nd\n", 2),
    ],
    ids=["sections", "items", "sections with sections"],
)
def test_each_known_bug_is_a_unit(text: str, count: int) -> None:
    bugs = [unit for unit in list_known_bugs(text) if unit.role == "section"]
    assert len(bugs) == count
    assert all(unit.alone for unit in bugs)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*TEXT, *TEXT.splitlines(keepends=True), "\r\n"])).map("".join))
def test_units_cover_any_text(text: str) -> None:
    assert_covers(text, read_markdown(text))
    assert_covers(text, CodeText(list_known_bugs(text), ()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["#", "# a\n", "`", "](", "---\n", "x" * 9, "- a\n"], ids=range(7)
)
def test_hostile_texts_are_read_in_time(piece: str) -> None:
    began = process_time()
    text = piece * 100_000
    assert_covers(text, read_markdown(text))
    assert process_time() - began < 8
