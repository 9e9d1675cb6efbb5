"""Choose the systems of rag-assets that tests see, as if the others were not installed.

With `RAG_ASSETS_TEST_SYSTEMS=documents`, all tests of a session see only the system `documents`:
the folders of the others cannot be imported, and they have no entry points.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType

VARIABLE = "RAG_ASSETS_TEST_SYSTEMS"
SYSTEMS = Path(__file__).resolve().parents[1] / "rag_assets" / "systems"


class _Missing(MetaPathFinder):
    """A finder that refuses to import the folders of systems."""

    def __init__(self, folders: Collection[str]) -> None:
        self._packages = tuple(f"rag_assets.systems.{folder}" for folder in folders)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for package in self._packages:
            if fullname == package or fullname.startswith(f"{package}."):
                raise ModuleNotFoundError(f"{fullname} is not installed", name=fullname)
        return None


def folders() -> set[str]:
    """Return the names of the folders of systems."""
    return {file.parent.name for file in SYSTEMS.glob("*/__init__.py")}


def hide_all_but(kept: Collection[str]) -> None:
    """Hide all other systems of rag-assets in this process, permanently."""
    hidden = folders() - {name.replace("-", "_") for name in kept}
    sys.meta_path.insert(0, _Missing(hidden))
    every = Distribution.entry_points.fget

    def entry_points(self: Distribution) -> EntryPoints:
        return EntryPoints(one for one in every(self) if not _is_of(one, hidden))

    # Patch the class, so that the order of imports does not matter.
    Distribution.entry_points = property(entry_points)


def _is_of(entry: EntryPoint, hidden: Collection[str]) -> bool:
    parent, _, folder = entry.module.rpartition(".")
    return parent == "rag_assets.systems" and folder in hidden


def hide_as_asked() -> None:
    """Hide the systems that the environment variable does not name; without it, none."""
    if (kept := os.environ.get(VARIABLE)) is not None:
        hide_all_but(kept.split())
