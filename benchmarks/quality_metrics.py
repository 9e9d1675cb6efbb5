"""The effect of a threshold on the cosine: which answers it keeps and rejects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rag_assets.quality.judgements import JudgeablePassage, JudgedQuestion

_MOST_LOST = 0.02
"""Share of answers that a harmless threshold may lose."""


@dataclass(frozen=True, slots=True)
class ThresholdEffect:
    """The answers that a threshold keeps and rejects.

    Attributes:
        min_score: the threshold, a cosine.
        answered: questions whose answer is among the hits.
        answerable: number of questions with an answer.
        rejected: questions without an answer for which nothing is found.
        unanswerable: number of questions without an answer.
    """

    min_score: float
    answered: int
    answerable: int
    rejected: int
    unanswerable: int

    @property
    def informedness(self) -> float:
        """Return Youden's J: 1 if all answers are kept and all else is rejected, 0 for chance."""
        return self.answered / self.answerable + self.rejected / self.unanswerable - 1

    def as_json(self) -> dict[str, Any]:
        """Return the figures for a result file."""
        return asdict(self)


def measure_threshold(
    min_score: float,
    questions: Sequence[JudgedQuestion],
    hits_by_question: Mapping[str, Sequence[JudgeablePassage]],
) -> ThresholdEffect:
    """Count the answers that a threshold keeps and rejects.

    Args:
        hits_by_question: the hits above that threshold, by question id.
    """
    answerable = [question for question in questions if question.answerable]
    others = [question for question in questions if not question.answerable]
    return ThresholdEffect(
        min_score,
        sum(
            any(map(question.is_answered_by, hits_by_question[question.id]))
            for question in answerable
        ),
        len(answerable),
        sum(not hits_by_question[question.id] for question in others),
        len(others),
    )


def choose_harmless(curve: Sequence[ThresholdEffect]) -> ThresholdEffect:
    """Return the highest threshold that loses next to no answer.

    Args:
        curve: by rising threshold, first without one.
    """
    fewest = curve[0].answered * (1 - _MOST_LOST)
    return max((k for k in curve if k.answered >= fewest), key=lambda k: k.min_score)


def choose_separating(curve: Sequence[ThresholdEffect]) -> ThresholdEffect:
    """Return the threshold that best separates answered questions from the others."""
    return max(curve, key=lambda kept: kept.informedness)
