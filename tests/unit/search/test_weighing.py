from __future__ import annotations

from dataclasses import replace

import pytest

from rag_assets.search.progress import Ranking, RankingKind
from rag_assets.search.scoring import fuse_rankings
from rag_assets.storage.index.model import Candidate


def ranking(
    kind: RankingKind,
    *found: tuple[str, float],
    matched: int = 0,
    terms: int = 0,
    preferred: bool = False,
) -> Ranking:
    candidates = [
        Candidate(id_, id_, "k", score, "u", id_, matched=matched) for id_, score in found
    ]
    return Ranking(kind, candidates, terms=terms, preferred=preferred)


NEAR = ranking("vector", ("answer", 0.6), ("word", 0.59), ("far", 0.1))


def first(*rankings: Ranking) -> str:
    return next(iter(fuse_rankings(rankings)))


def test_words_count_by_the_share_of_terms_that_the_best_match_has() -> None:
    scores = [
        fuse_rankings([ranking("words", ("code", 9.0), matched=matched, terms=4)])["code"]
        for matched in (4, 2, 1)
    ]
    assert scores == [1.0, 0.5, 0.25]


def test_a_code_that_one_passage_has_outweighs_what_is_near() -> None:
    assert first(NEAR, ranking("words", ("word", 2.0), matched=1, terms=1)) == "word"
    assert first(NEAR, ranking("words", ("far", 2.0), matched=1, terms=5)) == "answer"


def test_words_without_terms_count_wholly() -> None:
    for terms in (0, 3):
        assert fuse_rankings([ranking("words", ("signs", 7.0), terms=terms)])["signs"] == 1.0


def test_every_passage_of_a_preferred_path_gains() -> None:
    only = ranking("vector", ("far", 0.1), preferred=True)
    gained = fuse_rankings([NEAR, only])["far"] - fuse_rankings([NEAR])["far"]
    assert gained == 1.0


def test_the_best_of_what_is_shown_as_one_counts() -> None:
    shown = {"block": "page", "page": "page"}
    found = fuse_rankings([ranking("vector", ("block", 0.9), ("other", 0.5), ("page", 0.1))], shown)
    assert [*found] == ["page", "other"]


def test_an_order_without_scores_counts_by_rank() -> None:
    walk = ranking("walk", ("b", 0.0), ("a", 0.0))
    assert [*fuse_rankings([walk])] == ["b", "a"]


def spread(kind: RankingKind, best: float, first: str = "best") -> Ranking:
    """Return a ranking of 30 candidates with this best score; the others score about 1."""
    others = [(f"{kind}{number}", 1 - number / 100) for number in range(29)]
    return ranking(kind, (first, best), *others)


def test_fused_ranking_whose_best_candidate_stands_out_decides() -> None:
    sure, unsure = 3.0, 1.01
    assert first(spread("words", sure, "word"), spread("vector", unsure, "near")) == "word"
    assert first(spread("words", unsure, "word"), spread("vector", sure, "near")) == "near"


def test_fused_vectors_and_words_weigh_the_same_together_whatever_their_parts() -> None:
    for words, vectors in ((3.0, 1.01), (1.01, 3.0), (2.0, 2.0)):
        scores = fuse_rankings([spread("words", words), spread("vector", vectors)])
        assert scores["best"] == pytest.approx(2.0)


def test_fused_code_in_one_passage_of_many_outweighs_vectors() -> None:
    code = ranking("words", ("code", 7.0), matched=1, terms=1)
    near = ranking("vector", *((f"v{number}", 0.6 - number / 50) for number in range(29)))
    assert first(code, near) == "code"


def test_fused_equal_scores_are_weighed_alike() -> None:
    alike = [ranking(kind, *((str(n), 0.5) for n in range(30))) for kind in ("vector", "words")]
    assert [*fuse_rankings(alike)] == sorted(map(str, range(30)), key=int)


def test_fused_words_decide_nearer_cases_where_vectors_were_not_trained_for_the_language() -> None:
    vectors, words = spread("vector", 1.5, "near"), spread("words", 1.4, "word")
    assert first(words, vectors) == "near"
    assert first(replace(words, is_foreign=True), vectors) == "word"
    scores = fuse_rankings([replace(words, is_foreign=True), spread("vector", 1.5, "word")])
    assert scores["word"] == pytest.approx(2.0), "both together weigh the same"
