from typing import Any

import pytest
from pydantic import ValidationError

from rag_assets.billing.embedders import choose_embedder
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import find_price

OPENAI = ("openai", "text-embedding-3-small", 1536)
GEMINI = ("gemini", "gemini-embedding-001", 1536)
NONE: frozenset[str] = frozenset()
O, G, BOTH = frozenset({"openai"}), frozenset({"gemini"}), frozenset({"openai", "gemini"})  # noqa: E741
GPT, CLAUDE, FLASH, LLAMA = "gpt-4o", "claude-3-5-haiku-latest", "gemini-2.5-flash", "llama3.3:70b"


@pytest.mark.parametrize(
    ("chat_model", "stored", "serving", "chosen", "key"),
    [
        # An OpenAI chat model: OpenAI's key, and no other.
        (GPT, NONE, None, OPENAI, "missing"),
        (GPT, O, None, OPENAI, "stored"),
        (GPT, G, None, OPENAI, "missing"),
        (GPT, BOTH, None, OPENAI, "stored"),
        # A Gemini chat model: likewise.
        (FLASH, NONE, None, GEMINI, "missing"),
        (FLASH, O, None, GEMINI, "missing"),
        (FLASH, G, None, GEMINI, "stored"),
        (FLASH, BOTH, None, GEMINI, "stored"),
        # Anthropic has no embeddings: Gemini, else a second key, OpenAI's.
        (CLAUDE, NONE, None, GEMINI, "missing"),
        (CLAUDE, O, None, OPENAI, "stored"),
        (CLAUDE, G, None, GEMINI, "stored"),
        (CLAUDE, BOTH, None, GEMINI, "stored"),
        # Somebody else's, or none: whichever key there is.
        (LLAMA, NONE, None, OPENAI, "missing"),
        (LLAMA, O, None, OPENAI, "stored"),
        (LLAMA, G, None, GEMINI, "stored"),
        (None, NONE, None, OPENAI, "missing"),
        (None, G, None, GEMINI, "stored"),
        (None, BOTH, None, OPENAI, "stored"),
        ("", G, None, GEMINI, "stored"),
        # What answers stays as long as its key does.
        (CLAUDE, BOTH, "openai", OPENAI, "stored"),
        (CLAUDE, G, "openai", GEMINI, "stored"),
        (FLASH, BOTH, "openai", OPENAI, "stored"),
        (FLASH, O, "openai", OPENAI, "stored"),
        (GPT, BOTH, "gemini", GEMINI, "stored"),
        (GPT, O, "gemini", OPENAI, "stored"),
        (GPT, NONE, "gemini", OPENAI, "missing"),
        (None, BOTH, "gemini", GEMINI, "stored"),
        # A build by what auto never chooses is given up.
        (GPT, O, "local", OPENAI, "stored"),
        (CLAUDE, G, "openai-compatible", GEMINI, "stored"),
        (CLAUDE, frozenset({"openai-compatible"}), "openai-compatible", GEMINI, "missing"),
    ],
)
def test_auto_goes_by_the_chat_model_and_the_keys(
    chat_model: str | None,
    stored: frozenset[str],
    serving: str | None,
    chosen: tuple[str, str, int],
    key: str,
) -> None:
    auto = EmbedderConfig(provider="auto")
    choice = choose_embedder(auto, chat_model=chat_model, stored=stored, serving=serving)
    found = choice.embedder
    assert ((found.provider, found.model, found.dimensions), choice.key) == (chosen, key)


LOCAL_AI = {"base_url": "https://ai.example.org/v1", "model": "e5", "dimensions": 384}


@pytest.mark.parametrize(
    ("configured", "stored", "key"),
    [
        ({"provider": "local"}, BOTH, "none needed"),
        ({"provider": "deterministic"}, NONE, "none needed"),
        ({"provider": "openai"}, O, "stored"),
        ({"provider": "openai"}, G, "missing"),
        ({"provider": "openai", "api_key": "$ACME_KEY"}, NONE, "variable"),
        ({"provider": "openai", "api_key": "$ACME_KEY"}, BOTH, "variable"),
        ({"provider": "openai", "model": "text-embedding-3-large"}, O, "stored"),
        ({"provider": "gemini"}, G, "stored"),
        ({"provider": "gemini"}, O, "missing"),
        ({"provider": "gemini", "api_key": "$ACME_KEY"}, O, "variable"),
        ({"provider": "openai-compatible", **LOCAL_AI}, BOTH, "none needed"),
        ({"provider": "openai-compatible", **LOCAL_AI}, frozenset({"openai-compatible"}), "stored"),
        ({"provider": "openai-compatible", "api_key": "$KEY", **LOCAL_AI},
         frozenset({"openai-compatible"}), "variable"),
    ],
)  # fmt: skip
def test_what_is_configured_is_taken(
    configured: dict[str, Any], stored: frozenset[str], key: str
) -> None:
    embedder = EmbedderConfig.model_validate(configured)
    for chat_model in (None, GPT, CLAUDE, FLASH):
        for serving in (None, "local", "openai", "gemini"):
            choice = choose_embedder(
                embedder, chat_model=chat_model, stored=stored, serving=serving
            )
            assert (choice.embedder, choice.key) == (embedder, key)


def test_auto_keeps_the_limits_that_are_set_with_it() -> None:
    auto = EmbedderConfig(provider="auto", requests_per_minute=60, concurrency=2)
    found = choose_embedder(auto, chat_model=CLAUDE, stored=O).embedder
    assert (found.requests_per_minute, found.concurrency, found.provider) == (60, 2, "openai")


def test_a_key_by_reference_needs_a_provider_that_is_named() -> None:
    with pytest.raises(ValueError, match="the provider 'auto' does not support api_key"):
        EmbedderConfig(provider="auto", api_key="$ACME_KEY")


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
