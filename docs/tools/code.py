"""Tables about code memory, from its benchmark results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from docs.tools.tables import format_table

_Result = Mapping[str, Any]
_Cause = tuple[str, int, str, str]
"""Application, number of differences, their kind, and their cause."""
_OF_DJANGO = ("routes", "columns")
_FEW = 5
"""Least number of differences for a cause to be listed."""
_PLAIN = {
    "is told as conditional": "is reported as conditional",
    "is told without one": "is reported without one",
    "which is told here": "which is derived here",
}
"""Plain words for those in stored results."""
_SHOWN = 12
"""Digits of a commit's id to show."""


def build_code_truth_table(result: _Result) -> str:
    """Return routes and columns that Laravel and rag-assets find, by application."""
    rows = [
        [
            f"{name} at {figures['commit'][:_SHOWN]}, Laravel {figures['routes']['laravel']}",
            *(_format_shares(figures["routes"])),
            *(_format_shares(figures["columns"])),
        ]
        for name, figures in result["applications"].items()
    ]
    columns = ["application", "routes", "recall", "precision", "columns", "recall", "precision"]
    causes = _list_causes(_read_causes(result))
    return f"{format_table(columns, rows)}\n{causes}\nTaken {result['taken']}.\n"


def build_django_truth_table(result: _Result) -> str:
    """Return routes and columns that Django and rag-assets find, by application."""
    rows = [
        [
            f"{name} {figures['version']}",
            *(one for what in _OF_DJANGO for one in _format_shares(figures[what])),
        ]
        for name, figures in result["applications"].items()
    ]
    heads = (head for what in _OF_DJANGO for head in (what, "recall", "precision"))
    causes = _list_causes(
        (name, count, f"{what} {side}", cause)
        for name, figures in result["applications"].items()
        for what in _OF_DJANGO
        for key, side in (("missed", "not derived"), ("wrong", "not Django's"))
        for cause, count in figures[what][key].items()
    )
    table = format_table(["application", *heads], rows)
    return f"{table}\n{causes}\nTaken {result['taken']}.\n"


def build_code_routes_table(result: _Result) -> str:
    """Return the names that the walk finds for judged routes, by application."""
    rows = [
        [
            f"{name} at {result['commits'][name][:_SHOWN]}",
            *(
                f"{sum(counts[key] for counts in figures['kinds'].values()):,}"
                for key in ("judged", "found", "right")
            ),
            f"{figures['recall']:.3f}",
            f"{figures['precision']:.3f}",
        ]
        for name, figures in result["applications"].items()
    ]
    whole = result["all"]
    totals = f"Together: precision {whole['precision']:.3f}, recall {whole['recall']:.3f}."
    heads = ["application", "names judged", "found", "right", "recall", "precision"]
    return f"{format_table(heads, rows)}\n{totals} Taken {result['taken']}.\n"


def build_code_definitions_table(result: _Result) -> str:
    """Return exports and definitions compared with those of a compiler or a judge."""
    rows = [
        [
            f"{name} at {figures['commit'][:_SHOWN]}, {about}",
            f"{figures['true']:,}",
            f"{figures['recall']:.3f}",
            f"{figures['precision']:.3f}",
        ]
        for language, about in _LANGUAGES.items()
        for name, figures in result[language].items()
    ]
    table = format_table(["repository", "names", "recall", "precision"], rows)
    return f"{table}\nTaken {result['taken']}.\n"


_LANGUAGES = {
    "typescript": "exports by TypeScript's compiler",
    "swift": "types and functions by hand",
}


def _format_shares(figures: Mapping[str, Any]) -> Iterator[str]:
    yield f"{figures['true']:,}"
    yield f"{figures['recall']:.3f}"
    yield f"{figures['precision']:.3f}"


def _list_causes(causes: Iterable[_Cause]) -> str:
    """List frequent causes of differences, and count the rare ones."""
    lines = []
    rare = 0
    for name, count, what, cause in causes:
        if count < _FEW:
            rare += count
            continue
        lines.append(f"- {name}: {count:,} {what}: {_simplify(cause)}\n")
    if rare:
        lines.append(f"- rarer causes: {rare} differences in all\n")
    return "".join(lines)


def _simplify(cause: str) -> str:
    for words, plain in _PLAIN.items():
        cause = cause.replace(words, plain)
    return cause


def _read_causes(result: _Result) -> Iterator[_Cause]:
    for name, figures in result["applications"].items():
        for what in ("routes", "columns"):
            for side in ("missed", "wrong"):
                for cause, names in figures[what][side].items():
                    yield name, len(names), f"{what} {_SIDES[side]}", cause


_SIDES = {"missed": "not derived", "wrong": "not Laravel's"}
