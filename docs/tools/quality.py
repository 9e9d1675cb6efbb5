"""The tables of the quality page, from benchmark results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from docs.tools.code import (
    build_code_definitions_table,
    build_code_questions_table,
    build_code_routes_table,
    build_code_truth_table,
    build_django_truth_table,
)
from docs.tools.systems import (
    build_agent_quality_table,
    build_experience_quality_table,
    build_merging_table,
    build_workspace_questions_table,
)
from docs.tools.tables import describe_origin, format_table

PAGE = Path(__file__).resolve().parents[1] / "quality.md"
RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"

_MARKED = re.compile(r"(<!-- table ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_MEASURES = ("nDCG@10", "recall@5", "MRR")
_LEAST_P = 0.001
_SIGNIFICANT_P = 0.05
_KINDS = {
    "paraphrase": "in a user's words",
    "identifier": "an exact name or code",
    "several": "spread over documents",
    "lookalike": "another text has nearly the same words",
    "all": "all",
}
_CHOSEN = {
    "harmless": "the highest threshold that loses at most 2 % of the answers",
    "separating": "the threshold that separates best",
}

_SAME_NAMES = frozenset(
    {
        *(
            "merging",
            "experience",
            "agents-quality",
            "workspace-questions",
            "fusion",
            "hybrids",
            "claims",
        ),
        *("code-truth", "code-truth-django", "code-questions", "code-routes", "code-definitions"),
    }
)
"""Tables whose result file has the same name."""
_RESULT_NAMES = {"calibration": "thresholds"}
"""Result names of tables whose result file has another name."""

_SHOWN_PERCENT = frozenset({-100, 10, 20, 30, 40, 45, 50, 60, 70})
"""Thresholds that the page shows, in hundredths; -100 is none."""

_Result = Mapping[str, Any]


def build_quality_page() -> str:
    """Return the page with up-to-date tables."""

    def fill_table(mark: re.Match[str]) -> str:
        name = _RESULT_NAMES.get(mark[2], mark[2] if mark[2] in _SAME_NAMES else "quality")
        result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        return f"{mark[1]}\n{_TABLES[mark[2]](result)}\n{mark[3]}"

    return _MARKED.sub(fill_table, PAGE.read_text(encoding="utf-8"))


def _build_modes_table(result: _Result) -> str:
    rows = [
        [
            mode,
            *(_format_interval(by_kind["all"][measure]) for measure in _MEASURES),
            f"{result['judged'][mode]:.0%}",
        ]
        for mode, by_kind in result["modes"].items()
    ]
    columns = ["mode", *_MEASURES, "judged of the first 10"]
    differences = "".join(_format_difference(difference) for difference in result["differences"])
    reranker = result["reranker"] or "the stand-in, which is no trained cross-encoder"
    return (
        f"{format_table(columns, rows)}\nReranked by {reranker}.\n\n{differences}\n"
        f"{describe_origin(result)}"
    )


_RULES = {
    "words": "words",
    "knn": "vectors",
    "ranks": "reciprocal ranks",
    "product": "hybrid",
}


def _build_fusion_table(result: _Result) -> str:
    """Return a row for each judged set: single rankings, reciprocal ranks, the product's rule."""
    rows = [
        [
            _format_set_name(row),
            *(f"{row['rules'][name]['ndcg']:.3f}" for name in _RULES),
            f"{row['rules']['product']['recall']:.2f}",
        ]
        for row in result["sets"]
    ]

    def mean(name: str, measure: str) -> float:
        sets = result["sets"]
        return float(sum(row["rules"][name][measure] for row in sets) / len(sets))

    recall = f"{mean('product', 'recall'):.2f}"
    for half, measure in (("all questions", "ndcg"), ("untouched halves", "ndcg_untouched")):
        means = (f"{mean(name, measure):.3f}" for name in _RULES)
        rows.append([f"mean of {half}", *means, recall if measure == "ndcg" else "–"])
    heads = ["set (questions)", *_RULES.values(), "recall@5, hybrid"]
    return f"{format_table(heads, rows)}\nTaken {result['taken']}."


_OTHERS = ("hybrid", "bm25s", "langchain", "llamaindex")
_PROGRAMS = {
    "text": "text",
    "knn": "knn",
    "hybrid": "hybrid",
    "bm25s": "bm25s",
    "langchain": "LangChain",
    "llamaindex": "LlamaIndex",
}


