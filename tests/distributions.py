"""Distributions for tests: a dist-info folder on the path, as an installer leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def distribution(folder: Path, name: str, systems: Mapping[str, str], version: str = "1.0") -> None:
    """Install the metadata of a distribution into a folder that is on the path of Python.

    Args:
        folder: of site packages.
        name: of the distribution.
        systems: entry points of systems, as "module:attribute" by name.
        version: of the distribution.
    """
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = (f"{key} = {value}\n" for key, value in systems.items())
    (info / "entry_points.txt").write_text("[rag_assets.systems]\n" + "".join(lines))
