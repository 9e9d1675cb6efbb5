"""Collects values of the modules of a package, so that no list has to be maintained."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any


def collect_values(package: ModuleType, *kinds: type) -> tuple[Any, ...]:
    """Collect the values of these types from a package's modules, sorted by module name."""
    values_by_id: dict[int, Any] = {}
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        values_by_id |= {
            id(value): value for value in vars(loaded).values() if isinstance(value, kinds)
        }
    return tuple(values_by_id.values())
