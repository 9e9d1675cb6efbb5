"""What may be configured of a provider's model, and what a configuration comes to."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rag_assets.common.errors import ConfigurationError
from rag_assets.models.config.embedder import EmbedderConfig
from rag_assets.models.factory import build_embedder, embedder_id_of, remote_model, traffic_of

SERVER = "https://models.example.org/v1"


def config(provider: str, model: str | None = None, **options: object) -> EmbedderConfig:
    return EmbedderConfig.model_validate({"provider": provider, "model": model, **options})


@pytest.mark.parametrize(
    ("options", "embedder_id"),
    [
        ({"provider": "openai"}, "openai/text-embedding-3-small@1536"),
        ({"provider": "openai", "dimensions": 512}, "openai/text-embedding-3-small@512"),
        (
            {"provider": "openai", "model": "text-embedding-3-large"},
            "openai/text-embedding-3-large@3072",
        ),
        (
            {"provider": "openai", "model": "text-embedding-9", "dimensions": 99},
            "openai/text-embedding-9@99",
        ),
    ],
)
def test_an_id_is_plain_where_nothing_is_special(options, embedder_id):
    assert embedder_id_of(EmbedderConfig(**options)) == embedder_id


@pytest.mark.parametrize(
    "embedder",
    [
        config("openai", base_url=SERVER),
        config("openai", document_prefix="passage: "),
        config("openai", query_prefix="query: "),
        config("gemini"),
        config("gemini", "gemini-embedding-2", dimensions=3072),
        config("gemini", "gemini-embedding-2", dimensions=3072, document_prefix=""),
        config("gemini", "gemini-embedding-exp", dimensions=1536),
        config("gemini", "text-embedding-004"),
        config("gemini", "text-embedding-004", dimensions=1536),
        config("openai-compatible", "e5", dimensions=384, base_url=SERVER),
        config("openai-compatible", "e5", dimensions=384, base_url=SERVER, query_prefix="query: "),
        config("openai-compatible", "e5", dimensions=384, base_url="https://other.example.org/v1"),
    ],
    ids=embedder_id_of,
)
def test_an_id_holds_whatever_determines_a_vector(embedder):
    model = remote_model(embedder)
    plain, _, digest = embedder_id_of(embedder).partition("+")
    assert plain == f"{embedder.provider}/{model.name}@{model.dimensions}"
    assert len(digest) == 12
    assert build_embedder(embedder).embedder_id == embedder_id_of(embedder)


def test_ids_differ_where_vectors_do():
    different = [
        config("openai-compatible", "e5", dimensions=384, base_url=SERVER),
        config("openai-compatible", "e5", dimensions=383, base_url=SERVER),
        config("openai-compatible", "e5", dimensions=384, base_url=SERVER + "/b"),
        config("openai-compatible", "e5", dimensions=384, base_url=SERVER, document_prefix="a"),
        config("openai-compatible", "e5", dimensions=384, base_url=SERVER, query_prefix="a"),
        config("gemini", "text-embedding-004", dimensions=768),
        config("gemini", "text-embedding-004", dimensions=1536),
        config("gemini", "gemini-embedding-001", dimensions=1536),
        config("gemini", "gemini-embedding-2", dimensions=1536),
    ]
    assert len({embedder_id_of(each) for each in different}) == len(different)


def test_ids_are_equal_where_vectors_are():
    plain = config("openai-compatible", "e5", dimensions=384, base_url=SERVER)
    same = config(
        "openai-compatible",
        "e5",
        dimensions=384,
        base_url="https://MODELS.example.org/v1/",
        api_key="$KEY",
        concurrency=2,
        requests_per_minute=10,
        batch_size=7,
    )
    assert embedder_id_of(same) == embedder_id_of(plain)


def test_limits_are_the_models_or_what_was_chosen():
    small = remote_model(config("openai")).limits
    assert (small.texts, small.tokens, small.input_tokens) == (100, 300_000, 8192)
    assert remote_model(config("gemini")).limits.input_tokens == 2048
    assert remote_model(config("gemini", "gemini-embedding-2")).limits.input_tokens == 8192
    chosen = config("openai", batch_size=10, max_input_tokens=512, concurrency=3)
    limits = remote_model(chosen).limits
    assert (limits.texts, limits.input_tokens, limits.concurrency) == (10, 512, 3)
    assert traffic_of(chosen).concurrency == 3


def test_a_prefix_is_counted():
    model = remote_model(config("gemini", "gemini-embedding-2"))
    assert model.count_tokens(["word"])[0] > 4
    assert remote_model(config("openai")).count_tokens(["word"]) == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"provider": "openai", "dimensions": 1537}, "1536 dimensions at most, not 1537"),
        (
            {"provider": "openai", "model": "text-embedding-3-large", "dimensions": 3073},
            "3072 dimensions at most",
        ),
        (
            {"provider": "openai", "model": "text-embedding-ada-002", "dimensions": 512},
            "vectors of 1536 dimensions, not 512",
        ),
        ({"provider": "openai", "model": "new"}, "'new' is not known: set its dimensions"),
        ({"provider": "gemini", "model": "new"}, "'new' is not known: .*gemini-embedding-001"),
        ({"provider": "gemini", "dimensions": 1000}, "768, 1536, 3072 dimensions, not 1000"),
        (
            {"provider": "gemini", "model": "text-embedding-004", "dimensions": 3072},
            "768, 1536 dimensions, not 3072",
        ),
        ({"provider": "openai-compatible", "model": "m", "dimensions": 3}, "needs its base_url"),
        (
            {"provider": "openai-compatible", "base_url": SERVER, "dimensions": 3},
            "needs its base_url and a model",
        ),
        (
            {"provider": "openai-compatible", "model": "m", "base_url": SERVER},
            "set its dimensions",
        ),
        ({"provider": "openai", "model": "a b"}, "should match pattern"),
        ({"provider": "openai", "model": "a/../b?c"}, "should match pattern"),
        ({"provider": "openai", "path": "/models"}, "takes no path"),
        ({"provider": "openai", "threads": 2}, "takes no threads"),
        ({"provider": "openai", "batch_size": 101}, "less than or equal to 100"),
        ({"provider": "openai", "concurrency": 0}, "greater than or equal to 1"),
        ({"provider": "openai", "requests_per_minute": 0}, "greater than or equal to 1"),
        ({"provider": "local", "base_url": SERVER}, "takes no base_url"),
        ({"provider": "local", "api_key": "$KEY"}, "takes no api_key"),
        ({"provider": "auto", "model": "m"}, "takes no model"),
        ({"provider": "openai", "base_url": "ftp://models.example.org"}, "must begin with https"),
    ],
)
def test_an_invalid_embedder_is_refused_in_one_line(options, message):
    with pytest.raises(ValidationError, match=message):
        EmbedderConfig(**options)


def test_a_key_itself_is_refused_and_not_quoted():
    with pytest.raises(ConfigurationError, match=r"embedder\.api_key") as caught:
        EmbedderConfig(provider="openai", api_key="sk-planted-key-123456")
    assert "sk-planted" not in caught.value.advice
    assert EmbedderConfig(provider="openai", api_key="$OPENAI_KEY").api_key == "$OPENAI_KEY"


def test_auto_makes_no_embedder_before_a_provider_is_chosen():
    for use in (build_embedder, embedder_id_of):
        with pytest.raises(ConfigurationError, match="not chosen yet"):
            use(EmbedderConfig(provider="auto"))
