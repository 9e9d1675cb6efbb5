"""Tables of searches: the service under load, and vector index types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from docs.tools.tables import compute_median, describe_origin, format_seconds, format_table

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


def build_serving_tables(result: Mapping[str, Any]) -> str:
    """Return times and CPU of every target, and ratios of service to bare as the work changes."""
    runs: Sequence[_Run] = result["runs"]
    usual = _select_runs(runs, **_USUAL)
    rows = [
        _build_row(name, found)
        for (target, repeated), name in _TARGETS.items()
        if (found := _select_runs(usual, target=target, repeated=repeated))
    ]
    chunks = result["chunks"]["bench"]
    columns = [
        f"50 callers, {chunks:,} chunks, hybrid, 5 hits",
        *("p50", "p95", "p99", "per second"),
        *(f"CPU {name}" for name in _PROCESSES.values()),
    ]
    compared = [
        row
        for name, changed in _list_changes(result["chunks"])
        if (row := _build_ratio_row(runs, name, changed))
    ]
    ratios = ["", "service p50", "bare p50", "ratio", "service CPU", "bare CPU", "ratio"]
    busy = compute_median(runs, "elsewhere")
    return (
        f"{format_table(columns, rows)}\nCPU is milliseconds per request. Other processes kept"
        f" {busy:.2f} cores busy.\n\n{format_table(ratios, compared)}\n"
        f"CPU is the sum of all processes.\n\n{describe_origin(result)}"
    )


def compute_usual_latencies(result: Mapping[str, Any]) -> Mapping[int, Mapping[str, float]]:
    """Return milliseconds of the service's usual search, by number of concurrent callers."""
    runs: Sequence[_Run] = result["runs"]
    return {
        callers: {part: compute_median(alike, part) for part in ("p50", "p95")}
        for callers in _CALLERS
        if (
            alike := _select_runs(
                runs, **{**_USUAL, "callers": callers}, target="service", repeated=False
            )
        )
    }


def _list_changes(chunks: Mapping[str, int]) -> list[tuple[str, Mapping[str, Any]]]:
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


def _build_ratio_row(
    runs: Sequence[_Run], name: str, changed: Mapping[str, Any]
) -> list[str] | None:
    alike = _select_runs(runs, **{**_USUAL, **changed}, repeated=False)
    service_runs = _select_runs(alike, target="service")
    # Compare with the faster use of the client.
    bares = [
        found
        for target in ("bare", "bare-threads")
        if (found := _select_runs(alike, target=target))
    ]
    if not service_runs or not bares:
        return None
    bare = min(bares, key=lambda found: compute_median(found, "p50"))
    p50, bare_p50 = compute_median(service_runs, "p50"), compute_median(bare, "p50")
    cpu, bare_cpu = _sum_cpu(service_runs), _sum_cpu(bare)
    return [
        name,
        *(_format_milliseconds(p50), _format_milliseconds(bare_p50), f"{p50 / bare_p50:.2f}"),
        *(_format_milliseconds(cpu), _format_milliseconds(bare_cpu), f"{cpu / bare_cpu:.2f}"),
    ]


def _build_row(name: str, runs: Sequence[_Run]) -> list[str]:
    return [
        name,
        *(_format_milliseconds(compute_median(runs, part)) for part in ("p50", "p95", "p99")),
        f"{compute_median(runs, 'per_second'):.0f}",
        *(f"{median(run['cpu_ms'][process] for run in runs):.1f}" for process in _PROCESSES),
    ]


def _select_runs(runs: Sequence[_Run], **wanted: Any) -> list[_Run]:
    return [run for run in runs if all(run[name] == value for name, value in wanted.items())]


def _sum_cpu(runs: Sequence[_Run]) -> float:
    return median(sum(run["cpu_ms"].values()) for run in runs)


def _format_milliseconds(value: float) -> str:
    return f"{value:.1f} ms"


_NOTHING = "–"
_KINDS = frozenset({"int8_hnsw", "hnsw", "bbq_hnsw"})
"""Cases that the page shows; the result also has variants of merging and oversampling."""
_COLUMNS = (
    "entries, index",
    "written in",
    "CPU until quiet",
    "disk",
    "read from memory",
    "recall@10",
    "p50",
    "p95",
    "CPU per search",
    "another tenant's recall",
)
_RAW = "total_vec_size_bytes"
"""Size of the raw vectors; with quantized vectors, raw ones are read for candidates only."""
_QUANTIZED = ("total_veb_size_bytes", "total_veq_size_bytes")


def build_graphs_table(result: Mapping[str, Any]) -> str:
    """Return the costs of building and searching an index, by kind and size, and the refusals."""
    rows = [
        _build_graph_row(row)
        for row in result["rows"]
        if row["case"] in _KINDS and "refused" not in row
    ]
    refused = {row["case"]: row["refused"] for row in result["rows"] if "refused" in row}
    below = "".join(f"`{case}` is refused: {why}.\n\n" for case, why in refused.items())
    return f"{format_table(_COLUMNS, rows)}\n{below}{describe_origin(result)}"


def _build_graph_row(row: Mapping[str, Any]) -> list[str]:
    return [
        f"{row['entries']:,}, {row['case']}",
        format_seconds(row["writing"]),
        format_seconds(row["cpu"]),
        f"{row['megabytes']:.0f} MB",
        _format_memory(row),
        f"{row['recall']:.3f}",
        _format_as_milliseconds(row["p50"]),
        _format_as_milliseconds(row["p95"]),
        _format_as_milliseconds(row["cpu_search"]),
        f"{row['neighbour_recall']:.3f}",
    ]


def _format_memory(row: Mapping[str, Any]) -> str:
    sizes = row["off_heap"]
    if not sizes:
        return _NOTHING
    read = sizes["total_size_bytes"]
    if any(sizes[name] for name in _QUANTIZED):
        read -= sizes[_RAW]
    return f"{read / 1e6:.0f} MB"


def _format_as_milliseconds(seconds: float) -> str:
    return f"{1_000 * seconds:.1f} ms"
