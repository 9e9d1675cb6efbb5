"""Tables of workspaces: judged questions, and vectors in pgvector and Elasticsearch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from docs.tools.tables import describe_origin, format_table

_NDCG: Final = "nDCG@10"
_MODELS: Final = {"while the other waits": "while the new model waits"}
_HALVES: Final = {"all": "all", "untouched": "untouched half"}
_STORES: Final = ("Elasticsearch", "pgvector")
_SHARES: Final = ("1 %", "10 %", "all")
_CHIPS: Final = {
    "found": "a hit holds the answer",
    "cited": "the answer states it: the cited block holds it",
    "claim, meaning": "the answer repeats only the question: the cited block holds it",
    "claim, words": "the same, with the block chosen by words alone",
    "hit": "the link of the first such hit leads to a block that holds it",
    "cited by the nearest sentence": "the answer is the nearest sentence: the cited block holds it",
}

_Result = Mapping[str, Any]


def build_workspace_questions_table(result: _Result) -> str:
    """Return rankings with and without chunks of blocks, chips, and a change of the model."""
    ranked = [
        [name, *(_format_interval(of[half]) for half in _HALVES)]
        for name, of in result["rankings"][_NDCG].items()
    ]
    chips = [
        [label, *(_format_share(result["chips"][half][name]) for half in _HALVES)]
        for name, label in _CHIPS.items()
    ]
    gain = result["rankings"]["blocks against pages alone, hybrid"]
    changed = result["another model"]
    models = "; ".join(
        f"{_MODELS.get(name, name)} {of['mean']:.3f}" for name, of in changed[_NDCG].items()
    )
    columns = [*(f"{_NDCG}, {name}" for name in _HALVES.values())]
    return (
        f"{format_table(['ranking', *columns], ranked)}\n"
        f"Blocks against pages alone, hybrid: {gain['mean']:+.3f} (p = {gain['p']:.3f}).\n\n"
        f"{format_table(['citations and links', *_HALVES.values()], chips)}\n"
        f"A change of the model, {_NDCG}, hybrid: {models};"
        f" {changed['questions meanwhile']} questions were answered while it was built.\n\n"
        f"{describe_origin(result)}"
    )


def build_pgvector_table(result: _Result) -> str:
    """Return recall and latency of both stores, by the share of entries that a filter selects."""
    rows = [
        [
            f"{_shorten(corpus)}, {share}",
            *(
                cell
                for store in _STORES
                for cell in _format_recall_and_times(cases[f"{store}, {share}"])
            ),
        ]
        for corpus, cases in result["corpora"].items()
        for share in _SHARES
    ]
    times = "; ".join(
        f"{_shorten(corpus)}: "
        + ", ".join(f"{name} {s:.1f} s" for name, s in of["written in seconds"].items())
        for corpus, of in result["corpora"].items()
    )
    measures = [f"{store}: {what}" for store in _STORES for what in ("recall@10", "p50", "p95")]
    columns = ["vectors, share that the filter leaves", *measures]
    return f"{format_table(columns, rows)}\nWritten in: {times}.\n\n{describe_origin(result)}"


def _format_recall_and_times(figures: Mapping[str, float]) -> list[str]:
    times = (f"{figures[p]:.1f} ms" for p in ("p50 ms", "p95 ms"))
    return [f"{figures['recall@10']:.4f}", *times]


def _shorten(corpus: str) -> str:
    """Return a corpus's name without the revision of its embedder."""
    return corpus.partition("@")[0]


def _format_interval(estimate: Mapping[str, float]) -> str:
    return f"{estimate['mean']:.3f} ({estimate['low']:.2f} to {estimate['high']:.2f})"


def _format_share(counts: Mapping[str, int]) -> str:
    return f"{counts['right']} of {counts['of']}"
