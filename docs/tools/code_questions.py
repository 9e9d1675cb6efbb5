"""The table of questions to a real Laravel application: code memory and other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from docs.tools.tables import describe_origin, format_table

RESULTS: Final = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
_WAYS: Final = (
    "code memory",
    "hybrid, as other profiles",
    "vectors alone (kNN)",
    "words alone (BM25)",
)
"""Variants that the page shows; the result also has one for each switched-off step."""
_KINDS: Final = ("multi-hop", "single-hop")
_HALVES: Final = {"all": "all", "untouched": "untouched half"}


def build_code_questions_table(result: Mapping[str, Any]) -> str:
    """Return recall by kind of question, on all questions and on the half no choice is based on."""
    columns = [
        "program",
        *(f"{kind}, {name}" for kind in _KINDS for name in _HALVES.values()),
    ]
    rows = [_build_row(name, result["variants"][name]) for name in _WAYS]
    others = json.loads((RESULTS / "code-rivals.json").read_text(encoding="utf-8"))
    rows += [
        _build_row(_format_program(name, figures), figures)
        for name, figures in others["programs"].items()
    ]
    application = result["application"]
    where = f"{application['repository'].partition('://')[2]} at {application['commit'][:12]}"
    return (
        f"{format_table(columns, rows)}\n"
        f"Recall@{result['depth']} on {where}. {describe_origin(result)}"
    )


def _format_program(name: str, figures: Mapping[str, Any]) -> str:
    return f"{name} {figures['version']}" if "version" in figures else name


def _build_row(name: str, figures: Mapping[str, Any]) -> list[str]:
    if "failed" in figures:
        return [name, "not measured", *[""] * (len(_KINDS) * len(_HALVES) - 1)]
    return [name, *(f"{figures[half][kind]:.2f}" for kind in _KINDS for half in _HALVES)]
