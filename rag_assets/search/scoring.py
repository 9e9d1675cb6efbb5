"""Scores: what leaves passages out, what orders them, and which score a hit shows.

The step `score` leaves out passages whose cosine is below a threshold. The fused scores order the
others, or the scores of a reranker. `order_scores` decides which of these becomes `Hit.score`.

Questions calibrate a threshold that is not fixed. Each question is compared with random passages of
its tenant. Most of these do not answer it, so their median cosine and the spread of the cosines
below that median describe chance. The few passages that answer the question change neither. The
floor of a question lies WIDTH spreads above the median. The threshold is the median of the floors
of a tenant's first questions, and never higher than the threshold in the system's description.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from statistics import median
from types import MappingProxyType
from typing import Final

from rag_assets.search.fusion import by_rank, fuse
from rag_assets.search.model import ScoreKind, Scores
from rag_assets.search.progress import Passage, RankingKind, Reranking, SearchProgress
from rag_assets.search.services import SearchServices, find_question_reader
from rag_assets.storage.index.common_words import is_certainly_english
from rag_assets.storage.index.model import Candidate, Owner, entry_ids
from rag_assets.storage.index.terms import parse_query_words

QUESTIONS: Final = 30
"""Number of distinct questions that calibrate a threshold."""
SAMPLES: Final = 40
"""Number of random passages that each question is compared with."""
FEWEST_SAMPLES: Final = 4
"""Minimum number of distinct passages for a comparison."""
WIDTH: Final = 1.0
"""Distance from the median of random passages up to the floor, in spreads (decision 17)."""
_BELOW_ANY = -2.0
_MOST_OF_A_DOCUMENT = 200
"""Maximum number of passages of one document from which random passages are chosen."""
_LEAST_WORDS = 3
"""Minimum number of words in an English question that is nonsense because no text has any of
them."""


def floor_of_question(cosines: Sequence[float], width: float = WIDTH) -> float:
    """Return the cosine above which a passage is nearer to a question than chance explains.

    Args:
        cosines: cosines between the question and random passages; at least one.
        width: distance from their median up to the floor, in spreads.
    """
    middle = median(cosines)
    # Use only values below the median: passages that answer the question lie above it.
    spread = median(middle - cosine for cosine in cosines if cosine <= middle)
    # In a normal distribution, half of the values below the median lie within .6745 standard
    # deviations of it.
    return middle + width * spread / 0.6745


def compute_floor(floors: Sequence[float]) -> float:
    """Return the threshold for several questions: the median of their floors."""
    return median(floors)


class Score:
    """Scores every text by its cosine if there is a threshold.

    Args:
        services: services that compute cosines in the index.
    """

    def __init__(self, services: SearchServices) -> None:
        self._searcher, self._reader = services.searcher, services.reader

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Keep the texts that are near enough; without a threshold all of them."""
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
        with progress.timings.part("score"):
            scored = await self._searcher.cosines(
                progress.serving.index_name, progress.owner, progress.vector, missing
            )
        cosines = {**progress.cosines, **scored}
        named = progress.walked.ids if progress.walked is not None else frozenset()
        return replace(
            progress,
            cosines=cosines,
            unread=progress.unread | {d.id for d in progress.order if d.id not in cosines},
            order=[
                d
                for d in progress.order
                if d.id in named or cosines.get(d.id, _BELOW_ANY) >= threshold
            ],
        )

    async def _calibrate_threshold(self, progress: SearchProgress) -> SearchProgress:
        """Return a search whose threshold comes from random passages, if there are enough."""
        search, floor = progress.search, progress.floor
        assert progress.vector is not None and search.floors is not None  # noqa: S101, PT018
        if floor is None:
            with progress.timings.part("calibrate"):
                rows = await self._reader.random_versions(
                    progress.ref.id, progress.serving.number, limit=SAMPLES
                )
                ids = choose_random_entries(progress.owner, rows)
                scored = await self._searcher.cosines(
                    progress.serving.index_name, progress.owner, progress.vector, ids
                )
            # Equal passages, such as the same lesson in many projects, count once.
            distinct = {round(cosine, 6) for cosine in scored.values()}
            if len(distinct) < FEWEST_SAMPLES:
                return progress
            floor = floor_of_question([*distinct])
        threshold = compute_floor([*search.floors, floor])
        if search.min_cosine is not None:
            threshold = min(search.min_cosine, threshold)
        return replace(progress, floor=floor, search=replace(search, min_cosine=threshold))


def has_no_word(progress: SearchProgress) -> bool:
    """Return whether no readable text has a word of the question, in tenants that read facts."""
    search, query = progress.search, progress.search.request.query
    is_named = progress.walked is not None and bool(progress.walked.ids)
    is_asked = search.tenant.reads_facts and search.mode != "knn" and not is_named
    return is_asked and bool(parse_query_words(query).terms) and not progress.word_scores


def _is_nonsense(progress: SearchProgress) -> bool:
    """Return whether a question is unrelated to all texts of a tenant that reads facts.

    Vectors rank texts for any question. Without a known cosine threshold, only words can show that
    no text is about it. They can do so for an identifier, or for several English words. Vectors
    alone decide about questions that are misspelt, or in other words or another language than the
    texts.
    """
    query = progress.search.request.query
    if not has_no_word(progress) or not query.isascii():
        return False
    reader = find_question_reader(progress.search.tenant)
    if reader is not None and reader.consists_of_names(query):
        return True
    return len(parse_query_words(query).terms) >= _LEAST_WORDS and is_certainly_english(query)


