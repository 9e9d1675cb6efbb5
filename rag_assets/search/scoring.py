"""Scores: fuse the rankings of a search, drop passages below the threshold, and rerank.

The score that orders hits is, in this order of preference:

- the reranker's score, if the passages were reranked;
- the cosine, if vectors alone ranked;
- the word score, if words alone ranked;
- otherwise the fused score.

`compute_hit_scores` makes this choice; its result becomes `Hit.score` and `Hit.score_kind`.

A threshold that is not fixed is calibrated by questions. Each question is compared with random
passages of its tenant. Most of them do not answer it, so their median cosine and the spread of the
cosines below it describe chance. The floor of a question lies FLOOR_SPREADS spreads above the
median. The threshold is the median of the floors of a tenant's first questions, and never higher
than the threshold in the system's description.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from statistics import median
from types import MappingProxyType
from typing import Final

from rag_assets.search.fusion import (
    FOREIGN_WORD_FACTOR,
    NormalizedRanking,
    compare_peaks,
    fuse,
    normalize_cosines,
    normalize_word_scores,
    score_by_rank,
)
from rag_assets.search.gathering import BlockGroups, group_blocks, merge_equal_texts
from rag_assets.search.model import ScoreKind, Scores
from rag_assets.search.progress import (
    DistinctText,
    Passage,
    Ranking,
    RankingKind,
    Reranking,
    SearchProgress,
)
from rag_assets.search.services import SearchServices, find_question_reader
from rag_assets.storage.index.common_words import is_certainly_english
from rag_assets.storage.index.model import Candidate, Owner, make_entry_id_function
from rag_assets.storage.index.terms import parse_query_words
from rag_assets.tenants.profiles import get_profile

CALIBRATION_QUESTIONS: Final = 30
"""Number of distinct questions that calibrate a threshold."""
SAMPLES_PER_QUESTION: Final = 40
"""Number of random passages that each question is compared with."""
MIN_SAMPLES: Final = 4
"""Minimum number of distinct passages for a comparison."""
FLOOR_SPREADS: Final = 1.0
"""Distance from the median of random passages up to the floor, in spreads (decision 17)."""
_BELOW_ANY = -2.0
_MAX_PER_DOCUMENT = 200
"""Maximum number of passages of one document from which random passages are chosen."""
_MIN_NONSENSE_WORDS = 3
"""Minimum number of words in an English question that is nonsense because no text has any of
them."""


def fuse_rankings(
    rankings: Sequence[Ranking], shown: Mapping[str, str] = MappingProxyType({})
) -> dict[str, float]:
    """Return the score of every candidate, best first.

    `shown` maps a candidate's id to the id under which it is shown; that id has its best score.
    """
    scores = [_collect_scores(ranking, shown) for ranking in rankings]
    weights = weigh_rankings(rankings, scores)
    return fuse(
        [
            _normalize_ranking(ranking, score, ranking.weight * weights.get(ranking.kind, 1.0))
            for ranking, score in zip(rankings, scores, strict=True)
        ]
    )


def weigh_rankings(
    rankings: Sequence[Ranking], scores: Sequence[Mapping[str, float]]
) -> dict[RankingKind, float]:
    """Return the weights of vectors and words, based on the first ranking of each.

    The sum of both weights is always 1 (for vectors) plus the share of matched terms (for words),
    however it is divided between them. So other rankings, such as a walk, keep their influence.
    """
    first: dict[RankingKind, tuple[Ranking, Mapping[str, float]]] = {}
    for ranking, score in zip(rankings, scores, strict=True):
        if not ranking.preferred:
            first.setdefault(ranking.kind, (ranking, score))
    if "words" not in first:
        return {}
    ranking, words = first["words"]
    share = compute_term_coverage(ranking)
    cosines = first["vector"][1] if "vector" in first else {}
    raised = (
        share * compare_peaks(words, cosines) * (FOREIGN_WORD_FACTOR if ranking.is_foreign else 1)
    )
    scale = (1 + share) / (1 + raised)
    return {"vector": scale, "words": raised * scale}


def _collect_scores(ranking: Ranking, shown: Mapping[str, str]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for candidate in ranking.candidates:
        scores.setdefault(shown.get(candidate.id, candidate.id), candidate.score)
    return scores


def _normalize_ranking(
    ranking: Ranking, scores: Mapping[str, float], weight: float
) -> NormalizedRanking:
    if ranking.preferred:  # By rank, even the last preferred candidate gains.
        return score_by_rank([*scores], weight=ranking.weight)
    match ranking.kind:
        case "vector":
            return normalize_cosines(scores, weight=weight)
        case "words":
            return normalize_word_scores(scores, weight=weight)
        case "walk" | "other":
            return score_by_rank([*scores], weight=weight)


def compute_term_coverage(ranking: Ranking) -> float:
    """Return the share of query terms that the best word match contains; 1.0 if unknown.

    A question may be worded differently than the texts, and share only a few incidental words with
    a passage. Then even the best word match is poor. The share is unknown in scripts without spaces
    and in languages other than English, since their terms are not stemmed and include common words.
    """
    best = next((candidate.matched for candidate in ranking.candidates), 0)
    return best / ranking.terms if best and ranking.terms else 1.0


class FuseStep:
    """Fuses rankings by their scores, and groups equal texts."""

    def __init__(self, _: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Order the verified candidates; request a repeat of the search if too few were fetched."""
        verified = progress.confirmed
        by_id, rankings = verified.by_id, verified.rankings
        scores = fuse_rankings(rankings)
        within = group_blocks([by_id[id_] for id_ in scores])
        if within.blocks:
            scores = fuse_rankings(rankings, {id_: shown.id for id_, shown in within.shown.items()})
        leading = progress.walk.leading if progress.walk is not None else ()
        scored = [by_id[id_] for id_ in dict.fromkeys((*leading, *scores)) if id_ in scores]
        repeats = get_profile(progress.search.tenant.profile).repeats_texts
        order = (
            [DistinctText(candidate) for candidate in scored]
            if repeats
            else merge_equal_texts(scored)
        )
        if _lacks_candidates(progress, order, len(scored)):
            return replace(progress, fetch_all=True, repeat=True)
        return replace(
            progress,
            fused=scores,
            order=[replace(distinct, block=within.blocks.get(distinct.id)) for distinct in order],
            cosines=_collect_best_scores("vector", rankings, within),
            word_scores=_collect_best_scores("words", rankings, within),
        )


