from __future__ import annotations

from typing import Any

import pytest

from rag_assets.billing.chat_models import find_chat_model, find_chat_price
from rag_assets.common.errors import ConfigurationError, NoChatModel
from rag_assets.tenants.model import Tenant

OWN = {"model": "llama", "provider": "openai-compatible", "base_url": "https://ai.example.org/v1"}


def tenant(chat_model: Any, **more: Any) -> Tenant:
    return Tenant.from_config({"id": "acme", "chat_model": chat_model, **more})


@pytest.mark.parametrize(
    ("chat_model", "provider"),
    [
        ("gpt-4.1-mini", "openai"),
        ("o4-mini", "openai"),
        ("models/gemini-2.5-flash", "gemini"),
        ({"model": "gemini-2.5-pro"}, "gemini"),
        ({"model": "my-gpt", "provider": "openai"}, "openai"),
        (OWN, "openai-compatible"),
    ],
)
def test_a_models_name_determines_the_provider_unless_one_is_configured(
    chat_model: Any, provider: str
) -> None:
    config, found, _ = find_chat_model(tenant(chat_model))
    assert (found.name, bool(config.model)) == (provider, True)


@pytest.mark.parametrize("chat_model", [None, "claude-3-5-haiku-latest", "llama"])
def test_an_unusable_chat_model_is_refused_with_the_remedy(chat_model: str | None) -> None:
    with pytest.raises(NoChatModel) as caught:
        find_chat_model(tenant(chat_model))
    assert "chat_model" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("chat_model", "where"),
    [
        ({"model": "llama", "provider": "openai-compatible"}, "needs a base_url"),
        ({"model": "llama", "base_url": "https://ai.example.org"}, "set the provider"),
        ({**OWN, "base_url": "https://u:secret@ai.example.org"}, "a user or a password"),
        ({"model": "gpt-5", "provider": "anthropic"}, "chat_model.provider"),
        ({"model": "gpt-5", "seconds": 61}, "chat_model.seconds"),
        ({"model": "gpt-5", "prices": {"input_per_million": 1}}, "output_per_million"),
        ({"provider": "openai"}, "chat_model.model"),
        ("two words", "chat_model.model"),
    ],
)
def test_what_is_not_usable_is_named(chat_model: Any, where: str) -> None:
    with pytest.raises(ConfigurationError, match=where) as caught:
        tenant(chat_model)
    assert "secret" not in caught.value.advice


def test_a_key_is_named_and_never_written_down() -> None:
    with pytest.raises(ConfigurationError, match=r"chat_model\.api_key") as caught:
        tenant({"model": "gpt-5", "api_key": "sk-literal"})
    assert "sk-literal" not in caught.value.advice
    assert tenant({"model": "gpt-5", "api_key": "$NAME"}).chat_model is not None


def test_the_price_is_the_listed_one_at_the_providers_own_server_alone() -> None:
    def price(**config: Any) -> float | None:
        found = find_chat_price(*find_chat_model(tenant(config))[:2])
        return None if found is None else found.compute_cost(1_000_000, 1_000_000)

    assert price(model="gpt-4.1-mini") == pytest.approx(2.0)
    assert price(model="models/gemini-2.5-flash") == pytest.approx(2.8)
    assert price(model="gpt-9") is None
    elsewhere = {"model": "gpt-4.1-mini", "provider": "openai", "base_url": "https://a.example"}
    assert price(**elsewhere) is None
    said = {"input_per_million": 1.0, "output_per_million": 2.0}
    assert price(**elsewhere, prices=said) == pytest.approx(3.0)
