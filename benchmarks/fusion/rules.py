"""Fusion rules: functions that merge the two rankings of each question of a set.

A rule returns a score for each candidate of each question. The candidates are those of the ranking
by words, followed by those that only the ranking by vectors has; `Candidates.from_set` makes the
arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.fusion.lists import ListedSet
from rag_assets.models.embedding.coverage import UNREAD
from rag_assets.search.progress import Ranking, RankingKind
from rag_assets.search.scoring import fuse_rankings
from rag_assets.storage.index.model import Candidate

Array: TypeAlias = npt.NDArray[Any]
FETCHED: Final = 50
"""Candidates of each ranking that a search for ten hits fetches."""
_ABSENT: Final = 10_000
"""The rank of a passage that a ranking lacks."""


@dataclass(frozen=True)
class Candidates:
    """The candidates of a set's questions: a row for each question, a column for each candidate.

    Attributes:
        listed_set: the set.
        word_ranks, vector_ranks: ranks from 0; _ABSENT where a ranking lacks the candidate.
        passages: passage numbers of the candidates.
        grades: 0 where a candidate was not judged, or there is none.
        exists: whether there is a candidate.
    """

    listed_set: ListedSet
    word_ranks: Array
    vector_ranks: Array
    passages: Array
    grades: Array
    exists: Array

    @classmethod
    def from_set(cls, listed_set: ListedSet) -> Candidates:
        """Number the candidates of each question."""
        count, depth = listed_set.words.shape
        shape = (count, 2 * depth)
        words, vectors = np.full(shape, _ABSENT), np.full(shape, _ABSENT)
        passages, grades = np.zeros(shape, np.int64), np.zeros(shape)
        for at, grades_by_passage in enumerate(listed_set.grades):
            columns: dict[int, int] = {}
            rankings = (
                (words, listed_set.word_ids[at], listed_set.words[at]),
                (vectors, listed_set.vector_ids[at], listed_set.vectors[at]),
            )
            for ranks, ids, scores in rankings:
                for rank in range(int(np.count_nonzero(scores))):
                    passage = int(ids[rank])
                    column = columns.setdefault(passage, len(columns))
                    ranks[at, column] = rank
                    passages[at, column] = passage
                    grades[at, column] = grades_by_passage.get(passage, 0)
        exists = (words < _ABSENT) | (vectors < _ABSENT)
        return cls(listed_set, words, vectors, passages, grades, exists)


Rule: TypeAlias = Callable[[Candidates], Array]
Normalize: TypeAlias = Callable[[Array, bool], tuple[Array, Array]]
"""Maps sorted scores to normalized ones, and returns the value of an absent candidate."""
Weight: TypeAlias = Callable[[Candidates], Array]
"""Returns the part of the fused score that words decide, between 0 and 1, by question."""


def score_product(candidates: Candidates) -> Array:
    """Score with the product's own fusion; drop vectors of questions the embedder cannot read."""
    listed_set = candidates.listed_set
    scores = np.full(candidates.grades.shape, -np.inf)
    for at in range(len(scores)):
        columns = {"words": candidates.word_ranks[at], "vector": candidates.vector_ranks[at]}
        rankings = [_build_ranking("words", listed_set.words[at], columns["words"], listed_set, at)]
        if listed_set.unread[at] < UNREAD:
            rankings.append(
                _build_ranking("vector", listed_set.vectors[at], columns["vector"], listed_set, at)
            )
        for column, score in fuse_rankings(rankings).items():
            scores[at, int(column)] = score
    return scores


def _build_ranking(
    kind: RankingKind, scores: Array, ranks: Array, listed_set: ListedSet, question: int
) -> Ranking:
    """Return a ranking in a search's format; columns stand for the ids of its candidates."""
    matched, terms = (int(count) for count in listed_set.terms[question])
    candidates = [
        Candidate(str(column), "", "", float(scores[ranks[column]]), "", "", 0, matched=matched)
        for column in np.argsort(ranks, kind="stable")
        if ranks[column] < min(FETCHED, len(scores))
    ]
    is_counted = kind == "words" and bool(listed_set.english[question])
    is_foreign = kind == "words" and bool(listed_set.foreign[question])
    return Ranking(kind, candidates, terms=terms if is_counted else 0, is_foreign=is_foreign)


def rank_by_words(candidates: Candidates) -> Array:
    """Rank by words alone."""
    return -candidates.word_ranks.astype(float)


def rank_by_vectors(candidates: Candidates) -> Array:
    """Rank by vectors alone."""
    return -candidates.vector_ranks.astype(float)


def fuse_reciprocal_ranks(candidates: Candidates, *, k: int, words: float) -> Array:
    """Add reciprocal ranks."""
    fused: Array = words / (k + 1 + candidates.word_ranks) * (candidates.word_ranks < _ABSENT)
    fused += (1 - words) / (k + 1 + candidates.vector_ranks) * (candidates.vector_ranks < _ABSENT)
    return fused


