from math import inf

import pytest
from pydantic import ValidationError

from rag_assets.common.errors import ConfigurationError
from rag_assets.models.config import ChatModelConfig, EmbedderConfig, RerankConfig
from rag_assets.models.factory import (
    build_embedder,
    build_remote_model,
    build_traffic,
    get_embedder_id,
)

SERVER = "https://models.example.org/v1"


def config(provider: str, model: str | None = None, **options: object) -> EmbedderConfig:
    return EmbedderConfig.model_validate({"provider": provider, "model": model, **options})


@pytest.mark.parametrize(
    ("options", "embedder_id"),
    [
        ({"provider": "openai"}, "openai/text-embedding-3-small@1536"),
        ({"provider": "openai", "dimensions": 512}, "openai/text-embedding-3-small@512"),
        ({"provider": "openai", "model": "text-embedding-3-large"},
         "openai/text-embedding-3-large@3072"),
        ({"provider": "openai", "model": "text-embedding-9", "dimensions": 99},
         "openai/text-embedding-9@99"),
    ],
)  # fmt: skip
def test_an_id_is_plain_where_nothing_is_special(options, embedder_id):
    assert get_embedder_id(EmbedderConfig(**options)) == embedder_id


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
    ids=get_embedder_id,
)
def test_an_id_holds_whatever_determines_a_vector(embedder):
    model = build_remote_model(embedder)
    plain, _, digest = get_embedder_id(embedder).partition("+")
    assert plain == f"{embedder.provider}/{model.name}@{model.dimensions}"
    assert len(digest) == 12
    assert build_embedder(embedder).embedder_id == get_embedder_id(embedder)


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
    assert len({get_embedder_id(each) for each in different}) == len(different)


def test_ids_are_equal_where_vectors_are():
    plain = config("openai-compatible", "e5", dimensions=384, base_url=SERVER)
    speed = {"concurrency": 2, "requests_per_minute": 10, "batch_size": 7}
    url = "https://MODELS.example.org/v1/"
    same = config("openai-compatible", "e5", dimensions=384, base_url=url, api_key="$KEY", **speed)
    assert get_embedder_id(same) == get_embedder_id(plain)


def test_limits_are_the_models_or_what_was_chosen():
    small = build_remote_model(config("openai")).limits
    assert (small.texts, small.tokens, small.input_tokens) == (100, 300_000, 8192)
    assert build_remote_model(config("gemini")).limits.input_tokens == 2048
    assert build_remote_model(config("gemini", "gemini-embedding-2")).limits.input_tokens == 8192
    chosen = config("openai", batch_size=10, max_input_tokens=512, concurrency=3)
    limits = build_remote_model(chosen).limits
    assert (limits.texts, limits.input_tokens, limits.concurrency) == (10, 512, 3)
    assert build_traffic(chosen).concurrency == 3


def test_a_prefix_is_counted():
    model = build_remote_model(config("gemini", "gemini-embedding-2"))
    assert model.count_tokens(["word"])[0] > 4
    assert build_remote_model(config("openai")).count_tokens(["word"]) == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"provider": "openai", "dimensions": 1537}, "1536 dimensions at most, not 1537"),
        ({"provider": "openai", "model": "text-embedding-3-large", "dimensions": 3073},
         "3072 dimensions at most"),
        ({"provider": "openai", "model": "text-embedding-ada-002", "dimensions": 512},
         "vectors of 1536 dimensions, not 512"),
        ({"provider": "openai", "model": "new"}, "'new' is not known: set its dimensions"),
        ({"provider": "gemini", "model": "new"}, "'new' is not known: .*gemini-embedding-001"),
        ({"provider": "gemini", "dimensions": 1000}, "768, 1536, 3072 dimensions, not 1000"),
        ({"provider": "gemini", "model": "text-embedding-004", "dimensions": 3072},
         "768, 1536 dimensions, not 3072"),
        ({"provider": "openai-compatible", "model": "m", "dimensions": 3}, "needs a base_url"),
        ({"provider": "openai-compatible", "base_url": SERVER, "dimensions": 3},
         "needs a base_url and a model"),
        ({"provider": "openai-compatible", "model": "m", "base_url": SERVER}, "set its dimensions"),
        ({"provider": "openai", "model": "a b"}, "should match pattern"),
        ({"provider": "openai", "model": "a/../b?c"}, "should match pattern"),
        ({"provider": "openai", "path": "/models"}, "does not support path"),
        ({"provider": "openai", "threads": 2}, "does not support threads"),
        ({"provider": "openai", "batch_size": 101}, "less than or equal to 100"),
        ({"provider": "openai", "concurrency": 0}, "greater than or equal to 1"),
        ({"provider": "openai", "requests_per_minute": 0}, "greater than or equal to 1"),
        ({"provider": "local", "base_url": SERVER}, "does not support base_url"),
        ({"provider": "local", "api_key": "$KEY"}, "does not support api_key"),
        ({"provider": "auto", "model": "m"}, "does not support model"),
        ({"provider": "openai", "base_url": "ftp://models.example.org"}, "must begin with https"),
        ({"provider": "openai", "connection": {"deployment": "x"}}, "connection"),
        ({"provider": "vllm", "base_url": SERVER, "model": "BAAI/bge-m3", "dimensions": 512},
         "1024 dimensions, not 512"),
    ],
)  # fmt: skip
def test_an_invalid_embedder_is_refused_in_one_line(options, message):
    with pytest.raises(ValidationError, match=message):
        EmbedderConfig(**options)