def _collect_best_scores(
    kind: RankingKind, rankings: Sequence[Ranking], within: BlockGroups
) -> dict[str, float]:
    """Return the candidates' best scores in all rankings of one kind, by id.

    A passage that is shown in place of its blocks has the highest of their scores.
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for candidate in ranking.candidates if ranking.kind == kind else ():
            for id_ in {candidate.id, within.shown[candidate.id].id}:
                scores[id_] = max(candidate.score, scores.get(id_, candidate.score))
    return scores


def _lacks_candidates(progress: SearchProgress, order: Sequence[DistinctText], count: int) -> bool:
    """Return whether more candidates must be fetched, because they could change the hits.

    They could become hits, or have the text of a hit and be named by it. `count` is the number of
    candidates before equal texts were grouped.
    """
    verified, depth = progress.confirmed, progress.search.depth
    if not any(ranking.is_cut for ranking in verified.rankings):
        return False
    if len(order) <= depth or len(order) < count:
        return True
    # Candidates with equal scores at the limit can only be ordered if all of them were fetched.
    return order[-1].candidate.score == order[depth - 1].candidate.score


def compute_question_floor(cosines: Sequence[float], width: float = FLOOR_SPREADS) -> float:
    """Return the cosine above which a passage is nearer to a question than chance explains.

    It lies `width` spreads above the median of the cosines of random passages.
    """
    middle = median(cosines)
    # Use only values below the median: passages that answer the question lie above it.
    spread = median(middle - cosine for cosine in cosines if cosine <= middle)
    # In a normal distribution, half of the values below the median lie within .6745 standard
    # deviations of it.
    return middle + width * spread / 0.6745


def compute_threshold(floors: Sequence[float]) -> float:
    """Return the threshold for several questions: the median of their floors."""
    return median(floors)


class ScoreStep:
    """Drops the texts whose cosine is below the threshold, if there is one."""

    def __init__(self, services: SearchServices) -> None:
        self._searcher, self._reader = services.searcher, services.reader

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Drop the texts whose cosine is below the threshold.

        Texts that belong to a name in the question are kept. Without a threshold, all texts are
        kept, unless the question is unrelated to all of them.
        """
        if progress.vector is not None and progress.search.floors is not None:
            progress = await self._calibrate_threshold(progress)
        threshold = progress.search.min_cosine
        if threshold is None and _is_nonsense(progress):
            return replace(progress, order=[])
        if progress.vector is None or threshold is None:
            return progress
        # Score all texts before the first ones are taken, since the threshold may drop any of them.
        missing = [
            distinct.id for distinct in progress.order if distinct.id not in progress.cosines
        ]
        with progress.timings.measure("score"):
            scored = await self._searcher.cosines(
                progress.serving.index_name, progress.owner, progress.vector, missing
            )
        cosines = {**progress.cosines, **scored}
        named = progress.walk.ids if progress.walk is not None else frozenset()
        return replace(
            progress,
            cosines=cosines,
            unread_ids=progress.unread_ids | {d.id for d in progress.order if d.id not in cosines},
            order=[
                d
                for d in progress.order
                if d.id in named or cosines.get(d.id, _BELOW_ANY) >= threshold
            ],
        )

    async def _calibrate_threshold(self, progress: SearchProgress) -> SearchProgress:
        """Set the threshold of a search by comparing its question with random passages.

        If there are too few passages, the search keeps its threshold.
        """
        search, floor = progress.search, progress.floor
        assert progress.vector is not None and search.floors is not None  # noqa: S101, PT018
        if floor is None:
            with progress.timings.measure("calibrate"):
                rows = await self._reader.pick_random_versions(
                    progress.ref.id, progress.serving.number, limit=SAMPLES_PER_QUESTION
                )
                ids = choose_random_entries(progress.owner, rows)
                scored = await self._searcher.cosines(
                    progress.serving.index_name, progress.owner, progress.vector, ids
                )
            # Equal passages, such as the same lesson in many projects, count once.
            distinct = {round(cosine, 6) for cosine in scored.values()}
            if len(distinct) < MIN_SAMPLES:
                return progress
            floor = compute_question_floor([*distinct])
        threshold = compute_threshold([*search.floors, floor])
        if search.min_cosine is not None:
            threshold = min(search.min_cosine, threshold)
        return replace(progress, floor=floor, search=replace(search, min_cosine=threshold))


