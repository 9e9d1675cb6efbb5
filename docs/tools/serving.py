"""The tables of the service under load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from docs.tools.tables import as_table, median_of, origin

_Run = Mapping[str, Any]

_TARGETS = {
    ("service", False): "**the service**, every question new",
    ("service", True): "the service, 50 questions repeated",
    ("wrk", False): "the service, load by wrk",
    ("bare", False): "**bare Elasticsearch**, its client on an event loop",
    ("bare-threads", False): "bare Elasticsearch, its client in threads",
    ("bare-lean", False): "bare Elasticsearch, no more candidates than hits",
}
_PROCESSES = {
    "service": "service",
    "elasticsearch": "Elasticsearch",
    "postgres": "Postgres",
    "load": "load generator",
}
_CALLERS = (1, 50)
"""Numbers of concurrent callers that the summary shows."""
_USUAL = {"mode": "hybrid", "top_k": 5, "callers": 50, "tenant": "bench"}


def serving_tables(result: Mapping[str, Any]) -> str:
    """Return times and CPU of every target, and ratios of service to bare as the work changes."""
    runs: Sequence[_Run] = result["runs"]
    usual = _like(runs, **_USUAL)
    rows = [
        _row(name, found)
        for (target, repeated), name in _TARGETS.items()
        if (found := _like(usual, target=target, repeated=repeated))
    ]
    chunks = result["chunks"]["bench"]
    columns = [
        f"50 callers, {chunks:,} chunks, hybrid, 5 hits",
        *("p50", "p95", "p99", "per second"),
        *(f"CPU {name}" for name in _PROCESSES.values()),
    ]
    compared = [
        row for name, changed in _changes(result["chunks"]) if (row := _ratio(runs, name, changed))
    ]
    ratios = ["", "service p50", "bare p50", "ratio", "service CPU", "bare CPU", "ratio"]
    busy = median_of(runs, "elsewhere")
    return (
        f"{as_table(columns, rows)}\nCPU is milliseconds per request. Other processes kept"
        f" {busy:.2f} cores busy.\n\n{as_table(ratios, compared)}\n"
        f"CPU is the sum of all processes.\n\n{origin(result)}"
    )


def usual_latencies(result: Mapping[str, Any]) -> Mapping[int, Mapping[str, float]]:
    """Return milliseconds of the service's usual search, by number of concurrent callers."""
    runs: Sequence[_Run] = result["runs"]
    return {
        callers: {part: median_of(alike, part) for part in ("p50", "p95")}
        for callers in _CALLERS
        if (
            alike := _like(runs, **{**_USUAL, "callers": callers}, target="service", repeated=False)
        )
    }


def _changes(chunks: Mapping[str, int]) -> list[tuple[str, Mapping[str, Any]]]:
    sizes = [
        (f"{count:,} chunks", {"tenant": tenant})
        for tenant, count in chunks.items()
        if tenant != _USUAL["tenant"]
    ]
    return [
        ("50 callers, hybrid, 5 hits", {}),
        *((f"{callers} at once", {"callers": callers}) for callers in (10, 1)),
        *((f"{top_k} hits", {"top_k": top_k}) for top_k in (20, 50)),
        *((f"{mode} alone", {"mode": mode}) for mode in ("knn", "text")),
        *(size for size in sorted(sizes, key=lambda size: chunks[size[1]["tenant"]])),
    ]


def _ratio(runs: Sequence[_Run], name: str, changed: Mapping[str, Any]) -> list[str] | None:
    alike = _like(runs, **{**_USUAL, **changed}, repeated=False)
    ours = _like(alike, target="service")
    # Compare with the faster use of the client.
    bares = [found for target in ("bare", "bare-threads") if (found := _like(alike, target=target))]
    if not ours or not bares:
        return None
    bare = min(bares, key=lambda found: median_of(found, "p50"))
    p50, bare_p50 = median_of(ours, "p50"), median_of(bare, "p50")
    cpu, bare_cpu = _all_cpu(ours), _all_cpu(bare)
    return [
        name,
        *(_ms(p50), _ms(bare_p50), f"{p50 / bare_p50:.2f}"),
        *(_ms(cpu), _ms(bare_cpu), f"{cpu / bare_cpu:.2f}"),
    ]


def _row(name: str, runs: Sequence[_Run]) -> list[str]:
    return [
        name,
        *(_ms(median_of(runs, part)) for part in ("p50", "p95", "p99")),
        f"{median_of(runs, 'per_second'):.0f}",
        *(f"{median(run['cpu_ms'][process] for run in runs):.1f}" for process in _PROCESSES),
    ]


def _like(runs: Sequence[_Run], **wanted: Any) -> list[_Run]:
    return [run for run in runs if all(run[name] == value for name, value in wanted.items())]


def _all_cpu(runs: Sequence[_Run]) -> float:
    return median(sum(run["cpu_ms"].values()) for run in runs)


def _ms(value: float) -> str:
    return f"{value:.1f} ms"
