"""The settings of a tenant's application, which override the operator's configuration.

A new model takes effect only when the whole tenant is indexed again. Until an admin decides to
pay for that, the existing embeddings answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

Provider: TypeAlias = Literal["openai", "gemini", "localai", "ollama", "local"]
VectorBackend: TypeAlias = Literal["elasticsearch", "pgvector"]

SECTION: Final = "workspace"
"""The key of tenants.yaml with the settings that an application may override, and the profile of
the tenants that have them."""
SELF_HOSTED: frozenset[str] = frozenset({"localai", "ollama"})
"""Providers that run on servers of the application's own choice."""

COMPATIBLE: Final = "openai-compatible"
"""The provider in tenants.yaml of servers that speak OpenAI's API."""
_MODEL_FIELDS = frozenset({"model", "dimensions", "price", "path", "pooling", "max_input_tokens"})
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationSettings:
    """Settings made by an application; None stands for the operator's configuration."""

    enabled: bool | None = None
    """Whether the tenant is indexed and answers."""
    provider: Provider | None = None
    """Provider of embeddings; the providers in SELF_HOSTED speak OpenAI's API."""
    embedding_model: str | None = None
    base_url: str | None = None
    dimensions: int | None = None
    """Length of a vector, if there is a choice or the model is unknown."""
    vector_backend: VectorBackend | None = None
    resolved_comment_days: int | None = None
    """Days for which resolved comments are found."""
    embedder: Mapping[str, Any] | None = None
    """The embedder that was configured when the tenant was last fully indexed, as in tenants.yaml;
    None: the embedder that the operator has configured now."""
    updated_at: datetime | None = None
    updated_by: str | None = None


NO_SETTINGS = ApplicationSettings()
"""The settings of a tenant before its application makes any."""


def find_wanted_embedder(
    settings: ApplicationSettings, operator_config: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the embedder that an application has chosen, as in tenants.yaml.

    Return None if the application leaves the choice to the operator.
    """
    model, dimensions = settings.embedding_model, settings.dimensions
    if settings.provider is not None:
        chosen = COMPATIBLE if settings.provider in SELF_HOSTED else settings.provider
        # None overrides a value of the profile for another provider or model.
        return {
            "provider": chosen,
            "model": model,
            "base_url": settings.base_url,
            "dimensions": dimensions,
        }
    if model is not None:
        other_fields = {
            name: value for name, value in operator_config.items() if name not in _MODEL_FIELDS
        }
        return {**other_fields, "model": model, "dimensions": dimensions}
    return {**operator_config, "dimensions": dimensions} if dimensions is not None else None


def is_pending(settings: ApplicationSettings, operator_config: Mapping[str, Any]) -> bool:
    """Return whether the settings ask for a different embedder than the tenant uses now."""
    return find_wanted_embedder(settings, operator_config) != settings.embedder


def find_settled_embedder(
    settings: ApplicationSettings,
    former: Mapping[str, Any],
    operator_config: Mapping[str, Any],
    *,
    is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> Mapping[str, Any] | None:
    """Return the embedder to keep using after the operator has configured a different embedder.

    An embedder with other vectors, whether from the operator or from the settings, is not used
    until the tenant is indexed again. New prices and limits apply immediately. Embedders have
    the form of tenants.yaml. None stands for the embedder that the operator has configured now.
    """
    wanted = find_wanted_embedder(settings, operator_config)
    present = former if settings.embedder is None else settings.embedder
    return wanted if is_same(present, operator_config if wanted is None else wanted) else present


def overlay_settings(
    operator_config: Mapping[str, Any], settings: ApplicationSettings
) -> dict[str, Any]:
    """Return a tenant's configuration: the operator's, overridden by its application's settings."""
    config = dict(operator_config)
    if settings.embedder is not None:
        config["embedder"] = dict(settings.embedder)
    own = {
        name: value
        for name in ("resolved_comment_days", "vector_backend")
        if (value := getattr(settings, name)) is not None
    }
    if own and operator_config.get("profile") == SECTION:
        config[SECTION] = {**config.get(SECTION, NOTHING), **own}
    return config
