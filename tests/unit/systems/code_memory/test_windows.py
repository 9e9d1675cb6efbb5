"""The token limit of all hits, by the context window of the reading model."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rag_assets.models.chat import UNKNOWN_WINDOW
from rag_assets.search.model import SearchRequest
from rag_assets.search.progress import ResolvedSearch
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import DEFAULT_PROFILE

OWN = {"model": "shop-7b", "provider": "openai-compatible", "base_url": "https://models.example/v1"}


def tenant(chat_model: object, profile: str = "code-memory") -> Tenant:
    config: dict[str, Any] = {"id": "shop", "profile": profile, "chat_model": chat_model}
    if profile == "code-memory":
        config |= {"organization": "acme", "project": "shop"}
    return Tenant.from_config(config)


def budget(of: Tenant, **request: Any) -> int | None:
    asked = SearchRequest(query="totals", **request)
    return ResolvedSearch.resolve(of, asked, "totals", None).token_budget


@pytest.mark.parametrize(
    ("chat_model", "model", "window"),
    [
        ("gpt-4o", None, 128_000),
        ({"model": "gpt-4o", "context_window": 16_000}, None, 16_000),
        ({"model": "gpt-4o", "context_window": 16_000}, "gpt-4o", 16_000),
        ({"model": "gpt-4o", "context_window": 16_000}, "gpt-4", 8_192),
        ({**OWN, "context_window": 65_536}, None, 65_536),
        (OWN, None, UNKNOWN_WINDOW),
        (None, "shop-7b", UNKNOWN_WINDOW),
        (None, "grok-4", 256_000),
    ],
)
def test_hits_take_a_share_of_the_window_that_the_tenant_or_the_table_tells(
    chat_model: object, model: str | None, window: int
) -> None:
    assert budget(tenant(chat_model), model=model) == int(0.4 * window)


def test_what_a_request_allows_counts_and_without_a_model_nothing_does() -> None:
    assert budget(tenant(OWN), token_budget=500) == 500
    assert budget(tenant(None)) is None
    assert budget(tenant(OWN, profile=DEFAULT_PROFILE)) is None


@pytest.mark.parametrize("window", [0, -5, 1_000_000_000, "many"])
def test_a_window_that_no_model_has_is_refused(window: object) -> None:
    with pytest.raises((ValidationError, Exception), match="context_window"):
        tenant({"model": "gpt-4o", "context_window": window})
