from __future__ import annotations

import pytest

from rag_assets.quality.judgements import JudgedQuestion, Judgement
from rag_assets.quality.measures import compute_judged_share, compute_measures
from tests.unit.quality.passages import Found

ANSWER, PART, OTHER = (Found("a.md", text) for text in ("answer", "part", "other"))
ASKED = JudgedQuestion(
    "asked", "paraphrase", "?", (Judgement("a.md", "answer"), Judgement("a.md", "part", 2))
)
OF_DOCUMENTS = JudgedQuestion(
    "documents",
    "",
    "?",
    (Judgement("a.md", grade=1), Judgement("b.md", grade=1)),
    relevant_from=1,
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
