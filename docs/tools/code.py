"""Tables about code memory, from its benchmark results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from docs.tools.tables import describe_origin, format_seconds, format_table

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


_NOT_MEASURED = "Not measured yet.\n"
_ROUNDS = {"asked": "first time", "asked again": "repeated"}
_WALKS = {"question": "of a question", "relations, 5 steps": "of `code relations`, 5 steps"}


def build_code_costs_table(result: _Result) -> str:
    """Return the costs of a repository's syncs, and of walks within questions."""
    seconds = result["seconds"]
    syncs = format_table(
        ["sync, without imports", "time"],
        [
            ["everything is new", format_seconds(seconds["cold"])],
            ["nothing changed", format_seconds(seconds["noop"])],
            ["a commit of 10 files", format_seconds(seconds["commit of 10 files"])],
        ],
    )
    size = (
        f"{result['documents']:,} documents, {result['symbols']:,} definitions,"
        f" {result['edges']:,} relations.\n"
    )
    return (
        f"{syncs}\n{size}\n{_build_questions_table(result)}\n"
        f"{describe_origin({'rounds': 1, **result})}"
    )


def _build_questions_table(result: _Result) -> str:
    questions = result["questions"]
    if not _ROUNDS.keys() <= questions.keys():
        return _NOT_MEASURED
    walk = result["walk of depth 5 in ms"]
    columns = ["questions", "with the walk, p50", "p95", "search alone, p50", "p95", "ratio of p50"]
    rows = [
        [
            f"that name nothing, {title}",
            *_format_percentiles(questions[name]["walk and search"]),
            *_format_percentiles(questions[name]["search alone"]),
            f"{questions[name]['ratio']:.2f}",
        ]
        for name, title in _ROUNDS.items()
    ]
    rows += [
        [
            "relations alone, without a vector",
            *_format_percentiles(questions["named"]),
            "–",
            "–",
            "–",
        ],
        ["a walk of 5 steps", *_format_percentiles(walk), "–", "–", "–"],
    ]
    return format_table(columns, rows)


def build_code_scale_table(result: _Result) -> str:
    """Return the latencies of walks over a large tenant's relations."""
    ways = result["walks in ms"]
    rows = [
        [f"{title}, {way}", *_format_percentiles(percentiles[name])]
        for name, title in _WALKS.items()
        for way, percentiles in ways.items()
    ]
    table = format_table([f"walks over {result['edges']:,} relations", "p50", "p95"], rows)
    graph_facts = (
        f"In memory they take {result['memory of the graph in MB']:.0f} MB, load in"
        f" {format_seconds(result['seconds to load it'])}, and follow an edit within"
        f" {format_seconds(result['seconds to follow an edit'])}."
    )
    return f"{table}\n{graph_facts}\n\n{describe_origin({'rounds': 1, **result})}"


def build_reported_edits_table(result: _Result) -> str:
    """Return how soon an edit that a run reports is found."""
    row = [
        f"{result['trials']}, reported by {result['told by']}",
        *(format_seconds(result[name]) for name in ("p50", "p95", "max")),
    ]
    columns = ["commits of a file", "p50", "p95", "longest"]
    return f"{format_table(columns, [row])}\n{describe_origin({'rounds': 1, **result})}"


def _format_percentiles(percentiles: Mapping[str, float]) -> tuple[str, str]:
    return f"{percentiles['p50']:.1f} ms", f"{percentiles['p95']:.1f} ms"


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
