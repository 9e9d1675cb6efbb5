"""Registries of named kinds, such as sources and chunkers, which systems can extend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from rag_assets.common.errors import ConfigurationError


class Named(Protocol):
    """Protocol of kinds with a name."""

    @property
    def name(self) -> str:
        """Return the name used in configurations."""
        ...


_Kind = TypeVar("_Kind", bound=Named)


def by_name(*groups: Iterable[_Kind]) -> Mapping[str, _Kind]:
    """Return kinds by name, in order; raise a ConfigurationError if two have the same name."""
    kinds: dict[str, _Kind] = {}
    for kind in (kind for group in groups for kind in group):
        if kind.name in kinds:
            raise ConfigurationError(
                f"two kinds are named {kind.name!r}: {kinds[kind.name]!r} and {kind!r}",
                hint="rename one of them, or remove the package that adds it",
            )
        kinds[kind.name] = kind
    return MappingProxyType(kinds)


def find_kind(
    name: object,
    kinds: Mapping[str, _Kind],
    what: str,
    *,
    offered: Callable[[_Kind], bool] = lambda _: True,
) -> _Kind:
    """Return the kind with this name; an error lists the offered names."""
    matching_kind = kinds.get(name) if isinstance(name, str) else None
    if matching_kind is None:
        names = ", ".join(key for key, kind in kinds.items() if offered(kind))
        raise ConfigurationError(f"no {what} is named {name!r}", hint=f"choose one of: {names}")
    return matching_kind
