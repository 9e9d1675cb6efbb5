"""Texts of events of runs, and their facts."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.languages.texts import RUN_EVENT, render_run_event
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.relations.relations import build_relations


def test_a_change_states_that_a_run_changed_a_file() -> None:
    path = "app/Http/Controllers/Invoice Controller.php"
    text = render_run_event(
        "file_updated", "run-7", path, "refactor", "Totals are rounded.\n\nTwice."
    )
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


def test_what_a_summary_says_is_no_statement() -> None:
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
