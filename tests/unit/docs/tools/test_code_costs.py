"""Tables of code memory's costs, from results of the current and of a former benchmark."""

from typing import Any

from docs.tools.code import build_code_costs_table

_MS = {"p50": 20.0, "p95": 31.5}
_COMPARED = {"walk and search": {"p50": 52.25, "p95": 80.0}, "search alone": _MS, "ratio": 2.61}
_MACHINE = {
    "versions": {"elasticsearch server": "9.5.3", "rag-assets": "0.2.0"}, "cores": 2,
    "processor": "X", "memory_gb": 8.0,
    "python": "3.11", "load_average": [0.5],
}  # fmt: skip


def result(questions: dict[str, Any]) -> dict[str, Any]:
    return {
        "taken": "2026-11-25", "documents": 424, "symbols": 1_318, "edges": 5_425,
        "seconds": {"cold": 16.5, "noop": 0.5, "commit of 10 files": 3.8},
        "walk of depth 5 in ms": _MS, "questions": questions, "machine": _MACHINE,
    }  # fmt: skip


def test_table_shows_questions_with_and_without_the_walk_and_their_ratio() -> None:
    again = {**_COMPARED, "ratio": 1.2}
    table = build_code_costs_table(result({"named": _MS, "asked": _COMPARED, "asked again": again}))
    first, later = (line for line in table.split("\n") if line.startswith("| that name nothing"))
    assert first.endswith("| 52.2 ms | 80.0 ms | 20.0 ms | 31.5 ms | 2.61 |")
    assert later.endswith("| 1.20 |")
    assert "Not measured yet." not in table


def test_table_of_a_result_without_both_rounds_keeps_the_other_parts() -> None:
    table = build_code_costs_table(result({"named": _MS, **_COMPARED}))
    assert "Not measured yet." in table
    assert "| nothing changed | 0.50 s |" in table
