import numpy as np
import pytest

from rag_assets.quality.judgements import JudgedQuestion, Judgement
from rag_assets.quality.measures import (
    compute_judged_share,
    compute_measures,
    estimate_difference,
    estimate_mean,
)
from tests.unit.quality.passages import Found

ANSWER, PART, OTHER = (Found("a.md", text) for text in ("answer", "part", "other"))
ASKED = JudgedQuestion(
    "asked", "paraphrase", "?", (Judgement("a.md", "answer"), Judgement("a.md", "part", 2))
)
OF_DOCUMENTS = JudgedQuestion(
    "documents", "", "?", (Judgement("a.md", grade=1), Judgement("b.md", grade=1)), relevant_from=1
)


def test_measures_are_those_of_trec_eval() -> None:
    values = compute_measures([ASKED], {"asked": [OTHER, ANSWER]})
    # 3 / log2(3), of 3 / log2(2) + 2 / log2(3)
    assert values["nDCG@10"]["asked"] == pytest.approx(0.4441, abs=1e-4)
    assert values["recall@5"]["asked"] == values["recall@10"]["asked"] == 0.5
    assert values["MRR"]["asked"] == 0.5


def test_recall_ends_at_its_depth() -> None:
    values = compute_measures([ASKED], {"asked": [OTHER] * 5 + [ANSWER, PART]})
    assert values["recall@5"]["asked"] == 0.0
    assert values["recall@10"]["asked"] == 1.0


def test_a_question_for_which_nothing_is_found_counts_as_nothing() -> None:
    assert compute_measures([ASKED], {"asked": []})["nDCG@10"] == {"asked": 0.0}


def test_sets_of_passages_and_of_documents_are_measured_together() -> None:
    found = {"asked": [ANSWER, PART], "documents": [ANSWER, PART, OTHER, Found("b.md", "text")]}
    values = compute_measures([ASKED, OF_DOCUMENTS], found)
    assert values["nDCG@10"] == {"asked": 1.0, "documents": 1.0}
    assert values["recall@5"] == {"asked": 1.0, "documents": 1.0}


def test_documents_are_ranked_by_their_first_passage() -> None:
    other = Found("c.md", "text")
    found = {"documents": [other, ANSWER, other, PART, Found("b.md", "text")]}
    values = compute_measures([OF_DOCUMENTS], found)
    assert values["MRR"]["documents"] == 0.5
    # 1 / log2(3) + 1 / log2(4), of 1 + 1 / log2(3)
    assert values["nDCG@10"]["documents"] == pytest.approx(0.6934, abs=1e-4)
    assert compute_judged_share([OF_DOCUMENTS], found) == pytest.approx(2 / 3)


def test_the_share_of_judged_passages_is_reported() -> None:
    assert compute_judged_share([ASKED], {"asked": [ANSWER, OTHER, PART, OTHER]}) == 0.5
    assert compute_judged_share([ASKED], {"asked": []}) is None


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
