"""Free space of Elasticsearch's nodes, compared with the flood stage of the cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from elasticsearch import Elasticsearch

from rag_assets.common.disk_space import DiskSpace

_DISK: Final = "cluster.routing.allocation.disk."
_FLOOD: Final = f"{_DISK}watermark.flood_stage"
_LEVELS: Final = ("defaults", "persistent", "transient")
_DEFAULT_FLOOD: Final = "95%"
_DEFAULT_HEADROOM: Final = "100gb"
_UNITS: Final = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)([kmgt]?b)")


def node_disks(client: Elasticsearch) -> list[DiskSpace]:
    """Return the disk of each node; empty if the cluster does not compare them.

    Raises:
        ApiError, TransportError: the cluster does not answer, or not to this account.
    """
    answer = client.cluster.get_settings(
        include_defaults=True, flat_settings=True, filter_path=[f"*.{_DISK}*"]
    )
    settings: dict[str, str] = {}
    for level in _LEVELS:
        settings |= answer.get(level, {})
    if settings.get(f"{_DISK}threshold_enabled") == "false":
        return []
    nodes = client.nodes.stats(metric="fs")["nodes"].values()
    return [_space(node, settings) for node in nodes if node.get("fs", {}).get("total")]


def _space(node: Mapping[str, Any], settings: Mapping[str, str]) -> DiskSpace:
    total = node["fs"]["total"]
    size = int(total["total_in_bytes"])
    return DiskSpace(
        f"Elasticsearch (node {node.get('name', '?')})",
        int(total["available_in_bytes"]),
        flood_stage_bytes(size, settings),
    )


def flood_stage_bytes(size: int, settings: Mapping[str, str]) -> int:
    """Return how many bytes of a disk must be free for its indexes to accept entries.

    Args:
        size: size of the disk.
        settings: settings of the cluster, by their full names.
    """
    flood = settings.get(_FLOOD, _DEFAULT_FLOOD)
    if (absolute := _parse_bytes(flood)) is not None:
        return absolute
    used = float(flood.rstrip("%")) / (100 if flood.endswith("%") else 1)
    most = _parse_bytes(settings.get(f"{_FLOOD}.max_headroom", _DEFAULT_HEADROOM))
    required = int(size * (1 - used))
    return required if most is None else min(required, most)


def _parse_bytes(text: str) -> int | None:
    """Return the bytes that a setting names; None if it is a percentage, or unlimited (-1)."""
    found = _SIZE.fullmatch(text.lower())
    return None if found is None else int(float(found[1]) * _UNITS[found[2]])
