"""The table of vector index types, from the benchmark's results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docs.tools.tables import describe_origin, format_seconds, format_table

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
        _build_row(row) for row in result["rows"] if row["case"] in _KINDS and "refused" not in row
    ]
    refused = {row["case"]: row["refused"] for row in result["rows"] if "refused" in row}
    below = "".join(f"`{case}` is refused: {why}.\n\n" for case, why in refused.items())
    return f"{format_table(_COLUMNS, rows)}\n{below}{describe_origin(result)}"


def _build_row(row: Mapping[str, Any]) -> list[str]:
    return [
        f"{row['entries']:,}, {row['case']}",
        format_seconds(row["writing"]),
        format_seconds(row["cpu"]),
        f"{row['megabytes']:.0f} MB",
        _format_memory(row),
        f"{row['recall']:.3f}",
        _format_milliseconds(row["p50"]),
        _format_milliseconds(row["p95"]),
        _format_milliseconds(row["cpu_search"]),
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


def _format_milliseconds(seconds: float) -> str:
    return f"{1_000 * seconds:.1f} ms"
