"""A pytest plugin that hides one system: its folder cannot be imported, its entry point is absent.

`RAG_ASSETS_TEST_WITHOUT` names the system, such as `team-guidelines`. Test modules that import the
system are left out. `make test-without` runs the core's unit tests without each system in turn.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

NAME: Final = os.environ["RAG_ASSETS_TEST_WITHOUT"]
FOLDER: Final = f"rag_assets.systems.{NAME.replace('-', '_')}"


class Missing(importlib.abc.MetaPathFinder):
    """Refuses to import the system's folder."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if f"{fullname}.".startswith(f"{FOLDER}."):
            raise ModuleNotFoundError(f"{fullname} is not installed", name=fullname)
        return None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    is_module = collection_path.suffix == ".py"
    return True if is_module and FOLDER in collection_path.read_text(encoding="utf-8") else None


_find_entry_points = importlib.metadata.entry_points


def find_other_entry_points(**parameters: Any) -> Any:
    found = _find_entry_points(**parameters)
    if parameters.get("group") != "rag_assets.systems":
        return found
    return [entry for entry in found if entry.name != NAME]


sys.meta_path.insert(0, Missing())
importlib.metadata.entry_points = find_other_entry_points  # type: ignore[assignment]
