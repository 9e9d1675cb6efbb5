"""The tables of workspaces: judged questions, and vectors in pgvector beside Elasticsearch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from docs.tools.tables import as_table, origin

_NDCG: Final = "nDCG@10"
_HALVES: Final = {"all": "all", "untouched": "untouched half"}
_CHIPS: Final = {
    "found": "a passage that holds the answer is among the hits",
    "cited": "of answers that state it, the block cited holds it",
    "claim, meaning": "a claim in the question's words alone leads to that block",
    "claim, words": "the same, if words alone told it",
    "hit": "the block that the first such hit leads to holds it",
    "cited by the nearest sentence": "answers of the nearest sentence whose cited block holds it",
}

_Result = Mapping[str, Any]


def workspace_questions_table(result: _Result) -> str:
    """Rankings with chunks of blocks and without, chips, and a change of the model."""
    ranked = [
        [name, *(_interval(of[half]) for half in _HALVES)]
        for name, of in result["rankings"][_NDCG].items()
    ]
    chips = [
        [told, *(_share(result["chips"][half][name]) for half in _HALVES)]
        for name, told in _CHIPS.items()
    ]
    gain = result["rankings"]["blocks against pages alone, hybrid"]
    changed = result["another model"]
    models = "; ".join(f"{name} {of['mean']:.3f}" for name, of in changed[_NDCG].items())
    columns = [*(f"{_NDCG}, {name}" for name in _HALVES.values())]
    return (
        f"{as_table(['ranking', *columns], ranked)}\n"
        f"Blocks against pages alone, hybrid: {gain['mean']:+.3f} (p = {gain['p']:.3f}).\n\n"
        f"{as_table(['chips', *_HALVES.values()], chips)}\n"
        f"A change of the model, {_NDCG}, hybrid: {models};"
        f" {changed['questions meanwhile']} questions were answered while it was built.\n\n"
        f"{sum(result['records'].values())} records, {result['questions']} questions."
        f" {origin(result)}"
    )


def pgvector_table(result: _Result) -> str:
    """Recall and latency of both back ends, by the share that a filter leaves."""
    rows = [
        [
            f"{_short(corpus)}, {case}",
            f"{of['recall@10']:.4f}",
            *(f"{of[p]:.1f} ms" for p in ("p50 ms", "p95 ms")),
        ]
        for corpus, cases in result["corpora"].items()
        for case, of in cases.items()
        if "recall@10" in of
    ]
    times = "; ".join(
        f"{_short(corpus)}: "
        + ", ".join(f"{name} {s:.1f} s" for name, s in of["written in seconds"].items())
        for corpus, of in result["corpora"].items()
    )
    columns = ["vectors, back end, share that the filter leaves", "recall@10", "p50", "p95"]
    return f"{as_table(columns, rows)}\nWritten in: {times}.\n\n{origin(result)}"


def _short(corpus: str) -> str:
    """The name of vectors without the revision of what made them."""
    return corpus.partition("@")[0]


def _interval(found: Mapping[str, float]) -> str:
    return f"{found['mean']:.3f} ({found['low']:.2f} to {found['high']:.2f})"


def _share(found: Mapping[str, int]) -> str:
    return f"{found['right']} of {found['of']}"
