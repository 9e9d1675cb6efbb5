from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.retrieval.fusion import fuse

rankings = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8), max_size=4)


def test_one_ranking_stays_as_it_is() -> None:
    assert [*fuse([["b", "a", "c"]])] == ["b", "a", "c"]


def test_what_two_rankings_agree_on_comes_first() -> None:
    assert next(iter(fuse([["a", "b", "c"], ["d", "b", "e"]]))) == "b"


def test_ties_are_broken_by_id() -> None:
    assert [*fuse([["b"], ["a"]])] == ["a", "b"]


def test_the_sum_of_reciprocal_ranks_decides() -> None:
    # 1/11 + 1/14 < 1/12 + 1/12
    assert [*fuse([["x", "y", "p", "q"], ["s", "y", "t", "x"]])][:2] == ["y", "x"]


@pytest.mark.slow
@given(rankings=rankings)
def test_each_result_comes_once_and_a_better_one_not_behind(rankings: list[list[str]]) -> None:
    fused = [*fuse(rankings)]
    assert sorted(fused) == sorted({id_ for ranking in rankings for id_ in ranking})
    for before, after in itertools.pairwise(fused):
        worse_everywhere = all(
            after in ranking
            and (before not in ranking or ranking.index(after) < ranking.index(before))
            for ranking in rankings
        )
        assert not worse_everywhere
