"""`auto` with a gateway for each provider, and limited to one provider."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rag_assets.billing.embedders import choose_embedder
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import find_price

GATEWAY = "https://models.example.org/v1"
OPTIONS: list[dict[str, Any]] = [
    {"provider": "openai", "base_url": GATEWAY, "price": {"per_million": 0.03}},
    {"provider": "gemini", "base_url": GATEWAY, "model": "text-embedding-004"},
]


def auto(**config: Any) -> EmbedderConfig:
    return EmbedderConfig.model_validate({"provider": "auto", **config})


def test_each_provider_has_its_own_server_and_1536_numbers() -> None:
    found = choose_embedder(auto(providers=OPTIONS), chat_model="gpt-4o").embedder
    assert (found.provider, found.model_name, found.dimensions, found.base_url) == (
        *("openai", "text-embedding-3-small", 1536, GATEWAY),
    )
    price = find_price(found)
    assert price is not None
    assert price.per_million == 0.03
    found = choose_embedder(auto(providers=OPTIONS), chat_model="gemini-2.5-flash").embedder
    assert (found.provider, found.model_name, found.dimensions) == (
        *("gemini", "text-embedding-004", 1536),
    )


@pytest.mark.parametrize("stored", [set(), {"gemini"}, {"openai", "gemini"}])
def test_one_provider_is_chosen_whatever_speaks_for_another(stored: set[str]) -> None:
    config = auto(only="openai", providers=OPTIONS)
    found = choose_embedder(config, chat_model="gemini-2.5-flash", stored=stored, serving="gemini")
    assert found.embedder.provider == "openai"
    assert found.key == ("stored" if "openai" in stored else "missing")


@pytest.mark.parametrize(
    "config",
    [
        {"provider": "openai", "only": "openai"},
        {"provider": "openai", "providers": OPTIONS},
        {"provider": "auto", "only": "local"},
        {"provider": "auto", "providers": [OPTIONS[0], OPTIONS[0]]},
        {"provider": "auto", "providers": [{"provider": "openai", "api_key": "$X"}]},
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EmbedderConfig.model_validate(config)
