"""Projects: tenants that an application creates, and the settings that it may change.

An application identifies a project by its organization and the project's id. The operator decides
where data comes from and where it is sent. So an application sets only the fields of
ProjectSettings.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, StringConstraints, field_validator

from rag_assets.common.errors import ConfigurationError, InvalidRequest
from rag_assets.models.config import AUTO
from rag_assets.models.providers.registry import list_auto_embeddings
from rag_assets.models.transport.settings import ModelName
from rag_assets.plugins.registry import installed_systems
from rag_assets.tenants.model import CapsConfig, RetrievalConfig, Tenant, ThresholdFrom

MAX_NAME = 256
LOCAL = "local"
"""The provider that runs the shipped model; only an operator can select it."""

_PLAIN = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)*")
_MAX_ID_CHARACTERS = 63
_DIGEST = 16
_STEM = (_MAX_ID_CHARACTERS - _DIGEST - 2) // 2

if TYPE_CHECKING:
    AutoProvider: TypeAlias = str
    ProjectProvider: TypeAlias = str
else:
    AutoProvider = Literal[(AUTO, *list_auto_embeddings())]
    ProjectProvider = Literal[(AUTO, *list_auto_embeddings(), LOCAL)]


@dataclass(frozen=True, slots=True)
class Project:
    """A project, identified by the ids that an application uses; invalid ids are refused."""

    profile: str
    organization: str
    project: str

    def __post_init__(self) -> None:
        require_name("organization", self.organization)
        require_name("project", self.project)

    @property
    def tenant_ids(self) -> tuple[str, ...]:
        """Return possible ids for the project's tenant: a safe readable one, and a unique one."""
        organization, project = self.organization, self.project
        plain = f"{organization}.{project}"
        is_plain = _PLAIN.fullmatch(organization) and _PLAIN.fullmatch(project)
        parts = json.dumps([self.profile, organization, project]).encode()
        digest = hashlib.sha256(parts).hexdigest()[:_DIGEST]
        unique = f"{_build_stem(organization)}.{_build_stem(project)}.{digest}"
        return (plain, unique) if is_plain and len(plain) <= _MAX_ID_CHARACTERS else (unique,)


