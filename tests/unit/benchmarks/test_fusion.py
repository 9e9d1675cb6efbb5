import re

import numpy as np
import pytest

from benchmarks.fusion.__main__ import _compute_ndcg, _rank_candidates
from benchmarks.fusion.contest import _compute_p_value, _compute_values, _rank_set
from benchmarks.fusion.lists import SAMPLED_PASSAGES, SAMPLED_QUESTIONS, load_sets, sample_set
from benchmarks.fusion.rules import (
    Candidates,
    list_families,
    rank_by_vectors,
    rank_by_words,
    score_product,
)
from benchmarks.fusion.sets import JudgedSet
from benchmarks.rivals.searching import _BIGRAMS, _WORDS

WORSE = 0.045
"""Maximum loss of hybrid against the better of its rankings, on any set."""


@pytest.mark.slow
def test_product_is_the_best_rule_and_never_far_behind_a_single_ranking() -> None:
    sets = [Candidates.from_set(listed) for listed in load_sets()]
    assert len({found.listed_set.kind for found in sets}) >= 8
    assert len({found.listed_set.language for found in sets}) >= 12

    def measured(rule: object) -> list[float]:
        assert callable(rule)
        ranked = [(found, _rank_candidates(found, rule(found))) for found in sets]
        return [float(_compute_ndcg(found, order).mean()) for found, order in ranked]

    fused = measured(score_product)
    single = [measured(rank_by_words), measured(rank_by_vectors)]
    lacking = {
        found.listed_set.name: max(of_set) - hybrid
        for found, hybrid, *of_set in zip(sets, fused, *single, strict=True)
    }
    assert max(lacking.values()) < WORSE, lacking
    others = [
        sum(measured(rule))
        for name, rules in list_families().items()
        if name != "product"
        for rule in rules.values()
    ]
    assert sum(fused) > max(others)


def test_ranked_modes_have_the_measures_of_their_rules() -> None:
    listed = next(one for one in load_sets() if one.name == "xquad-ru")
    ranked, found = _rank_set(listed), Candidates.from_set(listed)
    for mode, rule in {
        "text": rank_by_words,
        "knn": rank_by_vectors,
        "hybrid": score_product,
    }.items():
        assert _compute_values(ranked, mode)["ndcg"] == pytest.approx(
            _compute_ndcg(found, _rank_candidates(found, rule(found)))
        )
    assert [ids[0] for ids in ranked.programs["text"]] == [int(ids[0]) for ids in listed.word_ids]


def test_p_value_is_small_for_a_constant_gain_and_large_for_a_balanced_gain() -> None:
    base = np.random.default_rng(1).random(60)
    assert _compute_p_value(base + 0.1, base) < 0.001
    assert _compute_p_value(base + np.tile([0.1, -0.1], 30), base) > 0.9
    assert _compute_p_value(base, base) == 1.0


def test_sample_set_keeps_the_passages_that_answer_its_questions() -> None:
    passages = [("", f"passage {at}") for at in range(700)]
    questions = [(f"question {at}", {at * 4: 1, at * 4 + 1: 2}) for at in range(150)]
    sampled = sample_set(JudgedSet("faq", "de", passages, questions))
    assert len(sampled.passages) == SAMPLED_PASSAGES
    assert len(sampled.questions) == SAMPLED_QUESTIONS
    for at, (_, grades) in enumerate(sampled.questions):
        found = {sampled.passages[place][1]: grade for place, grade in grades.items()}
        assert found == {f"passage {at * 4}": 1, f"passage {at * 4 + 1}": 2}


def test_words_and_bigrams_keep_vowel_signs() -> None:
    assert re.findall(_WORDS, "हिन्दी में लिखा है") == ["हिन्दी", "में", "लिखा", "है"]
    assert re.findall(_WORDS, "a German word") == ["German", "word"]
    assert re.findall(_BIGRAMS, "東京都は") == ["東京", "京都", "都は"]
