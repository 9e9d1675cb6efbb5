"""Time limits of chat models."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rag_assets.models.config.chat import ChatModelConfig

OWN = {"model": "m", "provider": "openai-compatible", "base_url": "http://127.0.0.1:8080/v1"}


def test_limit_grows_with_the_tokens_where_the_speed_is_configured() -> None:
    slow = ChatModelConfig(**OWN, seconds=20, tokens_per_second={"read": 50, "write": 4})
    assert slow.seconds_for(4_000, 400) == 20 + 80 + 100
    assert slow.seconds_for(500, 40) == 20 + 10 + 10
    assert slow.seconds_for(1_000_000, 16_384) == 1_800
    assert ChatModelConfig(**OWN, tokens_per_second={}).seconds_for(3_000, 300) == 45 + 100 + 100


def test_limit_is_fixed_without_a_speed() -> None:
    assert ChatModelConfig(**OWN).seconds_for(4_000, 16_384) == 45
    assert ChatModelConfig(model="gpt-4.1-mini", seconds=7).seconds_for(10**6, 16) == 7


@pytest.mark.parametrize(
    "speed", [{"read": 0}, {"write": 0}, {"write": float("inf")}, {"speed": 3}]
)
def test_speed_has_to_be_a_positive_number(speed: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ChatModelConfig(**OWN, tokens_per_second=speed)


def test_speed_is_of_a_server_of_ones_own() -> None:
    with pytest.raises(ValidationError, match="base_url"):
        ChatModelConfig(model="gpt-4.1-mini", tokens_per_second={})
