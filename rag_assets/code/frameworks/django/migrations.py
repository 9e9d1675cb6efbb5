"""Migrations of a repository, in the order in which Django runs them on an empty database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rag_assets.code.frameworks.django.apps import Apps
from rag_assets.code.frameworks.django.modules import Module
from rag_assets.code.frameworks.django.program import Program
from rag_assets.code.model import Fact

_PAIR = 2
_MIGRATION = "django.db.migrations"


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration.

    Attributes:
        app, name: label of its app; its name.
        module: its file.
        needs: those that run before it, as (label, name).
        precedes: those that run after it.
        replaces: those that it stands for.
        operations: assignments to its list of operations.
    """

    app: str
    name: str
    module: Module
    needs: tuple[tuple[str, str], ...]
    precedes: tuple[tuple[str, str], ...]
    replaces: tuple[tuple[str, str], ...]
    operations: tuple[Fact, ...]


def migrations_of(program: Program, apps: Apps) -> Iterator[Migration]:
    """The migrations of a repository, in no particular order."""
    user = program.user_model.partition(".")[0]
    for module in program:
        if ".migrations." not in f".{module.name}" or "Migration" not in module.declared:
            continue
        lineage = program.ancestry(f"{module.name}.Migration")
        if not any(one.startswith(_MIGRATION) for one in lineage):
            continue
        package, _, name = module.name.rpartition(".")
        yield Migration(
            apps.label(package.removesuffix(".migrations")),
            name,
            module,
            tuple(_pairs(module.constant("Migration", "dependencies"), user)),
            tuple(_pairs(module.constant("Migration", "run_before"), user)),
            tuple(_pairs(module.constant("Migration", "replaces"), user)),
            tuple(module.values("Migration", "operations")),
        )


def in_order(migrations: Iterable[Migration]) -> list[Migration]:
    """Migrations as they run; what others replace is left out. Circles are cut somewhere."""
    held = sorted(migrations, key=lambda one: (one.app, one.name))
    gone = {pair: (one.app, one.name) for one in held for pair in one.replaces}
    kept = {(one.app, one.name): one for one in held if (one.app, one.name) not in gone}
    needs: dict[tuple[str, str], list[tuple[str, str]]] = {key: [] for key in kept}
    for key, one in kept.items():
        needs[key] += [found for pair in one.needs for found in _meant(pair, gone, kept)]
        for pair in one.precedes:
            for found in _meant(pair, gone, kept):
                needs[found].append(key)
    # What a replaced migration needed, the one that replaces it needs.
    for one in held:
        key = gone.get((one.app, one.name), ("", ""))
        if key in needs:
            inner = (found for pair in one.needs for found in _meant(pair, gone, kept))
            needs[key] += [found for found in inner if found != key]
    return [kept[key] for key in _sorted(needs)]


def _meant(
    pair: tuple[str, str],
    gone: dict[tuple[str, str], tuple[str, str]],
    kept: dict[tuple[str, str], Migration],
) -> Iterator[tuple[str, str]]:
    """The migration that a dependency names, also `__first__` and `__latest__`."""
    app, name = pair
    if name in {"__first__", "__latest__"}:
        of_app = [key for key in kept if key[0] == app]
        if of_app:
            yield of_app[0] if name == "__first__" else of_app[-1]
        return
    for _ in range(10):
        if pair not in gone:
            break
        pair = gone[pair]
    if pair in kept:
        yield pair


def _sorted(needs: dict[tuple[str, str], list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Keys after all that they need."""
    found: dict[tuple[str, str], None] = {}
    entered: set[tuple[str, str]] = set()
    todo = [(key, False) for key in reversed(list(needs))]
    while todo:
        key, left = todo.pop()
        if left:
            found[key] = None
        elif key not in entered:
            entered.add(key)
            todo.append((key, True))
            todo.extend((one, False) for one in reversed(needs[key]) if one not in entered)
    return list(found)


def _pairs(value: Any, user: str) -> Iterator[tuple[str, str]]:
    for item in value.get("items", []) if isinstance(value, dict) else []:
        if not isinstance(item, dict):
            continue
        parts = item.get("items", [])
        if len(parts) == _PAIR and all(isinstance(part, str) for part in parts):
            yield parts[0], parts[1]
        elif item["of"] == "call":
            first = item["arguments"][0] if item["arguments"] else None
            stated = first if isinstance(first, str) else f"{user}."
            yield stated.partition(".")[0], "__first__"
