import pytest
from pydantic import ValidationError

from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import find_price
from rag_assets.models.prices import FREE, Price, split_embedder_id


def test_a_million_tokens_cost_their_price_and_half_of_it_in_a_batch() -> None:
    price = Price(per_million=0.02, batch_per_million=0.01)
    assert price.compute_cost(1_000_000) == pytest.approx(0.02)
    assert price.compute_cost(50_000) == pytest.approx(0.001)
    assert price.compute_cost(1_000_000, is_batch=True) == pytest.approx(0.01)


def test_without_a_price_for_batches_they_cost_as_much() -> None:
    assert Price(per_million=2).compute_cost(500_000, is_batch=True) == pytest.approx(1)


@pytest.mark.parametrize(
    "wrong",
    [{"per_million": -1}, {"per_million": "nan"}, {"per_million": 1, "batch_per_million": 2}],
)
def test_prices_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Price.model_validate(wrong)


@pytest.mark.parametrize(
    ("embedder_id", "parts"),
    [
        ("openai/text-embedding-3-small@1536", ("openai", "text-embedding-3-small")),
        ("local/all-MiniLM-L6-v2@384+cbed747c6b64", ("local", "all-MiniLM-L6-v2")),
        ("openai-compatible/org/model@v2@768+0123", ("openai-compatible", "org/model@v2")),
    ],
)
def test_an_embedders_id_names_provider_and_model(embedder_id: str, parts: tuple[str, str]) -> None:
    assert split_embedder_id(embedder_id) == parts


def test_a_tenants_own_price_goes_before_the_list() -> None:
    assert find_price(EmbedderConfig()) == FREE
    own = EmbedderConfig.model_validate({"price": {"per_million": 0.5}})
    assert find_price(own) == Price(per_million=0.5)
