import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.search.fusion import (
    NormalizedRanking,
    fuse,
    normalize_cosines,
    normalize_word_scores,
    score_by_rank,
)

ids = st.sampled_from("abcdefgh")
scored = st.dictionaries(ids, st.floats(0.01, 1), max_size=8).map(
    lambda found: dict(sorted(found.items(), key=lambda one: -one[1]))
)
ranks = st.lists(ids, unique=True, max_size=8).map(score_by_rank)
rankings = st.lists(
    scored.map(normalize_cosines) | scored.map(normalize_word_scores) | ranks, max_size=4
)


def test_one_ranking_stays_as_it_is() -> None:
    assert [*fuse([normalize_cosines({"b": 0.9, "a": 0.5, "c": 0.4})])] == ["b", "a", "c"]
    assert [*fuse([normalize_word_scores({"b": 9, "a": 5, "c": 4})])] == ["b", "a", "c"]
    assert [*fuse([score_by_rank(["b", "a", "c"])])] == ["b", "a", "c"]


def test_what_two_rankings_agree_on_comes_first() -> None:
    near = normalize_cosines({"a": 0.7, "b": 0.69, "c": 0.2, "x": 0.1})
    fused = fuse([near, normalize_word_scores({"d": 9.0, "b": 8.8, "e": 1.0})])
    assert next(iter(fused)) == "b"


def test_of_equal_scores_the_better_rank_decides_and_then_the_id() -> None:
    assert [*fuse([normalize_cosines({"b": 0.5, "a": 0.5})])] == ["b", "a"]
    assert [*fuse([score_by_rank(["b"]), score_by_rank(["a"])])] == ["a", "b"]
    assert [*fuse([score_by_rank(["b", "a"]), score_by_rank(["a", "b"])])] == ["a", "b"]


def test_a_clear_first_place_counts_more_than_one_of_many_alike() -> None:
    clear = normalize_word_scores({"code": 20.0, **{f"w{n:02}": 4.0 - n / 100 for n in range(40)}})
    alike = normalize_cosines({f"v{n:02}": 0.5 - n / 1000 for n in range(40)} | {"code": 0.4})
    by_rank = [score_by_rank([*ranking.scores]) for ranking in (clear, alike)]
    assert next(iter(fuse([clear, alike]))) == next(iter(fuse(by_rank))) == "code"


def test_how_many_were_fetched_moves_no_score() -> None:
    found = {f"p{n:03}": 1 - n / 200 for n in range(150)}
    some = dict(itertools.islice(found.items(), 40))
    for normalised in (normalize_cosines, normalize_word_scores):
        assert normalised(some).scores == {id_: normalised(found).scores[id_] for id_ in some}


@pytest.mark.parametrize("normalised", [normalize_cosines, normalize_word_scores])
def test_the_best_counts_one_and_the_thirtieth_nothing(normalised: type[NormalizedRanking]) -> None:
    ranking = normalised({f"p{n:03}": 9 - n / 100 for n in range(50)})
    values = [*ranking.scores.values()]
    assert (values[0], values[29]) == (1, 0)
    assert 0 > values[30] > values[49] > ranking.missing_score


def test_what_has_none_of_the_words_counts_less_than_what_has_one() -> None:
    votes = normalize_word_scores({"a": 4.0, "b": 1.0})
    assert votes.scores["b"] == 0.25
    assert votes.missing_score < 0


def test_words_of_less_weight_count_less() -> None:
    near = normalize_cosines({"answer": 0.6, "other": 0.4, "word": 0.1})
    for weight, first in ((1.5, "word"), (0.2, "answer")):
        words = normalize_word_scores({"word": 5.0}, weight=weight)
        assert next(iter(fuse([near, words]))) == first


@pytest.mark.slow
@given(rankings=rankings)
def test_results_come_once_and_better_ones_not_later(rankings: list[NormalizedRanking]) -> None:
    fused = [*fuse(rankings)]
    assert sorted(fused) == sorted({id_ for ranking in rankings for id_ in ranking.scores})
    for before, after in itertools.pairwise(fused):
        worse_everywhere = rankings and all(
            one.scores.get(after, one.missing_score) > one.scores.get(before, one.missing_score)
            for one in rankings
        )
        assert not worse_everywhere
