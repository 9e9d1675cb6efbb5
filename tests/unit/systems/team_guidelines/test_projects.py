"""Projects: unique ids, and settings that affect nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from rag_assets.common.errors import ConfigurationError, InvalidRequest
from rag_assets.tenants.model import Tenant, TenantId
from rag_assets.tenants.projects import (
    Project,
    ProjectSettings,
    build_project_config,
    require_initial_config,
)

PROFILE = "team-guidelines"
INFINITE = float("inf")
PROJECT = Project(PROFILE, "acme", "web")
names = st.text(
    st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=80
) | st.from_regex(r"[a-z0-9._-]{1,40}", fullmatch=True)


def config(
    present: dict[str, Any] | None = None, beginning: dict[str, Any] | None = None, **settings: Any
) -> dict[str, Any]:
    return build_project_config(
        PROJECT,
        "acme.web",
        ProjectSettings.model_validate(settings),
        initial_config=beginning or {},
        present=present,
    )


@given(names, names)
def test_every_id_is_one_of_a_tenant(organization: str, project: str) -> None:
    ids = Project(PROFILE, organization, project).tenant_ids
    for id_ in ids:
        TypeAdapter(TenantId).validate_python(id_)
    assert ids == Project(PROFILE, organization, project).tenant_ids


@given(names, names, names, names)
def test_no_two_projects_share_an_id(a: str, b: str, c: str, d: str) -> None:
    if (a, b) != (c, d):
        first, second = (Project(PROFILE, *pair).tenant_ids for pair in ((a, b), (c, d)))
        assert not set(first) & set(second)


def test_ids_are_readable_where_they_can_be() -> None:
    assert PROJECT.tenant_ids[0] == "acme.web"
    assert Project(PROFILE, "Acme & Sons", "Wéb").tenant_ids[0].startswith("acme-sons.web.")
    assert Project(PROFILE, "a-b", "c").tenant_ids[0] != Project(PROFILE, "a", "b-c").tenant_ids[0]
    assert Project(PROFILE, "株式", "一").tenant_ids[0].startswith("x.x.")
    [long] = Project(PROFILE, "o" * 200, "p" * 200).tenant_ids
    assert len(long) <= 63
    # The last id is of one profile alone: two of them may have a project of the same names.
    assert PROJECT.tenant_ids[-1] != Project("experience", "acme", "web").tenant_ids[-1]


@pytest.mark.parametrize("name", ["", "a\nb", "\ud800", "n" * 257])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="organization is not a usable id"):
        Project(PROFILE, name, "web")
    with pytest.raises(InvalidRequest, match="project is not a usable id"):
        Project(PROFILE, "acme", name)


@pytest.mark.parametrize(
    "settings",
    [
        {"sources": [{"type": "files", "root": "/etc"}]},
        *({"root": "/etc"}, {"base_url": "http://[::1]/"}, {"embedder": {"base_url": "http://x/"}}),
        *({"api_key": "$HOME"}, {"parser": {"passwords": ["$HOME"]}}, {"chat_model": "$HOME"}),
        *({"provider": "openai-compatible"}, {"provider": "deterministic"}),
        {"chat_model": {"model": "gpt-4o", "base_url": "http://127.0.0.1/"}},
        {"chat_model": {"model": "gpt-4o", "api_key": "$HOME"}},
        *({"caps": {"per_month": -1}}, {"caps": {"root": "/etc"}}, {"caps": {"per_day": INFINITE}}),
        *({"min_score": 2}, {"min_score": float("nan")}, {"name": ""}, {"name": "a\x1b[2J"}),
        *({"enabled": False}, {"profile": "documents"}, {"organization": "other"}),
    ],
    ids=str,
)
def test_nothing_else_is_settable(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ProjectSettings.model_validate(settings)


def test_settings_are_changed_one_by_one_and_null_takes_them_back() -> None:
    beginning = {"caps": {"per_month": 5}, "chat_model": "gpt-4o"}
    made = config(beginning=beginning, name="Web", min_score=0.5)
    tenant = Tenant.from_config(made)
    assert (tenant.name, tenant.organization, tenant.project) == ("Web", "acme", "web")
    assert (tenant.retrieval.min_score, tenant.caps.per_month) == (0.5, 5)
    settings = {"chat_model": "gemini-2.5-flash", "caps": {"per_day": 1}, "provider": "openai"}
    changed = config(made, beginning, **settings)
    tenant = Tenant.from_config(changed)
    assert tenant.name == "Web"
    assert tenant.chat_model is not None
    assert tenant.chat_model.model == "gemini-2.5-flash"
    assert (tenant.caps.per_day, tenant.caps.per_month) == (1, None)
    assert tenant.embedder.only == "openai"
    nothing = dict.fromkeys(("name", "chat_model", "provider", "min_score", "caps"))
    back = config(changed, beginning, **nothing)
    assert back == config(beginning=beginning)
    assert config(changed, beginning) == changed


def test_a_gateway_stays_whatever_is_set() -> None:
    gateway = "https://models.example.org/v1"
    beginning = {
        "embedder": {"providers": [{"provider": "openai", "base_url": gateway}]},
        "chat_model": {"model": "gpt-4o", "provider": "openai-compatible", "base_url": gateway},
    }
    made = config(beginning=beginning, chat_model="gpt-4.1-mini", provider="openai")
    tenant = Tenant.from_config(made)
    assert tenant.chat_model is not None
    assert (tenant.chat_model.model, tenant.chat_model.base_url) == ("gpt-4.1-mini", gateway)
    assert tenant.embedder.providers is not None
    assert tenant.embedder.providers[0].base_url == gateway


@pytest.mark.parametrize(
    ("beginning", "message"),
    [
        ({"id": "x"}, "projects: id must differ between projects"),
        ({"organization": "x"}, "projects: organization must"),
        ({"enabled": False}, "projects: enabled must"),
        ({"embedder": {"base_url": "http://x"}}, "does not support base_url"),
        ({"colour": "red"}, "colour: there is no such field"),
    ],
)
def test_initial_settings_of_projects_are_checked(beginning: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        require_initial_config(beginning, [PROFILE])


@pytest.mark.parametrize("missing", ["organization", "project"])
def test_the_profile_requires_both_names(missing: str) -> None:
    given = {"id": "acme", "profile": PROFILE, "organization": "acme", "project": "web"}
    del given[missing]
    with pytest.raises(ConfigurationError, match=f"requires the field {missing}"):
        Tenant.from_config(given)


def test_a_context_window_belongs_to_its_model() -> None:
    gateway = {"provider": "openai-compatible", "base_url": "https://models.example.org/v1"}
    beginning = {"chat_model": {"model": "shop-7b", **gateway, "context_window": 8_192}}
    kept = Tenant.from_config(config(beginning=beginning, chat_model="shop-7b")).chat_model
    other = Tenant.from_config(config(beginning=beginning, chat_model="gpt-4o")).chat_model
    assert kept is not None
    assert kept.context_window == 8_192
    assert other is not None
    assert (other.base_url, other.context_window) == (gateway["base_url"], None)


def test_a_provider_that_the_operator_has_chosen_is_not_changed() -> None:
    beginning: dict[str, Any] = {"embedder": {"provider": "local"}}
    with pytest.raises(InvalidRequest, match="the operator has chosen the provider"):
        config(beginning=beginning, provider="openai")
    assert config(beginning=beginning, provider=None)["embedder"] == {"provider": "local"}
    beginning = {"embedder": {"providers": [{"provider": "openai", "base_url": "https://x"}]}}
    present = config(beginning=beginning, provider="local")
    assert present["embedder"] == {"provider": "local"}
    with pytest.raises(InvalidRequest, match="the operator has chosen the provider"):
        config(beginning=beginning, present=present, provider="openai")
