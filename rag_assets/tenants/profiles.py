"""Profiles: the defaults of a system's tenants, which a tenant's own configuration overrides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rag_assets.common.errors import UnknownProfile
from rag_assets.ingest.sources.registry import DEFAULT_KIND
from rag_assets.plugins.registry import installed_systems, load_reference
from rag_assets.plugins.system import Profile
from rag_assets.tenants.kinds import installed_kinds

DEFAULT_PROFILE = "documents"
_CHOICES = {"chunker": "chunker", "embedder": "provider"}
"""For each field, the setting that must equal the profile's for its other defaults to apply."""
_NOT_INSTALLED = "no system is installed: install rag-assets again (`make setup`)"


def apply_profile(config: Mapping[str, Any]) -> dict[str, Any]:
    """Complete a tenant's configuration with the defaults of its profile.

    The tenant's own chunker rules precede those in the profile. The profile's chunker limits apply
    only to the profile's chunker, and its embedding model only to its provider.
    """
    name = config.get("profile", DEFAULT_PROFILE)
    profiles = installed_systems().profiles
    if not isinstance(name, str) or name not in profiles:
        raise UnknownProfile(
            f"tenant {config.get('id')!r}: no profile {name!r}",
            hint=f"choose one of: {', '.join(profiles)}" if profiles else _NOT_INSTALLED,
        )
    defaults = dict(profiles[name].defaults)
    for field, choice in _CHOICES.items():
        if not _is_same_choice(defaults.get(field), config.get(field), choice):
            defaults.pop(field, None)
    merged = _merge(defaults, config)
    if isinstance(config.get("chunkers"), Sequence):
        merged["chunkers"] = [*config["chunkers"], *defaults.get("chunkers", ())]
    if isinstance(merged.get("sources"), Sequence):
        merged["sources"] = _add_own_sources(profiles[name], merged["sources"])
    return merged


def get_configured_sources(config: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the sources in a stored configuration, or else the profile's default sources."""
    if "sources" in config:
        own: Sequence[Mapping[str, Any]] = config["sources"]
        return own
    profile = installed_systems().profiles.get(config.get("profile", DEFAULT_PROFILE))
    return () if profile is None else profile.defaults.get("sources", ())


def get_configured_embedder(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the embedder in a stored configuration, completed with the profile's defaults."""
    embedder: Mapping[str, Any] = apply_profile(config).get("embedder") or {}
    return embedder


def get_profile(name: str) -> Profile:
    """Return the profile of a validated tenant; raise UnknownProfile if it has been uninstalled."""
    profiles = installed_systems().profiles
    if name not in profiles:
        raise UnknownProfile(
            f"no profile {name!r}",
            hint="install the system of that name again, or remove its tenants",
        )
    return profiles[name]


def _add_own_sources(profile: Profile, sources: Sequence[Any]) -> list[Any]:
    """Add the sources that every tenant of the profile has; they replace equally named ones."""
    own = list(profile.sources_of_all)
    for reference in profile.sources_beside:
        make: Callable[[Mapping[str, Any]], dict[str, Any]] = load_reference(reference)
        own += [make(source) for source in sources if _holds_files(source)]
    names = {source["name"] for source in own}
    kept = [s for s in sources if not (isinstance(s, Mapping) and s.get("name") in names)]
    return [*kept, *own]


def _holds_files(source: object) -> bool:
    if not isinstance(source, Mapping) or not isinstance(source.get("name"), str):
        return False
    kind = installed_kinds().sources.get(source.get("type", DEFAULT_KIND))
    return kind is not None and kind.has_files


def _is_same_choice(default: Any, wanted: Any, choice: str) -> bool:
    """Return whether profile and tenant choose the same, so that the profile's defaults apply."""
    are_mappings = isinstance(default, Mapping) and isinstance(wanted, Mapping)
    return not are_mappings or wanted.get(choice, default.get(choice)) == default.get(choice)


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        are_mappings = isinstance(inner, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge(inner, value) if are_mappings else value  # type: ignore[arg-type]
    return merged
