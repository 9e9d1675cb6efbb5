"""Names that modules hand on, followed to what they stand for, and back to who imports them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rag_assets.code.naming import ALL, CALLED, HANDED, depends_on_place, meant
from rag_assets.code.nodes import short_name
from rag_assets.code.reexports import Handed, asked_of, behind, beyond, handed_names
from rag_assets.ingest.sources.model import path_of
from rag_assets.storage.catalog.found_relations import Direction, FoundEdge, NamesCalled

_DEEPEST: Final = 6
"""Modules that a name may be handed on through."""

_MOST: Final = 500
"""Names that are looked for at once."""


class Sought(NamedTuple):
    """A name in a file that leads to no definition by itself.

    Attributes:
        source: the repository.
        name: what the file means by it, as far as its path tells.
        path: of the file.
    """

    source: str
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class HandedOn:
    """Follows names through the modules that hand them on.

    Attributes:
        edges: that begin or end at names, of what the caller may read.
        called: names of definitions by what people call them.
    """

    edges: Callable[[Sequence[str], Direction], Sequence[FoundEdge]]
    called: Callable[[Collection[str]], Mapping[str, NamesCalled]]

    def definitions(self, names: Iterable[Sought]) -> dict[Sought, str]:
        """What each name stands for; those are left out that lead to none, or to several.

        Args:
            names: not those that say what is called so, which no module has.
        """
        left = {one: {(one.name, one.path)} for one in names if not one.name.startswith(CALLED)}
        seen = {one: set(ways) for one, ways in left.items()}
        found: dict[Sought, str] = {}
        for _ in range(_DEEPEST):
            left = dict([*left.items()][:_MOST])
            handed = self._handed(name for ways in left.values() for name, _ in ways)
            nexts = {
                one: {to for way in ways for to in behind(*way, handed.get(one.source, {}))}
                for one, ways in left.items()
            }
            shorts = {short_name(name) for ways in nexts.values() for name, _ in ways}
            called = self.called(shorts) if shorts else {}
            left = {}
            for one, ways in nexts.items():
                defined = {_meant(one, *way, called) for way in ways} - {None}
                if len(defined) == 1:
                    found[one] = str(*defined)
                elif not defined and (fresh := ways - seen[one]):
                    left[one] = fresh
                    seen[one] |= fresh
            if not left:
                break
        return found

    def names(self, of: Iterable[str]) -> list[str]:
        """The other names by which files may import what has these names."""
        known = dict.fromkeys(name for name in of if depends_on_place(name))
        frontier, first = [*known], len(known)
        for _ in range(_DEEPEST):
            members = beyond(frontier)
            if not members:
                break
            frontier = []
            for edge in self.edges([HANDED + name for name in members], "in"):
                target = edge.target.removeprefix(HANDED)
                own = meant(target, path_of(edge.uri), members)
                alias = edge.stated_of.removeprefix(HANDED)
                fresh = handed_names(alias, own, members[own]) if own is not None else ()
                frontier += [name for name in fresh if name not in known]
                known |= dict.fromkeys(frontier)
            frontier = frontier[:_MOST]
        return [*known][first:]

    def _handed(self, names: Iterable[str]) -> dict[str, Handed]:
        """What modules hand on that these names may mean, by repository."""
        asked = dict.fromkeys(HANDED + one for name in names for one in asked_of(name))
        found: dict[str, dict[str, list[tuple[str, str]]]] = {}
        for edge in self.edges([*asked], "out") if asked else ():
            alias = edge.stated_of.removeprefix(HANDED)
            to = edge.target.removeprefix(HANDED), path_of(edge.uri)
            found.setdefault(edge.source, {}).setdefault(alias, []).append(to)
        return dict(found)


def _meant(sought: Sought, name: str, path: str, called: Mapping[str, NamesCalled]) -> str | None:
    if name.endswith(ALL):
        return None
    return meant(name, path, called.get(short_name(name), {}).get(sought.source, ()))
