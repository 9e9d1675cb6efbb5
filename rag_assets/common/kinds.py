"""Registries of named kinds: of sources, of chunkers, of whatever a system may add to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from rag_assets.common.errors import ConfigurationError


class Named(Protocol):
    """A kind of something."""

    @property
    def name(self) -> str:
        """What configurations call it."""
        ...


_Kind = TypeVar("_Kind", bound=Named)


def by_name(*groups: Iterable[_Kind]) -> Mapping[str, _Kind]:
    """Kinds by their names, in the order given.

    Args:
        groups: such as the built-in kinds and those that systems add.

    Raises:
        ConfigurationError: two kinds have one name.
    """
    kinds: dict[str, _Kind] = {}
    for kind in (kind for group in groups for kind in group):
        if kind.name in kinds:
            raise ConfigurationError(
                f"two kinds are named {kind.name!r}: {kinds[kind.name]!r} and {kind!r}",
                hint="rename one of them, or remove the package that adds it",
            )
        kinds[kind.name] = kind
    return MappingProxyType(kinds)


def find_kind(name: object, kinds: Mapping[str, _Kind], what: str) -> _Kind:
    """The kind of a name.

    Args:
        name: as a configuration has it.
        kinds: those there are.
        what: they are kinds of, for the error.

    Raises:
        ConfigurationError: there is none; the hint lists those there are.
    """
    found = kinds.get(name) if isinstance(name, str) else None
    if found is None:
        raise ConfigurationError(
            f"no {what} is named {name!r}", hint=f"choose one of: {', '.join(kinds)}"
        )
    return found
