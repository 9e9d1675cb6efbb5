"""Tables of agents' documentation: its costs, and its recall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docs.tools.tables import describe_origin, format_seconds, format_table

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


def build_agent_costs_table(result: Mapping[str, Any]) -> str:
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


def build_agent_quality_table(result: Mapping[str, Any]) -> str:
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
