import pytest

from rag_assets.common.formatting import dollars


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (0, "$0"),
        (1234.5, "$1,234.50"),
        (1, "$1.00"),
        (0.5, "$0.50"),
        (0.0123, "$0.012"),
        (0.000_000_02, "$0.000000020"),
    ],
)
def test_money_is_rounded_to_cents_or_below_a_cent_to_two_digits(amount: float, words: str) -> None:
    assert dollars(amount) == words