def lacks_query_words(progress: SearchProgress) -> bool:
    """Return whether no readable text contains a word of the question; only in source code.

    It is also False if vectors alone rank, or if the question names a known definition.
    """
    search, query = progress.search, progress.search.request.query
    is_named = progress.walk is not None and bool(progress.walk.ids)
    is_asked = search.tenant.reads_facts and search.mode != "knn" and not is_named
    return is_asked and bool(parse_query_words(query).terms) and not progress.word_scores


def _is_nonsense(progress: SearchProgress) -> bool:
    """Return whether a question is unrelated to all texts of a tenant of source code.

    Vectors rank texts for any question. Without a cosine threshold, only missing words can prove
    that no text is about the question. This is decided only for questions that consist of names or
    have several English words. Other questions, such as misspelt questions or questions in another
    language, are left to the vectors.
    """
    query = progress.search.request.query
    if not lacks_query_words(progress) or not query.isascii():
        return False
    reader = find_question_reader(progress.search.tenant)
    if reader is not None and reader.consists_of_names(query):
        return True
    return len(parse_query_words(query).terms) >= _MIN_NONSENSE_WORDS and is_certainly_english(
        query
    )


def choose_random_entries(owner: Owner, versions: Sequence[tuple[str, str, int]]) -> list[str]:
    """Return the ids of random entries, chosen among the first entries of each version."""
    id_of = make_entry_id_function(owner)
    places = [
        (document_id, key, ordinal)
        for document_id, key, count in versions
        for ordinal in range(min(count, _MAX_PER_DOCUMENT))
    ]
    chance = random.Random()  # noqa: S311 - a sample, no secret
    return [
        id_of(*place) for place in chance.sample(places, min(SAMPLES_PER_QUESTION, len(places)))
    ]


def order_by_reranker(
    reranking: Reranking,
    order: Sequence[Passage],
    prefers: Callable[[Candidate], bool],
    fused: Mapping[str, float] = MappingProxyType({}),
) -> list[Passage]:
    """Return the passages that the reranker scored, best first, then the others.

    Passages with equal scores keep their order.

    Args:
        order: the passages in the order before reranking.
        prefers: returns whether a candidate ranks higher. As in the search itself, preferred
            candidates form a separate ranking, and both rankings are fused.
        fused: scores of the search, by id; needed if scores are blended.
    """
    scored = [passage for passage in order if passage.id in reranking.scores]
    others = [passage for passage in order if passage.id not in reranking.scores]
    scores = blend_scores(reranking, [passage.id for passage in scored], fused)
    scored.sort(key=lambda passage: -scores[passage.id])
    if preferred := [passage.id for passage in scored if prefers(passage.candidate)]:
        by_both = fuse(
            [score_by_rank([passage.id for passage in scored]), score_by_rank(preferred)]
        )
        scored.sort(key=lambda passage: -by_both[passage.id])
    return scored + others