def test_a_key_itself_is_refused_and_not_quoted():
    with pytest.raises(ConfigurationError, match=r"embedder\.api_key") as caught:
        EmbedderConfig(provider="openai", api_key="sk-planted-key-123456")
    assert "sk-planted" not in caught.value.advice
    assert EmbedderConfig(provider="openai", api_key="$OPENAI_KEY").api_key == "$OPENAI_KEY"


def test_auto_makes_no_embedder_before_a_provider_is_chosen():
    for use in (build_embedder, get_embedder_id):
        with pytest.raises(ConfigurationError, match="not chosen yet"):
            use(EmbedderConfig(provider="auto"))


OWN = {"model": "m", "provider": "openai-compatible", "base_url": "http://127.0.0.1:8080/v1"}


def test_limit_grows_with_the_tokens_where_the_speed_is_configured() -> None:
    slow = ChatModelConfig(**OWN, seconds=20, tokens_per_second={"read": 50, "write": 4})
    assert slow.compute_time_limit(4_000, 400) == 20 + 80 + 100
    assert slow.compute_time_limit(500, 40) == 20 + 10 + 10
    assert slow.compute_time_limit(1_000_000, 16_384) == 1_800
    default = ChatModelConfig(**OWN, tokens_per_second={})
    assert default.compute_time_limit(3_000, 300) == 45 + 100 + 100


def test_limit_is_fixed_without_a_speed() -> None:
    assert ChatModelConfig(**OWN).compute_time_limit(4_000, 16_384) == 45
    assert ChatModelConfig(model="gpt-4.1-mini", seconds=7).compute_time_limit(10**6, 16) == 7


@pytest.mark.parametrize("speed", [{"read": 0}, {"write": 0}, {"write": inf}, {"speed": 3}])
def test_speed_has_to_be_a_positive_number(speed: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ChatModelConfig(**OWN, tokens_per_second=speed)


def test_speed_is_of_a_server_of_ones_own() -> None:
    with pytest.raises(ValidationError, match="base_url"):
        ChatModelConfig(model="gpt-4.1-mini", tokens_per_second={})


def test_a_url_is_kept_as_requests_use_it() -> None:
    config = RerankConfig(url="https://API.example.com/v2/rerank", model="rerank-v3.5")
    assert config.url == "https://api.example.com/v2/rerank"
    assert (config.first, config.seconds, config.by_default) == (50, 2.0, True)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "set model: ms-marco-minilm-l12 .*folder.*url"),
        ({"model": "ms-marco-minilm-l6"}, "set model: ms-marco-minilm-l12"),
        ({"model": "ms-marco-minilm-l12", "api_key": "$KEY"},
         "shipped model does not support api_key"),
        ({"folder": "/m", "blend": 0}, "greater than 0"),
        ({"folder": "/m", "url": "https://a.example/rerank"}, "folder and url cannot be combined"),
        ({"folder": "models/mine"}, "absolute"),
        ({"folder": "/m", "model": "x", "api_key": "$KEY"}, "with a folder.*model, api_key"),
        ({"url": "https://a.example/rerank", "threads": 2}, "with a url.*threads"),
        ({"url": "ftp://a.example/rerank"}, "^(?!.*base_url).*url must begin with https"),
        ({"url": "https://user:pass@a.example/rerank"}, "a user or a password"),
        ({"folder": "/m", "first": 101}, "less than or equal to 100"),
        ({"folder": "/m", "first": 1}, "greater than or equal to 2"),
        ({"folder": "/m", "seconds": 0}, "greater than 0"),
        ({"folder": "/m", "seconds": float("nan")}, "finite"),
    ],
)  # fmt: skip
def test_an_invalid_configuration_is_refused(given: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=rf"(?s){problem}"):
        RerankConfig.model_validate(given)


def test_the_shipped_model_has_the_defaults_that_were_measured_for_it() -> None:
    config = RerankConfig.model_validate({"model": "ms-marco-minilm-l12"})
    assert config.is_shipped
    assert (config.first, config.languages) == (20, "english")
    assert 0.3 <= config.blend <= 0.5
    other = RerankConfig.model_validate({"model": "ms-marco-minilm-l12", "first": 8, "blend": 1})
    assert (other.first, other.blend) == (8, 1)
    served = RerankConfig(url="https://a.example/rerank", model="ms-marco-minilm-l12")
    assert (served.is_shipped, served.local_folder) == (False, None)
    assert (served.first, served.blend, served.languages) == (50, 1, "any")


def test_a_key_stands_there_by_name_only() -> None:
    with pytest.raises(ConfigurationError, match=r"retrieval\.rerank\.api_key") as caught:
        RerankConfig(url="https://a.example/rerank", api_key="sk-verysecret")
    assert "verysecret" not in caught.value.advice
