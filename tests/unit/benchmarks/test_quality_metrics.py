from __future__ import annotations

from dataclasses import dataclass

import pytest

from benchmarks.quality_metrics import (
    best_separating,
    difference_of,
    harmless,
    judged_share,
    kept_by,
    mean_of,
    values_of,
)
from examples.judged.judgements import JudgedQuestion, Judgement


@dataclass(frozen=True)
class Found:
    uri: str
    text: str
    also: tuple[str, ...] = ()


ANSWER, PART, OTHER = (Found("a.md", text) for text in ("answer", "part", "other"))
ASKED = JudgedQuestion(
    "asked", "paraphrase", "?", (Judgement("a.md", "answer"), Judgement("a.md", "part", 2))
)
UNANSWERED = JudgedQuestion("unanswered", "none", "?")


def test_measures_are_those_of_trec_eval() -> None:
    values = values_of([ASKED], {"asked": [OTHER, ANSWER]})
    # 3 / log2(3), of 3 / log2(2) + 2 / log2(3)
    assert values["nDCG@10"]["asked"] == pytest.approx(0.4441, abs=1e-4)
    assert values["recall@5"]["asked"] == 0.5
    assert values["MRR"]["asked"] == 0.5


def test_a_question_for_which_nothing_is_found_counts_as_nothing() -> None:
    assert values_of([ASKED], {"asked": []})["nDCG@10"] == {"asked": 0.0}


def test_the_share_of_judged_passages_is_reported() -> None:
    assert judged_share([ASKED], {"asked": [ANSWER, OTHER, PART, OTHER]}) == 0.5


def test_a_difference_that_is_always_there_is_none_of_chance() -> None:
    one = {str(n): 0.5 + n / 100 for n in range(20)}
    found = difference_of(one, {id_: value - 0.25 for id_, value in one.items()})
    assert (found["mean"], found["low"], found["high"]) == (0.25, 0.25, 0.25)
    assert found["p"] < 0.001
    assert difference_of(one, one)["p"] == 1.0


def test_the_mean_lies_in_its_interval() -> None:
    found = mean_of({"a": 0.0, "b": 1.0, "c": 1.0}, ["a", "b", "c"])
    assert found["low"] < found["mean"] < found["high"]


def test_a_threshold_is_chosen_by_what_it_keeps_and_rejects() -> None:
    answers = {
        -1.0: {"asked": [OTHER, ANSWER], "unanswered": [OTHER]},
        0.3: {"asked": [ANSWER], "unanswered": [OTHER]},
        0.5: {"asked": [ANSWER], "unanswered": []},
        0.7: {"asked": [], "unanswered": []},
    }
    curve = [kept_by(least, [ASKED, UNANSWERED], found) for least, found in answers.items()]
    assert [(kept.answered, kept.rejected) for kept in curve] == [(1, 0), (1, 0), (1, 1), (0, 1)]
    assert harmless(curve).min_score == best_separating(curve).min_score == 0.5
