"""Named sets of defaults: what a tenant is for decides how it is indexed and searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_assets.common.errors import UnknownProfile

_ROWS = {"formats": ["csv", "tsv", "xlsx"], "chunker": "record"}

PROFILES: Mapping[str, Mapping[str, Any]] = {
    # Sized for the local model, which reads 256 word pieces at a time.
    "documents": {
        "chunker": {"chunker": "heading", "max_tokens": 220, "overlap": 32},
        "chunkers": [_ROWS],
        "retrieval": {"top_k": 5, "mode": "hybrid"},
    },
    "workspace": {
        "chunker": {"chunker": "heading", "max_tokens": 1200, "overlap": 150},
        "chunkers": [_ROWS],
        "retrieval": {"top_k": 8, "mode": "hybrid"},
    },
}


def with_profile(config: Mapping[str, Any]) -> dict[str, Any]:
    """A tenant's configuration over the defaults of its profile.

    Its rules about chunkers go before those of the profile. The profile's limits of a chunker
    count only for that chunker.

    Raises:
        UnknownProfile: there is no profile of that name.
    """
    name = config.get("profile", "documents")
    if name not in PROFILES:
        raise UnknownProfile(
            f"tenant {config.get('id')!r}: no profile {name!r}",
            hint=f"choose one of: {', '.join(PROFILES)}",
        )
    defaults = dict(PROFILES[name])
    if not _same_chunker(defaults.get("chunker"), config.get("chunker")):
        del defaults["chunker"]
    merged = _merged(defaults, config)
    if isinstance(config.get("chunkers"), Sequence):
        merged["chunkers"] = [*config["chunkers"], *defaults["chunkers"]]
    return merged


def _same_chunker(default: Any, wanted: Any) -> bool:
    """Whether the profile's limits can count: they were chosen for its own chunker."""
    both = isinstance(default, Mapping) and isinstance(wanted, Mapping)
    return not both or wanted.get("chunker", default["chunker"]) == default["chunker"]


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(inner, value) if both else value  # type: ignore[arg-type]
    return merged
