import random
from dataclasses import replace

import pytest

from rag_assets.common.errors import NoReranker
from rag_assets.search.model import SearchRequest
from rag_assets.search.progress import Passage, Ranking, RankingKind, Reranking, ResolvedSearch
from rag_assets.search.scoring import (
    compute_question_floor,
    compute_threshold,
    fuse_rankings,
    order_by_reranker,
)
from rag_assets.storage.index.model import Candidate
from rag_assets.tenants.model import Tenant


def chance(seed: int, count: int = 40, middle: float = 0.1, spread: float = 0.05) -> list[float]:
    generator = random.Random(seed)
    return [generator.gauss(middle, spread) for _ in range(count)]


@pytest.mark.parametrize("middle", [-0.2, 0.1, 0.7])
def test_a_floor_moves_with_the_embedders_cosines(middle: float) -> None:
    floors = [compute_question_floor(chance(seed, middle=middle)) for seed in range(30)]
    assert compute_threshold(floors) == pytest.approx(middle + 0.05, abs=0.01)


def test_relevant_passages_among_the_random_ones_raise_a_floor_little() -> None:
    alone = compute_threshold([compute_question_floor(chance(seed)) for seed in range(30)])
    floors = [compute_question_floor([*chance(seed), 0.6, 0.65, 0.7]) for seed in range(30)]
    mixed = compute_threshold(floors)
    assert alone <= mixed < alone + 0.02


def test_equal_cosines_are_their_own_floor() -> None:
    assert compute_question_floor([0.3] * 5) == 0.3
    assert compute_question_floor([0.3]) == 0.3


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
    rankings = [ranking("words", ("code", 9.0), matched=matched, terms=4) for matched in (4, 2, 1)]
    scores = [fuse_rankings([one])["code"] for one in rankings]
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


FOUND = [Passage(Candidate(id_, id_, "key", 0.5, f"files/{id_}", id_), (), {}) for id_ in "abcdef"]


def ordered(scores: dict[str, float], preferred: str = "") -> str:
    order = order_by_reranker(Reranking(scores), FOUND, lambda candidate: candidate.id in preferred)
    return "".join(passage.id for passage in order)


def test_the_first_come_by_score_and_equal_ones_and_the_rest_as_they_stood() -> None:
    assert ordered({"a": 0.1, "b": 7.0, "c": 0.1, "d": -3.0}) == "bacdef"
    assert ordered({}) == "abcdef"


def test_what_shall_rank_higher_still_does() -> None:
    scores = {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}
    assert ordered(scores, "cd") == "cdabef"
    assert ordered(scores, "f") == "abcdef"


def test_a_blend_weighs_both_scores_over_the_passages_that_were_scored() -> None:
    scores, fused = {"a": -4.0, "b": -2.0, "c": 6.0}, {"a": 1.0, "b": 0.9, "c": 0.2, "d": 0.1}

    def blended(blend: float, scores: dict[str, float] = scores) -> str:
        order = order_by_reranker(Reranking(scores, blend=blend), FOUND, lambda _: False, fused)
        return "".join(passage.id for passage in order)

    orders = [blended(blend) for blend in (0.1, 0.4, 0.6, 1.0)]
    assert orders == ["abcdef", "bacdef", "cbadef", "cbadef"]
    # Equal scores of the model leave the order of the search; so does a single passage.
    assert blended(0.5, dict.fromkeys("abc", 3.0)) == "abcdef"
    assert blended(0.5, {"a": 3.0}) == "abcdef"
    assert blended(0.5, {"e": 1.0, "f": 2.0}) == "feabcd"


def resolved(wanted: bool | None, **retrieval: object) -> ResolvedSearch:
    tenant = Tenant.from_config({"id": "acme", "retrieval": retrieval})
    request = SearchRequest(query="q", top_k=7, rerank=wanted)
    return ResolvedSearch.resolve(tenant, request, "q", None)


def test_the_request_or_else_the_tenant_decides_whether_to_rerank() -> None:
    config = {"folder": "/models/any", "first": 20}
    assert resolved(None).rerank is None
    assert resolved(False).depth == 7
    assert resolved(None, rerank=config).depth == 20
    assert resolved(None, rerank={**config, "first": 5}).depth == 7
    assert resolved(False, rerank=config).rerank is None
    optional = {**config, "by_default": False}
    assert resolved(None, rerank=optional).rerank is None
    assert resolved(True, rerank=optional).depth == 20
    with pytest.raises(NoReranker, match="'acme' has no reranker"):
        resolved(True)


def is_reranked(query: str, config: dict[str, object], **tenant: object) -> bool:
    """Return whether a search of a tenant is reranked."""
    found = Tenant.from_config({"id": "acme", "retrieval": {"rerank": config}, **tenant})
    request = SearchRequest(query=query, rerank=True)
    return ResolvedSearch.resolve(found, request, query, None).rerank is not None


def test_the_shipped_model_reranks_questions_in_english_only() -> None:
    shipped, english = {"model": "ms-marco-minilm-l12"}, "How long is the notice period?"
    assert is_reranked(english, shipped)
    for other in (
        "Wie lang ist die Kündigungsfrist?",
        "ما هي مدة الإشعار؟",
        "通知期間は何日ですか",
    ):
        assert not is_reranked(other, shipped)
        assert is_reranked(other, {**shipped, "languages": "any"})
        assert is_reranked(other, {"folder": "/models/any"})
