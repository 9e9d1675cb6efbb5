"""Tables of agents' documentation, experience and workspaces, from benchmark results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from docs.tools.tables import describe_origin, format_seconds, format_table

_Result = Mapping[str, Any]
_COMMANDS = {
    "search": "`agent search`, sqlite: a fresh process",
    "loading the model": "loading the model and embedding one question: a fresh process",
    "list": "`agent list`: a fresh process",
    "an interpreter": "a Python interpreter alone",
}
_INDEX = {
    "first": "the first index",
    "the model alone": "its embeddings alone",
    "unchanged": "an unchanged index",
    "one file edited": "one file edited",
    "question": "a search by vectors in a running process",
    "question, hybrid": "a hybrid search in a running process",
}
_KINDS = {"reworded": "reworded", "flag": "exact flags"}


def build_agent_costs_table(result: _Result) -> str:
    """Return the table of wall and CPU times, and the table of stores by size."""
    index = result["index"]
    rows = [
        *([name, *_format_cost(result["commands"][key])] for key, name in _COMMANDS.items()),
        *([name, *_format_cost(index[key])] for key, name in _INDEX.items()),
        ["checking that 500 files are unchanged", *_format_cost(result["files"])],
    ]
    stores = [
        [
            f"{store['store']}, {store['chunks']:,}",
            *(_format_cost(store[key])[1] for key in ("write", "first", "later")),
        ]
        for store in result["stores"]
    ]
    search, model = (result["commands"][key] for key in ("search", "loading the model"))
    search_cpu = search["cpu"] - model["cpu"]
    rate = index["first"]["cpu"] / index["the model alone"]["cpu"] - 1
    memory = {name: f"{size / 1000:.1f} KB" for name, size in result["memory"].items()}
    columns = ["store, passages: CPU", "write", "first search", "later searches"]
    return (
        f"{format_table(['', 'clock', 'CPU'], rows)}\n"
        f"The index has {index['files']} files in {index['chunks']} passages. In addition to the"
        f" model, a search takes {format_seconds(search_cpu)} of CPU, and indexing {rate:.0%} more"
        " CPU"
        f" than the embeddings. A passage takes {memory['sqlite']} of memory with sqlite, and"
        f" {memory['memory']} plus its text with the store `memory`.\n\n"
        f"{format_table(columns, stores)}\n"
        f"{describe_origin({'rounds': 1, **result})}"
    )


def build_agent_quality_table(result: _Result) -> str:
    """Return recall, rank and tokens by agent, mode and kind of question."""
    rows = []
    for agent, figures in result["agents"].items():
        for mode, mode_figures in figures.items():
            if mode == "preload":
                ranks = [value for kind in _KINDS for value in (f"{mode_figures[kind]:.2f}", "–")]
            elif isinstance(mode_figures, Mapping):
                ranks = [
                    f"{mode_figures[kind][measure]:.2f}"
                    for kind in _KINDS
                    for measure in ("recall@5", "mrr")
                ]
            else:
                continue
            rows.append([f"@{agent}: {mode}", *ranks, f"{mode_figures['tokens']:,.0f}"])
    measures = [f"{name}: {what}" for name in _KINDS.values() for what in ("recall@5", "MRR")]
    pages = "; ".join(
        f"@{agent}: {figures['pages']} pages in {figures['chunks']} passages,"
        f" {figures['questions']} questions"
        for agent, figures in result["agents"].items()
    )
    table = format_table(["agent, way", *measures, "tokens"], rows)
    models: dict[str, list[float]] = {}
    for figures in result["agents"].values():
        for mode, mode_figures in figures.items():
            if mode.startswith("knn, "):
                models.setdefault(mode.removeprefix("knn, "), []).extend(
                    mode_figures["best score of none"]
                )
    ranges = "; ".join(f"{min(all_):.2f} to {max(all_):.2f} with {m}" for m, all_ in models.items())
    return (
        f"{table}\n{pages}. Best cosines of unanswerable questions: {ranges}.\n\n"
        f"{describe_origin({'rounds': 1, **result})}"
    )


def _format_cost(cost: Mapping[str, float]) -> tuple[str, str]:
    clock, cpu = (_format_duration(cost[key]) for key in ("wall", "cpu"))
    return clock, cpu


def _format_duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else format_seconds(seconds)


_ASKED = {"failure": "after failures", "task": "before tasks"}
_CATEGORIES = {
    "reworded": "the same, reworded",
    "two-solutions": "one problem, two solutions",
    "two-problems": "two problems, one solution",
    "number": "another number or unit",
    "identifier": "another name",
    "negation": "negated or reversed",
}


def build_merging_table(result: _Result) -> str:
    """Return how many pairs of each kind were merged."""
    rows = [
        [name, str(figures["pairs"]), str(figures["near"]), str(figures["merged"])]
        for category, name in _CATEGORIES.items()
        if (figures := result["by_category"].get(category))
    ]
    columns = ["held-out pairs", "pairs", "near by their vectors", "merged"]
    summary = "; ".join(
        f"{name}: precision {figures['precision']:.3f}, recall {figures['recall']:.2f},"
        f" {figures['merged']} of {figures['pairs']} pairs merged"
        for name, figures in (
            ("Held-out pairs", result["held_out"]),
            ("pairs that the bounds were chosen by", result["chosen_on"]),
        )
    )
    bounds = result["bounds"]
    return (
        f"{format_table(columns, rows)}\nLeast cosine of problems {bounds['problem']:.2f}, of"
        f" solutions {bounds['solution']:.2f} ({result['model']}). {summary}. "
        f"{_describe_machine(result)}\n"
    )


def build_experience_quality_table(result: _Result) -> str:
    """Return the recall of questions after failures and before tasks."""
    rows = [
        [
            _ASKED[kind],
            str(figures["questions"]),
            f"{figures['recall']:.2f}",
            f"{figures['mrr']:.2f}",
            f"{figures['threshold']:.2f}",
            f"{figures['held_out']['kept']:.0%}",
            f"{figures['held_out']['rejected']:.0%}",
        ]
        for kind, figures in result["kinds"].items()
    ]
    columns = [
        *("asked", "questions", "recall@3", "MRR", "highest harmless cosine"),
        *("on the other half: answers kept", "others rejected"),
    ]
    return f"{format_table(columns, rows)}\n{_describe_machine(result)}\n"


def build_experience_costs_table(result: _Result) -> str:
    """Return the costs of captures, checkpoints, syncs and questions."""
    first, later = result["first_sync"], result["later_sync"]
    rate = (
        f"{result['entries_per_second']:.0f} entries a second, {first['cpu']:.0f} s of CPU,"
        f" {first['peak_mb']:.0f} MB"
    )
    count, more = f"{result['entries']:,}", result["later_entries"]
    rows = [
        ["captures", f"{result['captures_per_second']:.0f} a second"],
        [
            f"the request of a checkpoint of {count} entries",
            format_seconds(result["checkpoint_request_seconds"]),
        ],
        [f"the sync of {count} entries", f"{format_seconds(first['wall'])}, {rate}"],
        [
            f"the sync of {more} more",
            f"{format_seconds(later['wall'])}, {later['peak_mb']:.0f} MB",
        ],
        [
            "a look for checkpoints, of all tenants",
            _format_percentiles(result["checkpoints_tick_ms"]),
        ],
        ["whether the tenant is due, once a minute", _format_percentiles(result["tick_ms"])],
        ["a question after a failure", _format_percentiles(result["question_ms"])],
    ]
    return f"{format_table(['what', 'cost'], rows)}\n{_describe_machine(result)}\n"


def _format_percentiles(percentiles: Mapping[str, float]) -> str:
    return f"p50 {percentiles['p50']:.0f} ms, p95 {percentiles['p95']:.0f} ms"


def _describe_machine(result: _Result) -> str:
    facts = result["machine"]
    return (
        f"Taken {result['taken']}; {facts['cores']} cores of {facts['processor']},"
        f" {facts['memory_gb']:.0f} GB."
    )


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
