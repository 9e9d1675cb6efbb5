"""Follows names that modules re-export to their definitions, and back to the importing files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rag_assets.ingest.sources.model import path_of
from rag_assets.systems.code_memory.catalog.found_relations import Direction, FoundEdge, NamesCalled
from rag_assets.systems.code_memory.relations.reexports import (
    Handed,
    group_members_by_reexport,
    list_import_names,
    list_possible_reexports,
    resolve_reexport,
)
from rag_assets.systems.code_memory.symbols.names import short_name
from rag_assets.systems.code_memory.symbols.naming import (
    ALL,
    CALLED,
    HANDED,
    depends_on_place,
    find_definition,
)

_DEEPEST: Final = 6
"""Maximum number of modules in a chain of re-exports."""

_MOST: Final = 500
"""Maximum number of names to look up at once."""


class Sought(NamedTuple):
    """A name in a file that no definition has directly.

    Attributes:
        source: the repository.
        name: the name, qualified by the file's imports as far as the path of the file shows.
        path: the path of the file.
    """

    source: str
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class HandedOn:
    """Follows names through the modules that re-export them.

    Attributes:
        edges: returns the readable edges that start or end at names.
        called: returns names of definitions by their short names.
    """

    edges: Callable[[Sequence[str], Direction], Sequence[FoundEdge]]
    called: Callable[[Collection[str]], Mapping[str, NamesCalled]]

    def definitions(self, names: Iterable[Sought]) -> dict[Sought, str]:
        """Return the definition for each name that leads to exactly one definition.

        Args:
            names: the names; those that start with CALLED are ignored, since no module exports
                them.
        """
        left = {one: {(one.name, one.path)} for one in names if not one.name.startswith(CALLED)}
        seen = {one: set(ways) for one, ways in left.items()}
        found: dict[Sought, str] = {}
        for _ in range(_DEEPEST):
            left = dict([*left.items()][:_MOST])
            handed = self._read_reexports(name for ways in left.values() for name, _ in ways)
            nexts = {
                one: {
                    to for way in ways for to in resolve_reexport(*way, handed.get(one.source, {}))
                }
                for one, ways in left.items()
            }
            shorts = {short_name(name) for ways in nexts.values() for name, _ in ways}
            called = self.called(shorts) if shorts else {}
            left = {}
            for one, ways in nexts.items():
                defined = {_find_only_definition(one, *way, called) for way in ways} - {None}
                if len(defined) == 1:
                    found[one] = str(*defined)
                elif not defined and (fresh := ways - seen[one]):
                    left[one] = fresh
                    seen[one] |= fresh
            if not left:
                break
        return found

    def names(self, of: Iterable[str]) -> list[str]:
        """Return the other names under which files may import definitions with these names."""
        known = dict.fromkeys(name for name in of if depends_on_place(name))
        frontier, first = [*known], len(known)
        for _ in range(_DEEPEST):
            members = group_members_by_reexport(frontier)
            if not members:
                break
            frontier = []
            for edge in self.edges([HANDED + name for name in members], "in"):
                target = edge.target.removeprefix(HANDED)
                own = find_definition(target, path_of(edge.uri), members)
                alias = edge.stated_of.removeprefix(HANDED)
                fresh = list_import_names(alias, own, members[own]) if own is not None else ()
                frontier += [name for name in fresh if name not in known]
                known |= dict.fromkeys(frontier)
            frontier = frontier[:_MOST]
        return [*known][first:]

    def _read_reexports(self, names: Iterable[str]) -> dict[str, Handed]:
        """Return the re-exports that these names may refer to, by repository."""
        asked = dict.fromkeys(
            HANDED + one for name in names for one in list_possible_reexports(name)
        )
        found: dict[str, dict[str, list[tuple[str, str]]]] = {}
        for edge in self.edges([*asked], "out") if asked else ():
            alias = edge.stated_of.removeprefix(HANDED)
            to = edge.target.removeprefix(HANDED), path_of(edge.uri)
            found.setdefault(edge.source, {}).setdefault(alias, []).append(to)
        return dict(found)


def _find_only_definition(
    sought: Sought, name: str, path: str, called: Mapping[str, NamesCalled]
) -> str | None:
    if name.endswith(ALL):
        return None
    return find_definition(name, path, called.get(short_name(name), {}).get(sought.source, ()))
