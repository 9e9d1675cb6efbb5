"""What tenants.yaml may say of a reranker."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rag_assets.common.errors import ConfigurationError
from rag_assets.models.config.reranking import RerankConfig


def test_a_url_is_kept_as_requests_use_it() -> None:
    config = RerankConfig(url="https://API.example.com/v2/rerank", model="rerank-v3.5")
    assert config.url == "https://api.example.com/v2/rerank"
    assert (config.first, config.seconds, config.by_default) == (50, 2.0, True)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "set model: ms-marco-minilm-l12 .*folder.*url"),
        ({"model": "ms-marco-minilm-l6"}, "set model: ms-marco-minilm-l12"),
        ({"model": "ms-marco-minilm-l12", "api_key": "$KEY"}, "shipped model.*takes no api_key"),
        ({"folder": "/m", "blend": 0}, "greater than 0"),
        ({"folder": "/m", "url": "https://a.example/rerank"}, "either the folder"),
        ({"folder": "models/mine"}, "absolute"),
        ({"folder": "/m", "model": "x", "api_key": "$KEY"}, "with a folder.*model, api_key"),
        ({"url": "https://a.example/rerank", "threads": 2}, "with a url.*threads"),
        ({"url": "ftp://a.example/rerank"}, "^(?!.*base_url).*url must begin with https"),
        ({"url": "https://user:pass@a.example/rerank"}, "no password"),
        ({"folder": "/m", "first": 101}, "less than or equal to 100"),
        ({"folder": "/m", "first": 1}, "greater than or equal to 2"),
        ({"folder": "/m", "seconds": 0}, "greater than 0"),
        ({"folder": "/m", "seconds": float("nan")}, "finite"),
    ],
)
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
