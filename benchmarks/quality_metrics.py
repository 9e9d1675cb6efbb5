"""How good rankings are, how sure that is, and what a threshold on the cosine keeps and rejects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from ir_measures import RR, R, iter_calc, nDCG

from examples.judged.judgements import JudgedQuestion, Passage

MEASURES = {"nDCG@10": nDCG @ 10, "recall@5": R(rel=2) @ 5, "MRR": RR(rel=2) @ 10}
"""As trec_eval computes them; what counts as found has grade 2 or 3, gains are the grades."""

DEPTH = 10
_SAMPLES = 10_000
_SEED = 6
_MOST_LOST = 0.02
"""The share of answers that a threshold may lose without being one that rejects answers."""

Values = Mapping[str, Mapping[str, float]]
"""By measure, by question id."""


def values_of(
    questions: Sequence[JudgedQuestion], found: Mapping[str, Sequence[Passage]]
) -> dict[str, dict[str, float]]:
    """What each question's ranking is worth, by measure.

    Args:
        questions: such as something answers.
        found: passages, best first, by question id.
    """
    qrels = {question.id: question.grades for question in questions}
    runs = {question.id: _run(question, found[question.id]) for question in questions}
    values: dict[str, dict[str, float]] = {name: {} for name in MEASURES}
    names = {measure: name for name, measure in MEASURES.items()}
    for metric in iter_calc(list(MEASURES.values()), qrels, runs):
        values[names[metric.measure]][metric.query_id] = metric.value
    return values


def _run(question: JudgedQuestion, passages: Sequence[Passage]) -> dict[str, float]:
    names = question.names(passages[:DEPTH])
    return {name: float(DEPTH - place) for place, name in enumerate(names)}


def judged_share(
    questions: Sequence[JudgedQuestion], found: Mapping[str, Sequence[Passage]]
) -> float:
    """The share of the first ten that was judged; an unjudged passage counts as irrelevant."""
    first = [(question, hit) for question in questions for hit in found[question.id][:DEPTH]]
    return sum(question.knows(hit) for question, hit in first) / len(first)


def mean_of(values: Mapping[str, float], ids: Sequence[str]) -> dict[str, float]:
    """The mean over some questions, and where it lies in 95 of 100 samples of them."""
    sample = np.array([values[id_] for id_ in ids])
    low, high = np.percentile(_resampled(sample), (2.5, 97.5))
    return {"mean": _short(sample.mean()), "low": _short(low), "high": _short(high)}


def difference_of(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """By how much the first is better, question by question.

    Returns:
        the mean difference with its interval, and p: how often chance alone makes one as large,
        by flipping signs at random (two-sided).
    """
    differences = np.array([one[id_] - other[id_] for id_ in one])
    signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), (_SAMPLES, len(differences)))
    by_chance = np.abs((signs * differences).mean(axis=1))
    # A difference that is as large but for rounding is as large.
    p = (by_chance >= abs(differences.mean()) - 1e-12).mean()
    low, high = np.percentile(_resampled(differences), (2.5, 97.5))
    mean = _short(differences.mean())
    return {"mean": mean, "low": _short(low), "high": _short(high), "p": _short(p)}


def _resampled(sample: Any) -> Any:
    rng = np.random.default_rng(_SEED)
    return rng.choice(sample, (_SAMPLES, len(sample))).mean(axis=1)


def _short(value: float) -> float:
    return round(float(value), 4)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a threshold leaves of some questions' answers.

    Attributes:
        min_score: the cosine.
        answered: questions whose answer is among the hits.
        answerable: of how many.
        rejected: questions without an answer for which nothing is found.
        unanswerable: of how many.
    """

    min_score: float
    answered: int
    answerable: int
    rejected: int
    unanswerable: int

    @property
    def informedness(self) -> float:
        """Youden's J: 1 where all answers are kept and all else is rejected, 0 for chance."""
        return self.answered / self.answerable + self.rejected / self.unanswerable - 1

    def as_json(self) -> dict[str, Any]:
        """For a file of results."""
        return asdict(self)


def kept_by(
    min_score: float,
    questions: Sequence[JudgedQuestion],
    found: Mapping[str, Sequence[Passage]],
) -> Kept:
    """What a threshold leaves.

    Args:
        found: the hits under that threshold, by question id.
    """
    answerable = [question for question in questions if question.answerable]
    others = [question for question in questions if not question.answerable]
    return Kept(
        min_score,
        sum(any(map(question.is_answered_by, found[question.id])) for question in answerable),
        len(answerable),
        sum(not found[question.id] for question in others),
        len(others),
    )


def harmless(curve: Sequence[Kept]) -> Kept:
    """The highest threshold that costs next to no answer.

    Args:
        curve: by rising threshold, first without one.
    """
    fewest = curve[0].answered * (1 - _MOST_LOST)
    return max((k for k in curve if k.answered >= fewest), key=lambda k: k.min_score)


def best_separating(curve: Sequence[Kept]) -> Kept:
    """The threshold that best tells what is answered from what is not."""
    return max(curve, key=lambda kept: kept.informedness)