def _build_hybrids_tables(result: _Result) -> str:
    """Compare the product with other programs: quality by set, times, and another model."""
    means = [
        [f"nDCG@10, {found['sets']} sets: {group}", *_mark_chance(found["programs"], _PROGRAMS)]
        for group, found in result["overall"].items()
    ]
    means += [
        [f"recall@5, {len(sets)} sets: {group}", *_format_mean_recalls(sets)]
        for group in result["overall"]
        if (
            sets := [
                row for row in result["sets"] if (row["language"] == "en") == (group == "English")
            ]
        )
    ]
    rows = [
        [_format_set_name(row), *_mark_chance(row["programs"], _OTHERS)] for row in result["sets"]
    ]
    times = result["milliseconds"]
    spent = ", ".join(f"{name} {times['programs'][key]}" for key, name in _PROGRAMS.items())
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    parts = [
        format_table(["mean", *_PROGRAMS.values()], means),
        format_table(["nDCG@10 by set (questions)", *(_PROGRAMS[name] for name in _OTHERS)], rows),
        f"Milliseconds per question, {times['set']} (median, without its vector): {spent}.\n",
    ]
    sampled = result["multilingual"]
    if sampled["sets"]:
        names = [name for name in _PROGRAMS if name in sampled["sets"][0]["programs"]]
        table = format_table(
            ["multilingual-e5-small, nDCG@10", *names],
            [
                [_format_set_name(row), *_mark_chance(row["programs"], names)]
                for row in sampled["sets"]
            ],
        )
        parts.append(
            f"{table}\nSamples of up to {sampled['questions']} questions and"
            f" {sampled['passages']} passages, taken {sampled['taken']}.\n"
        )
    return "\n".join([*parts, f"{versions}. {describe_origin(result)}"])


def _format_set_name(row: _Result) -> str:
    return f"{row['set']}: {row['kind']}, {row['language']} ({row['questions']})"


def _mark_chance(programs: _Result, names: Iterable[str]) -> list[str]:
    """Format the programs' scores: bold for the best, ≈ for a difference that may be chance."""
    shown = {name: programs[name] for name in names}
    best = max(round(figures["ndcg"], 3) for figures in shown.values())
    cells = []
    for name, figures in shown.items():
        value = f"{figures['ndcg']:.3f}"
        mark = " ≈" if name != "hybrid" and figures["p"] >= _SIGNIFICANT_P else ""
        cells.append((f"**{value}**" if float(value) == best else value) + mark)
    return cells


def _format_mean_recalls(sets: Sequence[_Result]) -> Iterable[str]:
    for name in _PROGRAMS:
        yield f"{sum(row['programs'][name]['recall'] for row in sets) / len(sets):.2f}"


def _format_interval(estimate: Mapping[str, float]) -> str:
    return f"{estimate['mean']:.3f} ({estimate['low']:.2f} to {estimate['high']:.2f})"


def _format_difference(difference: _Result) -> str:
    parts = ", ".join(
        f"{measure} {difference[measure]['mean']:+.3f} (p {_format_p(difference[measure]['p'])})"
        for measure in _MEASURES
    )
    return f"- {difference['of']} against {difference['to']}: {parts}\n"


def _format_p(p: float) -> str:
    return f"= {p:.3f}" if p >= _LEAST_P else f"< {_LEAST_P}"


def _build_kinds_table(result: _Result) -> str:
    modes = result["modes"]
    rows = [
        [
            f"{name} ({result['questions'][kind]})",
            *(f"{modes[mode][kind]['nDCG@10']['mean']:.2f}" for mode in modes),
        ]
        for kind, name in _KINDS.items()
    ]
    return format_table(["nDCG@10 by kind of question (questions)", *modes], rows)


def _build_thresholds_table(result: _Result) -> str:
    by_profile: Mapping[str, Any] = result["thresholds"]
    profiles = list(by_profile)
    rows = [
        [
            _format_threshold(effects[0]),
            *(cell for of_profile in effects for cell in _format_shares(of_profile)),
        ]
        for effects in zip(*(by_profile[profile]["curve"] for profile in profiles), strict=True)
        if round(100 * effects[0]["min_score"]) in _SHOWN_PERCENT
    ]
    columns = [
        "threshold",
        *(f"{profile}, {what}" for profile in profiles for what in ("answer kept", "empty result")),
    ]
    chosen = "".join(
        f"- {profile}, {name}: {_format_threshold(effects)}; on the other half "
        f"{' and '.join(_describe_counts(effects))}\n"
        for profile in profiles
        for name, effects in (
            (_CHOSEN[which], effects) for which, effects in by_profile[profile]["chosen"].items()
        )
    )
    return f"{format_table(columns, rows)}\n{chosen}"


