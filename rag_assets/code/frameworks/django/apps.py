"""Apps: which label the models and migrations of a module have."""

from __future__ import annotations

from typing import Final

from rag_assets.code.frameworks.django.program import Program

_CONFIGS: Final = frozenset({"django.apps.AppConfig", "django.apps.config.AppConfig"})


class Apps:
    """The apps of a repository.

    Args:
        program: the repository.
    """

    def __init__(self, program: Program) -> None:
        self._labels: dict[str, str] = {}
        for module in program:
            for symbol, fact in module.declared.items():
                if fact.values["role"] != "class" or symbol not in module.bases:
                    continue
                lineage = program.ancestry(f"{module.name}.{symbol}")
                if self._is_config(program, lineage):
                    self._configure(program, lineage)
        for module in program:
            for name in ("INSTALLED_APPS", "LOCAL_APPS", "PROJECT_APPS"):
                for fact in module.values("", name):
                    value = fact.values["value"]
                    items = value.get("items", []) if isinstance(value, dict) else []
                    for item in items:
                        if isinstance(item, str) and item not in self._labels:
                            if program.module(item) is not None:
                                self._labels[item] = item.rpartition(".")[2]

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

    def _is_config(self, program: Program, lineage: list[str]) -> bool:
        return any(
            one in _CONFIGS or (program.place(one) is None and one.endswith("AppConfig"))
            for one in lineage
        )

    def _configure(self, program: Program, lineage: list[str]) -> None:
        stated: dict[str, str] = {}
        for one in lineage:
            place = program.place(one)
            for key in ("name", "label"):
                value = None if place is None else place.module.constant(place.symbol, key)
                if isinstance(value, str):
                    # The label goes with the name that the same class, or a nearer one, states.
                    if key == "name" or "name" in stated or key not in stated:
                        stated.setdefault(key, value)
        if "name" in stated:
            self._labels[stated["name"]] = stated.get("label", stated["name"].rpartition(".")[2])
