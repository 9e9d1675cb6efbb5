"""The table of vector index types, from the benchmark's results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docs.tools.tables import as_table, in_seconds, origin

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


def graphs_table(result: Mapping[str, Any]) -> str:
    """Return the costs of building and searching an index, by kind and size, and the refusals."""
    rows = [_row(row) for row in result["rows"] if row["case"] in _KINDS and "refused" not in row]
    refused = {row["case"]: row["refused"] for row in result["rows"] if "refused" in row}
    below = "".join(f"`{case}` is refused: {why}.\n\n" for case, why in refused.items())
    return f"{as_table(_COLUMNS, rows)}\n{below}{origin(result)}"


def _row(row: Mapping[str, Any]) -> list[str]:
    return [
        f"{row['entries']:,}, {row['case']}",
        in_seconds(row["writing"]),
        in_seconds(row["cpu"]),
        f"{row['megabytes']:.0f} MB",
        _memory(row),
        f"{row['recall']:.3f}",
        _milliseconds(row["p50"]),
        _milliseconds(row["p95"]),
        _milliseconds(row["cpu_search"]),
        f"{row['neighbour_recall']:.3f}",
    ]


def _memory(row: Mapping[str, Any]) -> str:
    sizes = row["off_heap"]
    if not sizes:
        return _NOTHING
    read = sizes["total_size_bytes"]
    if any(sizes[name] for name in _QUANTIZED):
        read -= sizes[_RAW]
    return f"{read / 1e6:.0f} MB"


def _milliseconds(seconds: float) -> str:
    return f"{1_000 * seconds:.1f} ms"
