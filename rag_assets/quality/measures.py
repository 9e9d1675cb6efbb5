"""Measures of rankings by judgements, as trec_eval defines them, and the certainty of means."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.quality.judgements import JudgeablePassage, JudgedQuestion

DEPTH = 10
"""Number of passages of a ranking that count."""
NDCG, RECALL_5, RECALL_10, MRR = "nDCG@10", "recall@5", "recall@10", "MRR"
MEASURES = (NDCG, RECALL_5, RECALL_10, MRR)

Values = Mapping[str, Mapping[str, float]]
"""Values by measure, then by question id."""


def compute_measures(
    questions: Iterable[JudgedQuestion],
    passages_by_question: Mapping[str, Sequence[JudgeablePassage]],
) -> dict[str, dict[str, float]]:
    """Return the measures of each question's ranking, by measure and question id.

    The gain of a passage is its grade.
    """
    from ir_measures import RR, R, iter_calc, nDCG

    by_grade: dict[int, list[JudgedQuestion]] = {}
    for question in questions:
        by_grade.setdefault(question.relevant_from, []).append(question)
    values: dict[str, dict[str, float]] = {name: {} for name in MEASURES}
    for min_grade, of_grade in by_grade.items():
        recall, reciprocal_rank = R(rel=min_grade), RR(rel=min_grade)
        names = {
            nDCG @ DEPTH: NDCG,
            recall @ 5: RECALL_5,
            recall @ DEPTH: RECALL_10,
            reciprocal_rank @ DEPTH: MRR,
        }
        qrels = {question.id: question.grades for question in of_grade}
        runs = {question.id: _rank_names(question, passages_by_question) for question in of_grade}
        for metric in iter_calc(list(names), qrels, runs):
            values[names[metric.measure]][metric.query_id] = metric.value
    return values


def compute_judged_share(
    questions: Iterable[JudgedQuestion],
    passages_by_question: Mapping[str, Sequence[JudgeablePassage]],
) -> float | None:
    """Return the judged share of the first ten passages, 0 to 1; None without passages."""
    first = [
        (question, hit)
        for question in questions
        for hit in get_top_hits(question, passages_by_question)
    ]
    return sum(question.knows(hit) for question, hit in first) / len(first) if first else None


def get_top_hits(
    question: JudgedQuestion, passages_by_question: Mapping[str, Sequence[JudgeablePassage]]
) -> Sequence[JudgeablePassage]:
    """Return a question's first ten hits; if whole documents were judged, one hit per document."""
    passages = passages_by_question[question.id]
    if question.is_of_documents:
        once: dict[str, JudgeablePassage] = {}
        for passage in passages:
            once.setdefault(passage.document_id, passage)
        passages = list(once.values())
    return passages[:DEPTH]


def _rank_names(
    question: JudgedQuestion, passages_by_question: Mapping[str, Sequence[JudgeablePassage]]
) -> dict[str, float]:
    names = question.names(get_top_hits(question, passages_by_question))
    return {name: float(DEPTH - place) for place, name in enumerate(names)}


_BOOTSTRAP_SAMPLES = 10_000
_SEED = 6
_DRAWN_AT_ONCE = 2_000_000
_ROUNDED_DIGITS = 4
# Chance differences count as equal to the observed one if they differ only by rounding.
_TOLERANCE = 1e-12

_Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean over questions, with its 95 % interval for samples of similar questions."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeanDifference(MeanEstimate):
    """The mean difference of two rankings of the same questions."""

    p: float
    """Probability that chance alone gives a difference at least as large (two-sided)."""


def estimate_mean(values: Mapping[str, float], ids: Collection[str] | None = None) -> MeanEstimate:
    """Return the mean over at least one question, and its 95 % interval."""
    sample = np.array([values[id_] for id_ in (values if ids is None else ids)])
    low, high = np.percentile(_resample(sample), (2.5, 97.5))
    return MeanEstimate(_round_value(sample.mean()), _round_value(low), _round_value(high))


def estimate_difference(first: Mapping[str, float], second: Mapping[str, float]) -> MeanDifference:
    """Return how much higher the first values are on average, compared question by question.

    The p-value is from a paired randomisation test, which flips signs at random.
    """
    differences = np.array([first[id_] - second[id_] for id_ in first])
    by_chance = np.abs(_flip_signs(differences))
    p = (by_chance >= abs(differences.mean()) - _TOLERANCE).mean()
    low, high = np.percentile(_resample(differences), (2.5, 97.5))
    return MeanDifference(
        _round_value(differences.mean()), _round_value(low), _round_value(high), _round_value(p)
    )


def _resample(sample: _Numbers) -> _Numbers:
    return _draw_means(len(sample), lambda rng, shape: rng.choice(sample, shape))


def _flip_signs(differences: _Numbers) -> _Numbers:
    return _draw_means(
        len(differences), lambda rng, shape: rng.choice((-1.0, 1.0), shape) * differences
    )


def _draw_means(
    questions: int, draw: Callable[[np.random.Generator, tuple[int, int]], _Numbers]
) -> _Numbers:
    """Return the means of random samples; they are drawn in parts, so that memory suffices."""
    rng = np.random.default_rng(_SEED)
    at_once = max(1, _DRAWN_AT_ONCE // max(1, questions))
    parts = [
        draw(rng, (min(at_once, _BOOTSTRAP_SAMPLES - start), questions)).mean(axis=1)
        for start in range(0, _BOOTSTRAP_SAMPLES, at_once)
    ]
    return np.concatenate(parts)


def _round_value(value: Any) -> float:
    return round(float(value), _ROUNDED_DIGITS)
