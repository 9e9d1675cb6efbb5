"""The resources of sensors, for ticks that tests evaluate."""

from typing import Any

from rag_assets.definitions import build_resources


def sensor_resources() -> dict[str, Any]:
    """Build our resources, except those that start work: workers, and a tenant's lock."""
    names = ("postgres", "runs", "checks")
    built = build_resources()
    return {name: built[name] for name in (f"rag_assets_{name}" for name in names)}
