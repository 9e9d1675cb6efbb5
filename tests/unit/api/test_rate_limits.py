"""How many requests a token may make, and when the next one."""

from __future__ import annotations

import pytest

from rag_assets.api.rate_limits import Rate, Rates, SharedWindows, TooManyRequests
from rag_assets.common.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("600/minute", Rate(600, 60.0)),
        (" 20 / second", Rate(20, 1.0)),
        ("5/hour", Rate(5, 3_600.0)),
        ("1000000/day", Rate(1_000_000, 86_400.0)),
        ("3 per minutes", Rate(3, 60.0)),
    ],
)
def test_a_rate_is_a_number_and_a_unit(text: str, rate: Rate) -> None:
    assert Rate.parse(text) == rate


@pytest.mark.parametrize(
    "text", ["", "600", "0/minute", "-1/minute", "1.5/second", "6/weeks", "1000001/day"]
)
def test_what_is_no_rate_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match="RAG_ASSETS_SERVICE_RATE is not a rate"):
        Rate.parse(text)


def test_a_token_waits_until_its_first_request_is_a_window_ago() -> None:
    now = 1_000.0
    rates = Rates(SharedWindows(2, 60.0, keys=10, clock=lambda: now))
    rates.take("ada")
    now += 10.5
    rates.take("ada")
    rates.take("eve")
    with pytest.raises(TooManyRequests) as refused:
        rates.take("ada")
    assert refused.value.retry_after == 50
    now += 49.5
    rates.take("ada")
    with pytest.raises(TooManyRequests) as refused:
        rates.take("ada")
    assert refused.value.retry_after == 11
    rates.take("eve")
