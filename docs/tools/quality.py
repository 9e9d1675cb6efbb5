"""The tables of the page about quality, from what benchmarks found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from docs.tools.agents import agent_quality_table
from docs.tools.code import (
    code_definitions_table,
    code_routes_table,
    code_truth_table,
    django_truth_table,
)
from docs.tools.code_questions import code_questions_table
from docs.tools.experience import merging_table
from docs.tools.tables import as_table, origin
from docs.tools.workspace import workspace_questions_table

PAGE = Path(__file__).resolve().parents[1] / "quality.md"
RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"

_MARKED = re.compile(r"(<!-- table ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MEASURES = ("nDCG@10", "recall@5", "MRR")
_LEAST_P = 0.001
_KINDS = {
    "paraphrase": "in a user's words",
    "identifier": "an exact name or code",
    "several": "spread over documents",
    "lookalike": "another text has nearly the same words",
    "all": "all",
}
_CHOSEN = {
    "harmless": "the highest that loses at most 2 % of the answers",
    "separating": "the one that separates best",
}

_OF_THEIR_OWN = frozenset(
    {
        *("merging", "agents-quality", "workspace-questions", "fusion", "hybrids"),
        *("code-truth", "code-truth-django", "code-questions", "code-routes", "code-definitions"),
    }
)
"""Tables that have a result of their own name."""

_Result = Mapping[str, Any]


def quality_page() -> str:
    """The page with its tables as the results are now."""

    def filled(mark: re.Match[str]) -> str:
        name = mark[2] if mark[2] in _OF_THEIR_OWN else "quality"
        result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        return f"{mark[1]}\n{_TABLES[mark[2]](result)}\n{mark[3]}"

    return _MARKED.sub(filled, PAGE.read_text(encoding="utf-8"))


def _modes(result: _Result) -> str:
    rows = [
        [
            mode,
            *(_interval(by_kind["all"][measure]) for measure in _MEASURES),
            f"{result['judged'][mode]:.0%}",
        ]
        for mode, by_kind in result["modes"].items()
    ]
    columns = ["mode", *_MEASURES, "judged of the first 10"]
    differences = "".join(_difference(found) for found in result["differences"])
    reranker = result["reranker"] or "the stand-in, which is no trained cross-encoder"
    return f"{as_table(columns, rows)}\nReranked by {reranker}.\n\n{differences}\n{origin(result)}"


def _fusion(result: _Result) -> str:
    """A row for each judged set: single rankings, former rules, and the product's."""
    columns = ("words", "knn", "ranks", "linear fusion", "product")
    rows = [
        [
            f"{row['set']}: {row['kind']}, {row['language']} ({row['questions']})",
            *(f"{row['rules'][name]['ndcg']:.3f}" for name in columns),
            *(f"{row['rules'][name]['ndcg_untouched']:.3f}" for name in columns),
            f"{row['rules']['product']['recall']:.2f}",
        ]
        for row in result["sets"]
    ]
    means = [
        sum(row["rules"][name][measure] for row in result["sets"]) / len(result["sets"])
        for measure in ("ndcg", "ndcg_untouched")
        for name in columns
    ]
    recall = sum(row["rules"]["product"]["recall"] for row in result["sets"]) / len(rows)
    rows.append(["mean", *(f"{mean:.3f}" for mean in means), f"{recall:.2f}"])
    names = ("words", "knn", "reciprocal ranks", "0114", "hybrid")
    heads = ["set (questions)", *names, *(f"{name}, untouched" for name in names)]
    return f"{as_table([*heads, 'recall@5, hybrid'], rows)}\nTaken {result['taken']}."


_PROGRAMS = {
    "text": "text",
    "knn": "knn",
    "hybrid": "hybrid",
    "bm25s": "bm25s",
    "langchain": "LangChain",
    "llamaindex": "LlamaIndex",
}