def blend_scores(
    reranking: Reranking, ids: Sequence[str], fused: Mapping[str, float]
) -> Mapping[str, float]:
    """Return the weighted mean of the reranker's score and the fused score of each passage.

    Both scores are first mapped to the range 0 to 1. With a blend of 1, the reranker's scores are
    returned unchanged.

    Args:
        ids: ids of the passages that were reranked.
        fused: fused scores by id.
    """
    blend = reranking.blend
    if blend == 1 or not ids:
        return reranking.scores
    lowest = min(fused.values(), default=0.0)
    by_search = _scale_scores({id_: fused.get(id_, lowest) for id_ in ids})
    by_model = _scale_scores({id_: reranking.scores[id_] for id_ in ids})
    return {id_: (1 - blend) * by_search[id_] + blend * by_model[id_] for id_ in ids}


def _scale_scores(scores: Mapping[str, float]) -> dict[str, float]:
    """Map the highest score to 1 and the lowest to 0; if all are equal, map all to 0."""
    lowest, highest = min(scores.values()), max(scores.values())
    return {id_: (score - lowest) / ((highest - lowest) or 1.0) for id_, score in scores.items()}


class RerankStep:
    """Reranks the top passages if the request or the tenant wants it."""

    def __init__(self, services: SearchServices) -> None:
        self._rerankers = services.rerankers

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Reorder the passages; a failure keeps their order and is recorded in the progress."""
        search = progress.search
        if search.rerank is None or not progress.passages:
            return progress
        with progress.timings.measure("rerank"):
            reranking = await self._rerankers.score(
                progress.ref,
                search.rerank,
                search.question,
                progress.passages,
                known=progress.reranking,
            )
        passages = order_by_reranker(
            reranking, progress.passages, lambda c: search.prefers(c.uri), progress.fused
        )
        return replace(progress, passages=passages, reranking=reranking)


def compute_hit_scores(
    progress: SearchProgress, passages: Sequence[Passage]
) -> tuple[ScoreKind, list[float]]:
    """Return the kind of the scores that order passages, and the scores, which never increase.

    A score that is higher than the previous passage's is lowered to it. This happens only if
    a passage of another document was moved ahead of it, or if it follows a preferred path or
    reranked passages.
    """
    cosines = [find_best_cosine(progress, passage) for passage in passages]
    known = [cosine for cosine in cosines if cosine is not None]
    rankings = [ranking for ranking in progress.confirmed.rankings if ranking.weight]
    kinds = {"preferred" if ranking.preferred else ranking.kind for ranking in rankings}
    reranking = progress.reranking
    if reranking is not None and reranking.scores:
        reranked = blend_scores(reranking, [*reranking.scores], progress.fused)
        return "reranker", cap_scores([reranked.get(passage.id) for passage in passages])
    if kinds == {"vector"} and len(known) == len(passages) and cap_scores(known) == known:
        return "cosine", known
    if kinds == {"words"}:
        # Unlike fused scores, word scores do not depend on how many candidates were fetched.
        best = max(progress.word_scores.values(), default=0.0) or 1.0
        shares = {id_: score / best for id_, score in progress.word_scores.items()}
        return "words", cap_scores([shares.get(passage.id) for passage in passages])
    return "fused", cap_scores([progress.fused.get(passage.id) for passage in passages])


def cap_scores(scores: Sequence[float | None]) -> list[float]:
    """Return scores that never increase; an unknown score becomes the previous score."""
    lowest = next((score for score in scores if score is not None), 0.0)
    return list(accumulate((lowest if s is None else s for s in (lowest, *scores)), min))[1:]


def build_scores(progress: SearchProgress) -> tuple[Scores, ...]:
    """Return the scores that ranked each hit."""
    by_vector, by_words = _map_ranks(progress, "vector"), _map_ranks(progress, "words")
    reranked = progress.reranking.scores if progress.reranking else {}
    return tuple(
        Scores(
            number=hit.number,
            cosine=hit.cosine,
            fused=round(progress.fused.get(passage.id, 0.0), 6),
            by_vector=by_vector.get(passage.id),
            by_words=by_words.get(passage.id),
            rerank=reranked.get(passage.id),
        )
        for hit, passage in zip(progress.hits or (), progress.answered, strict=False)
    )


def find_best_cosine(progress: SearchProgress, passage: Passage) -> float | None:
    """Return the cosine of a passage; for merged passages, the highest; None if none is known."""
    ids = [part.id for part in passage.parts] or [passage.id]
    return max((progress.cosines[id_] for id_ in ids if id_ in progress.cosines), default=None)


def _map_ranks(progress: SearchProgress, kind: RankingKind) -> dict[str, int]:
    """Return the candidates' ranks by id, counted from 1, in the first ranking of a kind."""
    for ranking in progress.confirmed.rankings:
        if ranking.kind == kind:
            return {c.id: rank for rank, c in enumerate(ranking.candidates, start=1)}
    return {}
