from __future__ import annotations

import numpy as np

from rag_assets.quality.measures import estimate_difference, estimate_mean


def test_a_difference_that_is_always_there_is_none_of_chance() -> None:
    one = {str(n): 0.5 + n / 100 for n in range(20)}
    found = estimate_difference(one, {id_: value - 0.25 for id_, value in one.items()})
    assert (found.mean, found.low, found.high) == (0.25, 0.25, 0.25)
    assert found.p < 0.001
    assert estimate_difference(one, one).p == 1.0


def test_the_mean_lies_in_its_interval() -> None:
    found = estimate_mean({"a": 0.0, "b": 1.0, "c": 1.0})
    assert found.low < found.mean < found.high
    assert estimate_mean({"a": 0.0, "b": 1.0}, ["b"]).mean == 1.0


def test_the_interval_narrows_with_the_questions() -> None:
    draws = np.random.default_rng(1).random(4_000)
    few, many = ({str(n): float(v) for n, v in enumerate(draws[:c])} for c in (40, 4_000))
    narrow, wide = estimate_mean(many), estimate_mean(few)
    assert 5 < (wide.high - wide.low) / (narrow.high - narrow.low) < 20
    # 1.96 standard errors of a mean of 4,000 uniform draws
    assert abs((narrow.high - narrow.low) - 2 * 1.96 * 12**-0.5 * 4_000**-0.5) < 0.002