def _hybrids(result: _Result) -> str:
    """The product beside other programs: quality by set, times, and another model."""
    columns = ["set (questions)", *_PROGRAMS.values()]
    rows = [[_set_name(row), *_beside_hybrid(row["programs"])] for row in result["sets"]]
    rows += [
        [f"mean of {found['sets']}: {group}", *_beside_hybrid(found["programs"])]
        for group, found in result["overall"].items()
    ]
    recalls = [
        [row["set"], *(f"{row['programs'][name]['recall']:.2f}" for name in _PROGRAMS)]
        for row in result["sets"]
    ]
    times = result["milliseconds"]
    spent = ", ".join(f"{name} {times['programs'][key]}" for key, name in _PROGRAMS.items())
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    parts = [
        f"nDCG@10, and the p of hybrid against it:\n\n{as_table(columns, rows)}",
        f"Milliseconds of a question, {times['set']} (median, without its vector): {spent}.\n",
        f"recall@5:\n\n{as_table(['set', *_PROGRAMS.values()], recalls)}",
    ]
    sampled = result["multilingual"]
    if sampled["sets"]:
        names = [name for name in _PROGRAMS if name in sampled["sets"][0]["programs"]]
        table = as_table(
            ["set (questions)", *names],
            [[_set_name(row), *_beside_hybrid(row["programs"])] for row in sampled["sets"]],
        )
        parts.append(
            f"multilingual-e5-small, nDCG@10 of samples: up to {sampled['questions']} questions and"
            f" {sampled['passages']} passages of each set, those that answer among them:\n\n"
            f"{table}\nTaken {sampled['taken']}.\n"
        )
    return "\n".join([*parts, f"{versions}. {origin(result)}"])


def _set_name(row: _Result) -> str:
    return f"{row['set']}: {row['kind']}, {row['language']} ({row['questions']})"


def _beside_hybrid(programs: _Result) -> list[str]:
    """Cells of the programs; the best is in bold letters."""
    best = max(found["ndcg"] for found in programs.values())
    cells = []
    for name in _PROGRAMS:
        if name not in programs:
            continue
        value, p = programs[name]["ndcg"], programs[name]["p"]
        shown = f"**{value:.3f}**" if value == best else f"{value:.3f}"
        cells.append(shown if name == "hybrid" else f"{shown} (p {_chance(p)})")
    return cells


def _interval(found: Mapping[str, float]) -> str:
    return f"{found['mean']:.3f} ({found['low']:.2f} to {found['high']:.2f})"


def _difference(found: _Result) -> str:
    parts = ", ".join(
        f"{measure} {found[measure]['mean']:+.3f} (p {_chance(found[measure]['p'])})"
        for measure in _MEASURES
    )
    return f"- {found['of']} against {found['to']}: {parts}\n"


def _chance(p: float) -> str:
    return f"= {p:.3f}" if p >= _LEAST_P else f"< {_LEAST_P}"


def _kinds(result: _Result) -> str:
    modes = result["modes"]
    rows = [
        [
            f"{name} ({result['questions'][kind]})",
            *(
                f"{modes[mode][kind][measure]['mean']:.2f}"
                for measure in _MEASURES[:2]
                for mode in modes
            ),
        ]
        for kind, name in _KINDS.items()
    ]
    columns = ["questions", *(f"{measure}, {mode}" for measure in _MEASURES[:2] for mode in modes)]
    return as_table(columns, rows)


def _thresholds(result: _Result) -> str:
    found: Mapping[str, Any] = result["thresholds"]
    profiles = list(found)
    rows = [
        [
            _least(kept[0]),
            *(cell for of_profile in kept for cell in _kept(of_profile)),
        ]
        for kept in zip(*(found[profile]["curve"] for profile in profiles), strict=True)
    ]
    columns = [
        "least cosine",
        *(f"{profile}, {what}" for profile in profiles for what in ("answered", "rejected")),
    ]
    chosen = "".join(
        f"- {profile}, {name}: {_least(kept)}; on the other half {' and '.join(_said(kept))}\n"
        for profile in profiles
        for name, kept in (
            (_CHOSEN[which], kept) for which, kept in found[profile]["chosen"].items()
        )
    )
    return f"{as_table(columns, rows)}\n{chosen}"


def _least(kept: _Result) -> str:
    return "none" if kept["min_score"] < 0 else f"{kept['min_score']:.2f}"


def _kept(kept: _Result) -> tuple[str, str]:
    return (
        f"{kept['answered'] / kept['answerable']:.0%}",
        f"{kept['rejected'] / kept['unanswerable']:.0%}",
    )


def _said(kept: _Result) -> tuple[str, str]:
    return (
        f"{kept['answered']} of {kept['answerable']} are answered",
        f"{kept['rejected']} of {kept['unanswerable']} are rejected",
    )


_TABLES: Mapping[str, Callable[[_Result], str]] = {
    "quality": _modes,
    "kinds": _kinds,
    "thresholds": _thresholds,
    "merging": merging_table,
    "workspace-questions": workspace_questions_table,
    "code-truth": code_truth_table,
    "code-truth-django": django_truth_table,
    "agents-quality": agent_quality_table,
    "code-questions": code_questions_table,
    "code-routes": code_routes_table,
    "fusion": _fusion,
    "hybrids": _hybrids,
    "code-definitions": code_definitions_table,
}
