"""Texts: sections of Markdown, and events of runs."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.systems.code_memory.languages.texts import (
    RUN_EVENT,
    list_known_bugs,
    read_markdown,
    render_run_event,
)
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.relations.relations import build_relations
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


def test_globs_and_mentions_of_a_document_are_facts() -> None:
    facts = read_markdown(TEXT).facts
    told = {fact.kind: dict(fact.values) for fact in facts}
    assert told["applies_to"]["globs"] == ["app/**/*.php", "tests/**"]
    assert told["applies_to"]["always"] is True
    mentions = [fact.values for fact in facts if fact.kind == "mentions"]
    assert [(values["name"], values["what"]) for values in mentions] == [
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


def test_a_change_states_that_a_run_changed_a_file() -> None:
    path = "app/Http/Controllers/Invoice Controller.php"
    summary = "Totals are rounded.\n\nTwice."
    text = render_run_event("file_updated", "run-7", path, "refactor", summary)
    read = read_code(text, RUN_EVENT)
    [unit] = read.units
    assert (unit.start, unit.end, unit.symbol) == (0, len(text.rstrip()), "run:run-7")
    assert read.notes == ()
    found = build_relations(read.facts, names="none")
    [edge] = found.edges
    assert (edge.kind, edge.source, edge.target) == ("changed_by", f"file:{path}", "run:run-7")
    assert edge.how == "stated"
    [symbol] = found.symbols
    assert (symbol.name, symbol.short, symbol.role) == ("run:run-7", "run:run-7", "run")


def test_a_summary_defines_its_run_and_states_no_change() -> None:
    text = render_run_event("final_summary", "r", None, "", "\nAdded invoices.\nAnd tests.\n")
    assert text == "final_summary\nrun: r\n\nAdded invoices.\nAnd tests.\n"
    read = read_code(text, RUN_EVENT)
    found = build_relations(read.facts, names="none")
    assert [symbol.name for symbol in found.symbols] == ["run:r"]
    assert found.edges == ()
    [unit] = read.units
    assert all(text[cut - 1] == "\n" for cut in unit.cuts)


def test_words_of_a_summary_state_nothing() -> None:
    words = "run: other\nfile_deleted app/Secret.php"
    text = render_run_event("file_created", "r", "a.php", "", words)
    found = build_relations(read_code(text, RUN_EVENT).facts, names="none")
    assert [(edge.source, edge.target) for edge in found.edges] == [("file:a.php", "run:r")]
    assert [symbol.name for symbol in found.symbols] == ["run:r"]


OTHERS = {
    "nothing": "",
    "no kind": "something else\nrun: r\n",
    "no run": "file_updated a.php\n\nwords\n",
    "a change of nothing": "file_updated\nrun: r\n",
    "a summary of a file": "final_summary a.php\nrun: r\n",
    "a run in the words": "file_updated a.php\n\nrun: r\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=list(OTHERS))
def test_other_texts_state_nothing(text: str) -> None:
    read = read_code(text, RUN_EVENT)
    assert read.facts == ()
    assert len(read.notes) == 1
