"""The tables of agents' documentation: what it costs, and how well it is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docs.tools.tables import as_table, in_seconds, origin

_COMMANDS = {
    "search": "`agent search`, sqlite: a fresh process",
    "loading the model": "loading the model and embedding the question alone: a fresh process",
    "list": "`agent list`: a fresh process",
    "an interpreter": "an interpreter that does nothing",
}
_INDEX = {
    "first": "the first index",
    "the model alone": "embedding the same texts alone",
    "unchanged": "an unchanged index",
    "one file edited": "one file edited",
    "question": "a question to that index",
    "question, hybrid": "the same with words",
}
_KINDS = {"reworded": "reworded", "flag": "exact flags"}


def agent_costs_table(result: Mapping[str, Any]) -> str:
    """Seconds of the clock and of CPU; then stores by their size."""
    index = result["index"]
    rows = [
        *([name, *_cost(result["commands"][key])] for key, name in _COMMANDS.items()),
        *([name, *_cost(index[key])] for key, name in _INDEX.items()),
        ["seeing that 500 files are as they were", *_cost(result["files"])],
    ]
    stores = [
        [
            f"{one['store']}, {one['chunks']:,}",
            *(_cost(one[key])[1] for key in ("write", "first", "later")),
        ]
        for one in result["stores"]
    ]
    search, model = (result["commands"][key] for key in ("search", "loading the model"))
    beside = search["cpu"] - model["cpu"]
    rate = index["first"]["cpu"] / index["the model alone"]["cpu"] - 1
    memory = {name: f"{size / 1000:.1f} KB" for name, size in result["memory"].items()}
    return (
        f"{as_table(['', 'clock', 'CPU'], rows)}\n"
        f"The index is of {index['files']} files in {index['chunks']} passages. Beside loading the"
        f" model, a search takes {in_seconds(beside)} of CPU; indexing takes {rate:.0%} more CPU"
        f" than the model alone. In memory a passage takes {memory['sqlite']} with sqlite, without"
        f" its text, and {memory['memory']} beside its text in the store `memory`.\n\n"
        f"{as_table(['store, passages: CPU', 'written', 'first question', 'others'], stores)}\n"
        f"{origin({'rounds': 1, **result})}"
    )


def agent_quality_table(result: Mapping[str, Any]) -> str:
    """Recall, rank and tokens by agent, way and kind of question."""
    rows = []
    for agent, found in result["agents"].items():
        for way, one in found.items():
            if way == "preload":
                ranks = [value for kind in _KINDS for value in (f"{one[kind]:.2f}", "–")]
            elif isinstance(one, Mapping):
                ranks = [
                    f"{one[kind][measure]:.2f}"
                    for kind in _KINDS
                    for measure in ("recall@5", "mrr")
                ]
            else:
                continue
            rows.append([f"@{agent}: {way}", *ranks, f"{one['tokens']:,.0f}"])
    measures = [f"{name}: {what}" for name in _KINDS.values() for what in ("recall@5", "MRR")]
    pages = "; ".join(
        f"@{agent}: {found['pages']} pages in {found['chunks']} passages,"
        f" {found['questions']} questions"
        for agent, found in result["agents"].items()
    )
    table = as_table(["agent, way", *measures, "tokens"], rows)
    models: dict[str, list[float]] = {}
    for found in result["agents"].values():
        for way, one in found.items():
            if way.startswith("knn, "):
                models.setdefault(way.removeprefix("knn, "), []).extend(one["best score of none"])
    none = "; ".join(f"{min(all_):.2f} to {max(all_):.2f} with {m}" for m, all_ in models.items())
    return (
        f"{table}\n{pages}. The best cosines for questions that nothing answers: {none}.\n\n"
        f"{origin({'rounds': 1, **result})}"
    )


def _cost(cost: Mapping[str, float]) -> tuple[str, str]:
    clock, cpu = (_short(cost[key]) for key in ("wall", "cpu"))
    return clock, cpu


def _short(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else in_seconds(seconds)
