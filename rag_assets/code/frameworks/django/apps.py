"""Apps: which label the models and migrations of a module have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rag_assets.code.frameworks.django.program import Program
from rag_assets.code.model import Fact

_CONFIGS: Final = frozenset({"django.apps.AppConfig", "django.apps.config.AppConfig"})
_LISTS: Final = ("INSTALLED_APPS", "LOCAL_APPS", "PROJECT_APPS")


class Apps:
    """The apps of a repository.

    Args:
        program: the repository.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._labels: dict[str, str] = {}
        for module in program:
            for symbol, fact in module.declared.items():
                if fact.values["role"] == "class" and symbol in module.bases:
                    self._configure(program.ancestry(f"{module.name}.{symbol}"))
        for module in program:
            for name in _LISTS:
                self._install(module.values("", name))

    def label(self, module: str) -> str:
        """The label of the app that a module belongs to."""
        parts = module.split(".")
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end])
            if name in self._labels:
                return self._labels[name]
        for part in ("models", "migrations"):
            if part in parts[1:]:
                return parts[parts.index(part, 1) - 1]
        return parts[-2] if len(parts) > 1 else parts[-1]

    def _install(self, lists: Iterable[Fact]) -> None:
        """Apps that settings list by their packages."""
        for fact in lists:
            value = fact.values["value"]
            for item in value.get("items", []) if isinstance(value, dict) else []:
                known = isinstance(item, str) and self._program.module(item) is not None
                if known and item not in self._labels:
                    self._labels[item] = item.rpartition(".")[2]

    def _configure(self, lineage: Sequence[str]) -> None:
        """A configuration's name and label, its own or those of an ancestor."""
        if not any(self._is_config(one) for one in lineage):
            return
        name = next((v for one in lineage if (v := self._stated(one, "name"))), "")
        label = next((v for one in lineage if (v := self._stated(one, "label"))), "")
        if name:
            self._labels[name] = label or name.rpartition(".")[2]

    def _is_config(self, name: str) -> bool:
        outside = self._program.place(name) is None
        return name in _CONFIGS or (outside and name.endswith("AppConfig"))

    def _stated(self, name: str, key: str) -> str:
        place = self._program.place(name)
        value = None if place is None else place.module.constant(place.symbol, key)
        return value if isinstance(value, str) else ""