def _build_calibration_table(result: _Result) -> str:
    """Return the thresholds that calibration sets, and what they keep, by corpus."""
    rows = [
        [
            (
                f"{name}, {corpus['passages']} passages, {corpus['answered']} +"
                f" {corpus['unanswered']} questions"
            ),
            f"{figures['floor'][1]:.2f}",
            f"{figures['kept']:.0%}",
            f"{figures['rejected']:.0%}",
            f"{figures['passages_above']:.1f}",
        ]
        for name, corpus in result["corpora"].items()
        for figures in (corpus["widths"]["1"],)
    ]
    columns = ["corpus", "threshold", "answers kept", "empty results", "hits kept of 5"]
    return f"{format_table(columns, rows)}\nTaken {result['taken']}.\n"


def _build_claims_table(result: _Result) -> str:
    """Return how many true and wrong sentences the citation check judges correctly."""
    rows = [
        [
            name,
            str(figures["true"]),
            f"{figures['recall']:.1%}",
            str(figures["wrong"]),
            f"{figures['caught of near']:.0%}",
            f"{figures['caught']:.0%}",
            "–" if figures["precision"] is None else f"{figures['precision']:.0%}",
        ]
        for half, languages in _CLAIMS.items()
        for language, name in languages.items()
        for figures in (result[half][language],)
    ]
    by_kind = result["untouched"]["en"]["caught by kind"]
    kinds = ", ".join(
        f"{_WRONG[kind]} {by_kind[kind]:.0%}"
        for kind in sorted(_WRONG, key=lambda kind: -by_kind[kind])
    )
    columns = [
        *("sentences", "true", "kept", "wrong", "near and wrong: removed", "all wrong: removed"),
        "precision",
    ]
    return (
        f"{format_table(columns, rows)}\n"
        f"Removed by kind of error, English, written afterwards: {kinds}.\n\n"
        f"Taken {result['taken']}.\n"
    )


_CLAIMS = {
    "developed": {
        "en": "English, rules developed with them",
        "de": "German",
        "fr": "French",
        "es": "Spanish",
        "ru": "Russian",
        "zh": "Chinese",
        "ja": "Japanese",
        "ar": "Arabic",
        "across languages": "in another language than the passage",
    },
    "untouched": {"en": "**English, written afterwards**"},
}
_WRONG = {
    "number": "number",
    "date": "date",
    "negation": "negation",
    "condition": "condition",
    "direction": "direction",
    "unit": "unit",
    "verb": "verb",
    "relation": "relation",
    "entity": "another thing or person",
    "quantifier": "quantity word",
    "modality": "modality",
}


def _format_threshold(effect: _Result) -> str:
    return "none" if effect["min_score"] < 0 else f"{effect['min_score']:.2f}"


def _format_shares(effect: _Result) -> tuple[str, str]:
    return (
        f"{effect['answered'] / effect['answerable']:.0%}",
        f"{effect['rejected'] / effect['unanswerable']:.0%}",
    )


def _describe_counts(effect: _Result) -> tuple[str, str]:
    return (
        f"{effect['answered']} of {effect['answerable']} keep their answer",
        f"{effect['rejected']} of {effect['unanswerable']} get an empty result",
    )


_TABLES: Mapping[str, Callable[[_Result], str]] = {
    "quality": _build_modes_table,
    "kinds": _build_kinds_table,
    "thresholds": _build_thresholds_table,
    "merging": build_merging_table,
    "experience": build_experience_quality_table,
    "workspace-questions": build_workspace_questions_table,
    "code-truth": build_code_truth_table,
    "code-truth-django": build_django_truth_table,
    "agents-quality": build_agent_quality_table,
    "code-questions": build_code_questions_table,
    "code-routes": build_code_routes_table,
    "fusion": _build_fusion_table,
    "claims": _build_claims_table,
    "calibration": _build_calibration_table,
    "hybrids": _build_hybrids_tables,
    "code-definitions": build_code_definitions_table,
}