def fuse_linearly(candidates: Candidates, *, normalize: Normalize, weight: Weight) -> Array:
    """Add normalized scores."""
    words = weight(candidates)[:, None]
    by_words = _look_up_scores(candidates.word_ranks, *normalize(candidates.listed_set.words, True))
    by_vectors = _look_up_scores(
        candidates.vector_ranks, *normalize(candidates.listed_set.vectors, False)
    )
    fused: Array = words * by_words + (1 - words) * by_vectors
    return fused


def _look_up_scores(ranks: Array, scores: Array, absent: Array) -> Array:
    """Return the score of each candidate, by its rank."""
    within = np.minimum(ranks, scores.shape[1] - 1)
    present = np.take_along_axis(scores, within, axis=1)
    spread: Array = np.where(ranks < _ABSENT, present, absent[:, None])
    return spread


def normalize_by_reference(scores: Array, is_words: bool) -> tuple[Array, Array]:
    """Map the best score to 1 and the 30th to 0; lower scores approach -0.1 (decision 16)."""
    zero = scores[:, 29]
    if not is_words:
        zero = np.where(zero == 0, _find_last_scores(scores), zero)
    width = scores[:, 0] - zero
    shares = (scores - zero[:, None]) / np.where(width == 0, 1, width)[:, None]
    bent = np.where(shares >= 0, shares, -0.1 * shares / np.minimum(shares - 1, -1))
    return bent, np.full(len(scores), -0.1)


def normalize_by_deviation(scores: Array, is_words: bool) -> tuple[Array, Array]:
    """Map scores to z-scores; an absent candidate gets the last score."""
    values = np.where(scores == 0, np.nan, scores)
    has = ~np.isnan(values)
    count = np.maximum(has.sum(axis=1), 1)
    mean = np.nansum(values, axis=1) / count
    deviation = np.sqrt(np.nansum((values - mean[:, None]) ** 2, axis=1) / count)
    deviation = np.where(deviation == 0, 1, deviation)
    return (scores - mean[:, None]) / deviation[:, None], (
        _find_last_scores(scores) - mean
    ) / deviation


def _find_last_scores(scores: Array) -> Array:
    last = np.maximum(np.count_nonzero(scores, axis=1) - 1, 0)
    scores_at_last: Array = scores[np.arange(len(scores)), last]
    return scores_at_last


def compute_peak(scores: Array) -> Array:
    """Return how many standard deviations the best score lies above the mean."""
    normalized, _ = normalize_by_deviation(scores, True)
    best: Array = normalized[:, 0]
    return best


def weigh_constantly(candidates: Candidates, *, words: float) -> Array:
    """Return the same weight for every question."""
    return np.full(len(candidates.grades), words)


def weigh_by_share(candidates: Candidates, *, base: float, gain: float) -> Array:
    """Return a weight that grows with the share of matched terms."""
    weight: Array = base + gain * candidates.listed_set.share
    return weight


def weigh_by_english_share(candidates: Candidates) -> Array:
    """Return the weight of the first linear fusion: vectors 1, words the share of English terms."""
    share = np.where(candidates.listed_set.english, candidates.listed_set.share, 1.0)
    weight: Array = share / (1 + share)
    return weight


def weigh_by_peaks(candidates: Candidates) -> Array:
    """Return the weight of words that earlier replays suggested."""
    weight = 0.25 + 0.3 * candidates.listed_set.share
    weight += 0.06 * (
        compute_peak(candidates.listed_set.words) - compute_peak(candidates.listed_set.vectors)
    )
    limited: Array = np.clip(weight, 0.2, 0.65)
    return limited


_NORMALIZED: Final[Mapping[str, Normalize]] = {
    "z-scores": normalize_by_deviation,
    "reference": normalize_by_reference,
}


def list_families() -> dict[str, dict[str, Rule]]:
    """Return the rules by family; the rules of a family differ in their constants."""
    rules: dict[str, dict[str, Rule]] = {
        "words": {"": rank_by_words},
        "knn": {"": rank_by_vectors},
        "ranks": {
            f"k={k}, words {words:g}": partial(fuse_reciprocal_ranks, k=k, words=words)
            for k in (10, 30, 60)
            for words in (0.4, 0.5, 0.6)
        },
        "linear fusion": {
            "": partial(
                fuse_linearly, normalize=normalize_by_reference, weight=weigh_by_english_share
            )
        },
        "share and peaks": {
            "": partial(fuse_linearly, normalize=normalize_by_deviation, weight=weigh_by_peaks)
        },
    }
    for name, normalize in _NORMALIZED.items():
        rules[f"{name}, constant"] = {
            f"{words:g}": partial(
                fuse_linearly, normalize=normalize, weight=partial(weigh_constantly, words=words)
            )
            for words in (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
        }
        rules[f"{name}, share"] = {
            f"{least:g} + {gain:g} share": partial(
                fuse_linearly,
                normalize=normalize,
                weight=partial(weigh_by_share, base=least, gain=gain),
            )
            for least in (0.15, 0.2, 0.25, 0.3, 0.35)
            for gain in (0.1, 0.2, 0.3, 0.4)
        }
    return {**rules, "product": {"": score_product}}
