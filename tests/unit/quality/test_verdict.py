from collections.abc import Sequence
from typing import Any

import pytest

from rag_assets.quality.asking import AskOptions
from rag_assets.quality.evaluation import (
    BuildComparison,
    Evaluation,
    MeasuredPart,
    QualityVerdict,
    judge_comparison,
)
from rag_assets.quality.measures import MEASURES, NDCG, RECALL_5
from rag_assets.tenants.model import QualityConfig

MANY = 30


def part(values: Sequence[float], recall: Sequence[float] | None = None) -> MeasuredPart:
    ids = [f"q{at:02}" for at in range(len(values))]
    by_measure = {measure: dict(zip(ids, values, strict=True)) for measure in MEASURES}
    by_measure[RECALL_5] = dict(zip(ids, values if recall is None else recall, strict=True))
    return MeasuredPart(by_measure, 1.0)


def build(number: int, people: MeasuredPart, synthetic: MeasuredPart | None = None) -> Evaluation:
    return Evaluation(
        number, "local/m@3", AskOptions("hybrid"), people, synthetic or MeasuredPart(), {}, (), 0
    )


def judged(
    new: MeasuredPart, serving: MeasuredPart, apart: tuple[str, ...] = (), **config: Any
) -> QualityVerdict:
    both = BuildComparison(build(2, new), build(1, serving), apart)
    return judge_comparison(both, QualityConfig(**config))


@pytest.mark.parametrize(
    ("serving", "new", "outcome"),
    [
        (0.80, 0.80, "pass"),
        (0.80, 0.95, "pass"),
        (0.80, 0.78, "pass"),
        (0.80, 0.7798, "fail"),
        (0.80, 0.10, "fail"),
        (0.01, 0.00, "pass"),
    ],
)
def test_a_build_may_be_lower_by_the_tolerance(serving: float, new: float, outcome: str) -> None:
    found = judged(part([new] * MANY), part([serving] * MANY))
    assert found.outcome == outcome
    ndcg, recall = found.guarded
    assert (ndcg.measure, recall.measure) == (NDCG, RECALL_5)
    assert (ndcg.serving, ndcg.new) == (serving, new)
    assert ndcg.least == pytest.approx(max(0.0, serving - 0.02))


def test_recall_alone_is_enough_to_fail() -> None:
    ones, halves = [1.0] * MANY, [0.5] * MANY
    found = judged(part(ones, halves), part(ones))
    assert found.outcome == "fail"
    assert "recall@5 is 0.500, below 0.980" in found.description
    assert [one.is_lower for one in found.guarded] == [False, True]


@pytest.mark.parametrize("count", [0, 1, 19])
def test_few_questions_never_fail(count: int) -> None:
    found = judged(part([0.0] * count), part([1.0] * count))
    assert found.outcome == "warn"
    assert (found.questions, found.least) == (count, 20)


def test_synthetic_questions_decide_nothing() -> None:
    good, bad = part([1.0] * MANY), part([0.0] * MANY)
    both = BuildComparison(build(2, good, bad), build(1, good, good), ())
    found = judge_comparison(both, QualityConfig())
    assert (found.outcome, found.worse) == ("pass", ())


def test_questions_that_are_answered_worse_are_named_the_worst_first() -> None:
    new, serving = part([0.5, 1.0, 0.2] + [1.0] * MANY), part([0.6, 0.9, 0.9] + [1.0] * MANY)
    found = judged(new, serving, ("q99",))
    worse = [(one.question, one.serving, one.new) for one in found.worse]
    assert worse == [("q02", 0.9, 0.2), ("q00", 0.6, 0.5)]
    assert found.apart == ("q99",)


def test_the_tolerance_and_the_least_number_are_the_tenants() -> None:
    new, serving = part([0.7] * 3), part([0.9] * 3)
    assert judged(new, serving, least=3).outcome == "fail"
    assert judged(new, serving, least=3, tolerance=0.25).outcome == "pass"