def choose_random_entries(owner: Owner, versions: Sequence[tuple[str, str, int]]) -> list[str]:
    """Return the ids of random entries, with equal chances for all passages of these documents.

    Args:
        owner: owner of the entries.
        versions: the id of each document, its indexed key, and its number of passages.
    """
    id_of = entry_ids(owner)
    places = [
        (document_id, key, ordinal)
        for document_id, key, count in versions
        for ordinal in range(min(count, _MOST_OF_A_DOCUMENT))
    ]
    chance = random.Random()  # noqa: S311 - a sample, no secret
    return [id_of(*place) for place in chance.sample(places, min(SAMPLES, len(places)))]


def order_by_reranker(
    reranking: Reranking,
    order: Sequence[Passage],
    prefers: Callable[[Candidate], bool],
    fused: Mapping[str, float] = MappingProxyType({}),
) -> list[Passage]:
    """Return scored passages, best first, with ties in their former order; then the others.

    Args:
        reranking: the scores.
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
        by_both = fuse([by_rank([passage.id for passage in scored]), by_rank(preferred)])
        scored.sort(key=lambda passage: -by_both[passage.id])
    return scored + others


def blend_scores(
    reranking: Reranking, ids: Sequence[str], fused: Mapping[str, float]
) -> Mapping[str, float]:
    """Return the weighted means of both scores of these ids, each mapped to the range 0 to 1."""
    blend = reranking.blend
    if blend == 1 or not ids:
        return reranking.scores
    lowest = min(fused.values(), default=0.0)
    by_search = _scale_scores({id_: fused.get(id_, lowest) for id_ in ids})
    by_model = _scale_scores({id_: reranking.scores[id_] for id_ in ids})
    return {id_: (1 - blend) * by_search[id_] + blend * by_model[id_] for id_ in ids}


def _scale_scores(scores: Mapping[str, float]) -> dict[str, float]:
    """Map the best score to 1 and the last to 0; if all are equal, map all to 0."""
    least, most = min(scores.values()), max(scores.values())
    return {id_: (score - least) / ((most - least) or 1.0) for id_, score in scores.items()}


class Rerank:
    """Reranks the top passages if the request or the tenant wants it.

    Args:
        services: services that score passages.
    """

    def __init__(self, services: SearchServices) -> None:
        self._rerankers = services.rerankers

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Reorder the passages; a failure keeps their order and is recorded in the progress.

        In a repeated search, scored passages keep their score, and a failed reranking is not
        retried.
        """
        search = progress.search
        if search.rerank is None or not progress.passages:
            return progress
        with progress.timings.part("rerank"):
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


def order_scores(
    progress: SearchProgress, passages: Sequence[Passage]
) -> tuple[ScoreKind, list[float]]:
    """Return the kind of the scores that order passages, and the scores, which never increase.

    A score that is higher than that of the previous passage is lowered to it. This happens only if
    a passage of another document was moved ahead of it, or if it follows a preferred path or
    reranked passages.
    """
    cosines = [best_cosine(progress, passage) for passage in passages]
    known = [cosine for cosine in cosines if cosine is not None]
    rankings = [ranking for ranking in progress.confirmed.rankings if ranking.weight]
    kinds = {"preferred" if ranking.preferred else ranking.kind for ranking in rankings}
    reranking = progress.reranking
    if reranking is not None and reranking.scores:
        reranked = blend_scores(reranking, [*reranking.scores], progress.fused)
        return "reranker", falling_scores([reranked.get(passage.id) for passage in passages])
    if kinds == {"vector"} and len(known) == len(passages) and falling_scores(known) == known:
        return "cosine", known
    if kinds == {"words"}:
        # Unlike fused scores, word scores do not depend on how many candidates were fetched.
        best = max(progress.word_scores.values(), default=0.0) or 1.0
        shares = {id_: score / best for id_, score in progress.word_scores.items()}
        return "words", falling_scores([shares.get(passage.id) for passage in passages])
    return "fused", falling_scores([progress.fused.get(passage.id) for passage in passages])


def falling_scores(scores: Sequence[float | None]) -> list[float]:
    """Return scores that never increase; an unknown score becomes the previous score."""
    least = next((score for score in scores if score is not None), 0.0)
    return list(accumulate((least if s is None else s for s in (least, *scores)), min))[1:]


def list_scores(progress: SearchProgress) -> tuple[Scores, ...]:
    """Return the scores that ranked each hit."""
    by_vector, by_words = _ranks(progress, "vector"), _ranks(progress, "words")
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


def best_cosine(progress: SearchProgress, passage: Passage) -> float | None:
    """Return the cosine of a passage; for merged passages, the highest."""
    ids = [part.id for part in passage.parts] or [passage.id]
    return max((progress.cosines[id_] for id_ in ids if id_ in progress.cosines), default=None)


def _ranks(progress: SearchProgress, kind: RankingKind) -> dict[str, int]:
    """Return the ranks in the first ranking of a kind, which includes all filtered candidates."""
    for ranking in progress.confirmed.rankings:
        if ranking.kind == kind:
            return {c.id: rank for rank, c in enumerate(ranking.candidates, start=1)}
    return {}
