from __future__ import annotations

import pytest

from benchmarks.fusion.__main__ import _ndcg, _order
from benchmarks.fusion.lists import load
from benchmarks.fusion.rules import Candidates, families, product, vectors_alone, words_alone

WORSE = 0.045
"""How much worse than the better of its rankings hybrid is on any set, at most."""


@pytest.mark.slow
def test_product_is_the_best_rule_and_on_no_set_far_behind_a_single_ranking() -> None:
    sets = [Candidates.of(listed) for listed in load()]
    assert len({found.listed.kind for found in sets}) >= 8
    assert len({found.listed.language for found in sets}) >= 12

    def measured(rule: object) -> list[float]:
        assert callable(rule)
        return [float(_ndcg(found, _order(found, rule(found))).mean()) for found in sets]

    fused = measured(product)
    single = [measured(words_alone), measured(vectors_alone)]
    lacking = {
        found.listed.name: max(of_set) - hybrid
        for found, hybrid, *of_set in zip(sets, fused, *single, strict=True)
    }
    assert max(lacking.values()) < WORSE, lacking
    others = [
        sum(measured(rule))
        for name, rules in families().items()
        if name != "product"
        for rule in rules.values()
    ]
    assert sum(fused) > max(others)
