"""The installed systems, found by the entry point group `rag_assets.systems`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from rag_assets.common.errors import ConfigurationError, RagAssetsError
from rag_assets.plugins.system import PART_KINDS, Profile, System

GROUP = "rag_assets.systems"
_ONE_OF_TWO = "uninstall one of the two packages, or rename the part in it"


@dataclass(frozen=True, slots=True)
class InstalledSystem:
    """A system and the distribution that provides it.

    Attributes:
        system: the system.
        distribution: the name and version of the installed distribution.
    """

    system: System
    distribution: str

    @property
    def name(self) -> str:
        """Return the system's name."""
        return self.system.name


@dataclass(frozen=True, slots=True)
class SystemPart:
    """A part that a system adds, such as a chunker; load() imports it.

    Attributes:
        kind: the attribute of System that contains it.
        name: its name, unique within the kind.
        reference: its location, as "package.module:attribute".
        owner: the system that adds it.
    """

    kind: str
    name: str
    reference: str
    owner: InstalledSystem

    def load(self) -> Any:
        """Import the part and return it.

        Raises:
            ConfigurationError: the part cannot be imported, or does not exist.
        """
        try:
            return load_reference(self.reference)
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(
                f"system {self.owner.name!r} of {self.owner.distribution}: {self.kind}:"
                f" {self.name!r} cannot be loaded from {self.reference}: {_describe_error(error)}",
                hint=_build_hint(self.owner.distribution, self.reference.partition(":")[0]),
            ) from error


class Systems:
    """The installed systems and their parts, by kind and name.

    Raises:
        ConfigurationError: two systems have the same name, or add a part of the same kind and name.
    """

    def __init__(self, installed: Iterable[InstalledSystem]) -> None:
        self._by_name = _map_unique(
            "systems", ((system.name, system, system) for system in installed)
        )
        self._parts: Mapping[str, Mapping[str, SystemPart]] = {
            kind: self._collect_parts(kind) for kind in PART_KINDS
        }

    def __iter__(self) -> Iterator[InstalledSystem]:
        return iter(self._by_name.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the systems, sorted."""
        return tuple(self._by_name)

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """Return the profiles of tenants, by name."""
        return {
            installed.name: installed.system.profile
            for installed in self
            if installed.system.profile is not None
        }

    @property
    def own_process_commands(self) -> frozenset[str]:
        """Return the names of the commands that the fork server must not run."""
        return frozenset(
            name for installed in self for name in installed.system.own_process_commands
        )

    def parts(self, kind: str, *, reserved: Iterable[str] = ()) -> Mapping[str, SystemPart]:
        """Return the parts of one kind, by name, without importing them.

        Args:
            kind: an attribute of System that contains parts, such as `chunkers`.
            reserved: the core's own names of that kind.

        Raises:
            ConfigurationError: a part has one of the core's names.
        """
        parts = self._parts[kind]
        for name in reserved:
            if name in parts:
                owner = parts[name].owner
                raise ConfigurationError(
                    f"{kind}: {name!r} of system {owner.name!r} of {owner.distribution} has a"
                    " name that rag-assets itself uses",
                    hint=f"rename it in {owner.distribution}, or uninstall {owner.distribution}",
                )
        return parts

    def load(self, kind: str, *, reserved: Iterable[str] = ()) -> Mapping[str, Any]:
        """Return the imported parts of one kind, by name.

        Args:
            kind, reserved: see parts().
        """
        parts = self.parts(kind, reserved=reserved)
        return {name: part.load() for name, part in parts.items()}

    def _collect_parts(self, kind: str) -> Mapping[str, SystemPart]:
        return _map_unique(
            kind,
            (
                (name, SystemPart(kind, name, reference, installed), installed)
                for installed in self
                for name, reference in getattr(installed.system, kind).items()
            ),
        )


def load_reference(reference: str) -> Any:
    """Import and return the object that a reference "package.module:attribute" names."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)


@lru_cache(maxsize=1)
def installed_systems() -> Systems:
    """Return the systems that are installed in this Python environment.

    Raises:
        ConfigurationError: a system cannot be loaded, or two systems contradict each other.
    """
    return Systems(map(_load_system, entry_points(group=GROUP)))


def _load_system(entry: EntryPoint) -> InstalledSystem:
    dist = entry.dist
    distribution = f"{dist.name} {dist.version}" if dist else "an unknown package"
    try:
        system = entry.load()
    except Exception as error:
        raise ConfigurationError(
            f"system {entry.name!r} of {distribution} cannot be loaded from {entry.value}:"
            f" {_describe_error(error)}",
            hint=_build_hint(distribution, entry.module),
        ) from error
    if not isinstance(system, System):
        raise ConfigurationError(
            f"system {entry.name!r} of {distribution}: {entry.value} is of type"
            f" {type(system).__name__}",
            hint="its entry point must refer to a rag_assets.plugins.system.System",
        )
    if system.name != entry.name:
        raise ConfigurationError(
            f"system {entry.name!r} of {distribution} has the name {system.name!r}, which"
            " differs from the name of its entry point",
            hint="use the name of the system as the name of its entry point",
        )
    return InstalledSystem(system, distribution)


def _map_unique(
    kind: str, entries: Iterable[tuple[str, Any, InstalledSystem]]
) -> Mapping[str, Any]:
    values: dict[str, Any] = {}
    owners: dict[str, InstalledSystem] = {}
    for name, value, owner in entries:
        if name in values:
            raise ConfigurationError(
                _describe_clash(kind, name, owners[name], owner), hint=_ONE_OF_TWO
            )
        values[name], owners[name] = value, owner
    return MappingProxyType(dict(sorted(values.items())))


def _describe_clash(kind: str, name: str, first: InstalledSystem, second: InstalledSystem) -> str:
    if kind == "systems":
        return f"system {name!r} is provided by {first.distribution} and by {second.distribution}"
    return (
        f"{kind}: {name!r} is added by system {first.name!r} of {first.distribution}"
        f" and by system {second.name!r} of {second.distribution}"
    )


def _build_hint(distribution: str, module: str) -> str:
    name = distribution.partition(" ")[0]
    return f'`python -c "import {module}"` shows the cause; then reinstall or uninstall {name}'


def _describe_error(error: Exception) -> str:
    """Return why an import failed.

    The error's message is included only if it cannot contain a secret.
    """
    if isinstance(error, ImportError | AttributeError | RagAssetsError):
        return f"{type(error).__name__}: {error}"
    return type(error).__name__
