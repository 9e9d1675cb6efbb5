"""Every provider is one value, from which lookups, configuration and documentation derive."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.billing.key_ring import PURPOSES
from rag_assets.common.errors import ConfigurationError
from rag_assets.models.config.chat import ChatModelConfig
from rag_assets.models.config.embedder import EmbedderConfig
from rag_assets.models.embedding.prices import FREE
from rag_assets.models.providers.base import RemoteEmbedding
from rag_assets.models.providers.registry import (
    PROVIDERS,
    auto_embeddings,
    provider_of,
    provider_of_chat_model,
)

PAGE = Path(__file__).parents[4] / "docs" / "providers.md"


def rows(header: str) -> list[tuple[str, ...]]:
    """A table of the page on providers."""
    lines = iter(PAGE.read_text(encoding="utf-8").splitlines())
    assert any(line == header for line in lines)
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return found


def test_the_page_lists_the_prices_of_embeddings() -> None:
    listed = {
        (name, model, price.per_million, price.batch_per_million)
        for name, provider in PROVIDERS.items()
        if isinstance(provider.embedding, RemoteEmbedding)
        for model, known in provider.embedding.models.items()
        if (price := known.price) is not None
    }
    told = rows("| provider | model | price | by batch API |")
    assert {(p, m, float(e), float(b)) for p, m, e, b in told if p != "local"} == listed


def test_the_page_lists_the_prices_of_chat_models() -> None:
    listed = {
        (name, model, price.input_per_million, price.output_per_million)
        for name, provider in PROVIDERS.items()
        if provider.chat is not None
        for model, price in provider.chat.prices.items()
    }
    told = rows("| provider | model | input | output |")
    assert {(p, m, float(i), float(o)) for p, m, i, o in told} == listed


def test_the_page_lists_the_models_and_dimensions_of_embeddings() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for provider in PROVIDERS.values():
        if isinstance(provider.embedding, RemoteEmbedding):
            assert f"`{provider.name}`" in page
            assert all(model in page for model in provider.embedding.models)


def test_every_batch_price_is_half() -> None:
    prices = [
        known.price
        for provider in PROVIDERS.values()
        if isinstance(provider.embedding, RemoteEmbedding)
        for known in provider.embedding.models.values()
        if known.price is not None
    ]
    assert prices
    for price in prices:
        assert price.batch_per_million == pytest.approx(price.per_million / 2)


def test_a_model_that_is_not_listed_has_no_price_rather_than_a_price_of_zero() -> None:
    assert provider_of("openai-compatible").embedding_price("text-embedding-3-small") is None
    assert provider_of("openai").embedding_price("text-embedding-ada-002") is None
    assert provider_of("anthropic").embedding_price("any") is None
    assert provider_of("local").embedding_price("any") == FREE


def test_a_configuration_takes_the_providers_there_are() -> None:
    kinds = {"embedding": EmbedderConfig, "chat": ChatModelConfig}
    for kind, config in kinds.items():
        schema = config.model_json_schema()["properties"]["provider"]
        taken = {*schema.get("enum", ()), *schema.get("anyOf", [{}])[0].get("enum", ())}
        offering = {name for name, provider in PROVIDERS.items() if getattr(provider, kind)}
        assert taken - {"auto"} == offering


def test_keys_are_stored_for_providers_over_the_network_and_for_rerankers() -> None:
    assert set(PURPOSES) == {"openai", "gemini", "openai-compatible", "rerank"}


def test_auto_chooses_between_providers_with_a_server_of_their_own() -> None:
    assert list(auto_embeddings()) == ["openai", "gemini"]
    for provider in PROVIDERS.values():
        assert set(provider.embeddings_of) <= auto_embeddings().keys()


def test_a_provider_that_is_not_known_is_named_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="openia") as caught:
        provider_of("openia")
    assert "openai" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("chat_model", "name"),
    [
        ("gpt-4o", "openai"),
        ("gpt-4o-mini", "openai"),
        ("GPT-5", "openai"),
        ("o3", "openai"),
        ("o4-mini", "openai"),
        ("chatgpt-4o-latest", "openai"),
        ("azure/gpt-4.1", "openai"),
        ("openai/o3-mini", "openai"),
        ("claude-3-5-sonnet", "anthropic"),
        ("claude-opus-4-1-20250805", "anthropic"),
        ("anthropic/claude-3.5-sonnet", "anthropic"),
        ("openrouter/anthropic/claude-sonnet-4", "anthropic"),
        ("us.anthropic.claude-3-5-haiku-20241022-v1:0", "anthropic"),
        ("gemini-2.5-flash", "gemini"),
        ("gemini-1.5-pro", "gemini"),
        ("models/gemini-2.5-pro", "gemini"),
        ("vertex_ai/gemini-2.0-flash", "gemini"),
        ("gpt-oss-120b", None),
        ("groq/openai/gpt-oss-20b", None),
        ("llama3.3:70b", None),
        ("mistral-large", None),
        ("phi-4", None),
        ("solo3", None),
        ("", None),
        (None, None),
    ],
)
def test_a_chat_models_name_determines_its_provider(
    chat_model: str | None, name: str | None
) -> None:
    provider = provider_of_chat_model(chat_model)
    assert (provider.name if provider else None) == name