class ProjectSettings(BaseModel):
    """All settings of a project that an application may change.

    An omitted field stays as it is; null restores the initial value of projects.

    Attributes:
        name: for people.
        chat_model: name of the model that it chats with; its embedder is derived from it.
        provider: of embeddings; "auto": derived from the chat model and the keys; "local": the
            shipped model, which needs no key.
        min_score: cosine below which a passage is omitted.
        threshold_from: source of the threshold without min_score; see RetrievalConfig.
        caps: spending caps, all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)] | None = None
    chat_model: ModelName | None = None
    provider: ProjectProvider | None = None
    min_score: float | None = None
    threshold_from: ThresholdFrom | None = None
    caps: CapsConfig | None = None

    @field_validator("name")
    @classmethod
    def _require_readable(cls, name: str | None) -> str | None:
        if name is not None and not _is_text(name):
            raise ValueError("it contains control characters")
        return name

    @field_validator("min_score")
    @classmethod
    def _require_cosine(cls, score: float | None) -> float | None:
        return RetrievalConfig(min_score=score).min_score


def require_name(what: str, name: str) -> None:
    """Require that an id has 1 to MAX_NAME characters and no control characters."""
    if not 0 < len(name) <= MAX_NAME or not _is_text(name):
        raise InvalidRequest(
            f"{what} is not a usable id",
            hint=f"use 1 to {MAX_NAME} characters, without control characters",
        )


def build_project_config(
    project: Project,
    tenant_id: str,
    settings: ProjectSettings,
    *,
    initial_config: Mapping[str, Any],
    present: Mapping[str, Any] | None = None,
    reset: bool = False,
) -> dict[str, Any]:
    """Return the configuration of a project's tenant.

    Args:
        reset: replace the current configuration with the initial configuration. The caps and the
            name of the chat model are kept; otherwise the project would spend more, or answer
            differently.

    Raises:
        InvalidRequest: the settings conflict with the operator's configuration.
    """
    is_new = present is None or reset
    config = dict(initial_config if is_new else present or {})
    config |= {"id": tenant_id, "profile": project.profile}
    config |= {"organization": project.organization, "project": project.project}
    set_fields = settings.model_fields_set
    if reset and present is not None:
        _keep_project_values(config, initial_config, present)
    if "name" in set_fields:
        _set_field(config, "name", settings.name)
    if "chat_model" in set_fields:
        _set_field(
            config, "chat_model", _build_chat_model(config, initial_config, settings.chat_model)
        )
    if "provider" in set_fields:
        _set_field(config, "embedder", _find_embedder(config, settings.provider))
    for name in ("min_score", "threshold_from"):
        if name in set_fields:
            value, of_all = getattr(settings, name), initial_config.get("retrieval") or {}
            retrieval = dict(config.get("retrieval") or {})
            _set_field(retrieval, name, of_all.get(name) if value is None else value)
            _set_field(config, "retrieval", retrieval or None)
    if "caps" in set_fields:
        caps = settings.caps.model_dump(exclude_none=True) if settings.caps else None
        _set_field(config, "caps", initial_config.get("caps") if caps is None else caps)
    try:
        Tenant.from_config(config)
    except ConfigurationError as error:
        raise InvalidRequest(
            f"the settings conflict with the initial settings of projects: {error.message}",
            hint="omit these settings, or ask the operator to change the initial ones",
        ) from None
    return config


def require_initial_config(initial_config: Mapping[str, Any], profiles: Iterable[str]) -> None:
    """Require that a configuration can be the initial one of projects of these profiles."""
    own = sorted(
        {"id", "name", "profile", "organization", "project", "enabled"} & set(initial_config)
    )
    if own:
        raise ConfigurationError(
            f"projects: {own[0]} must differ between projects", hint="remove it from `projects`"
        )
    for profile in profiles:
        Tenant.from_config(build_example_config(initial_config, profile))


def build_example_config(initial_config: Mapping[str, Any], profile: str) -> dict[str, Any]:
    """Return the configuration of an example project of a profile."""
    project = {"profile": profile, "organization": "any", "project": "any"}
    return {**initial_config, "id": "projects", **project}


def list_project_profiles() -> list[str]:
    """Return the names of the installed profiles whose projects are created by applications."""
    profiles = installed_systems().profiles
    return [name for name, profile in profiles.items() if profile.projects_over_api]


def list_effective_settings(tenant: Tenant) -> dict[str, Any]:
    """Return the values of all fields of ProjectSettings that apply to a tenant, with defaults."""
    embedder = tenant.embedder
    return {
        "name": tenant.name,
        "chat_model": tenant.chat_model.model if tenant.chat_model else None,
        "provider": embedder.only or embedder.provider,
        "min_score": tenant.retrieval.min_score,
        "threshold_from": tenant.retrieval.threshold_from,
        "caps": tenant.caps.model_dump(),
    }


def _keep_project_values(
    config: dict[str, Any], initial_config: Mapping[str, Any], present: Mapping[str, Any]
) -> None:
    """Copy the caps and the chat model's name, but no gateway, from `present` to `config`."""
    if present.get("caps"):
        config["caps"] = present["caps"]
    chat = present.get("chat_model")
    if chat:
        name = chat["model"] if isinstance(chat, Mapping) else chat
        config["chat_model"] = _build_chat_model(config, initial_config, name)


def _build_chat_model(
    config: Mapping[str, Any], initial_config: Mapping[str, Any], name: str | None
) -> Any:
    present = config.get("chat_model")
    if name is None:
        return initial_config.get("chat_model")
    if not isinstance(present, Mapping):
        return name
    # A gateway applies to any model; a context window belongs to one model.
    present_fields = {
        k: v for k, v in present.items() if k != "context_window" or present["model"] == name
    }
    return {**present_fields, "model": name}


def _find_embedder(config: Mapping[str, Any], provider: str | None) -> dict[str, Any] | None:
    if provider == LOCAL:
        return {"provider": LOCAL}
    embedder = {k: v for k, v in (config.get("embedder") or {}).items() if k != "only"}
    chosen = Tenant.from_config({**config, "embedder": embedder}).embedder.provider
    if provider not in {None, chosen} and chosen != AUTO:
        raise InvalidRequest(
            f"the operator has chosen the provider of embeddings: {chosen}",
            hint="omit the provider",
        )
    if provider in {None, chosen}:
        return embedder or None
    return {**embedder, "only": provider}


def _set_field(config: dict[str, Any], field: str, value: Any) -> None:
    """Set a field; None removes it, so that the profile's default applies."""
    if value is None:
        config.pop(field, None)
    else:
        config[field] = value


def _build_stem(name: str) -> str:
    """Convert a name to the readable part of a tenant id: lower-case ASCII, at most _STEM long."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub("[^a-z0-9]+", "-", plain).strip("-")[:_STEM].strip("-") or "x"


def _is_text(name: str) -> bool:
    return not any(unicodedata.category(character) in {"Cc", "Cs"} for character in name)
