"""Measures of rankings and citations, from the judged questions of the example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, Protocol

from examples.workspace.data import Question, rows
from rag_assets.quality.judgements import JudgeablePassage, JudgedQuestion, Judgement
from rag_assets.quality.measures import NDCG, MeanEstimate, compute_measures, estimate_mean

HALVES: Final = {
    "all": ("tuned", "untouched"),
    "tuned": ("tuned",),
    "untouched": ("untouched",),
}


class Chip(Protocol):
    """The link that an application shows for a hit or a citation."""

    @property
    def source_id(self) -> str | None:
        """Return the record that it leads to."""

    @property
    def block_id(self) -> str | None:
        """Return the block that it leads to."""

    @property
    def excerpt(self) -> str:
        """Return the excerpt that it shows."""


def compute_ndcg(
    questions: Sequence[Question], passages: Mapping[str, Sequence[JudgeablePassage]]
) -> dict[str, float]:
    """Return nDCG@10 of each question; relevant are passages of its record with the answer.

    Args:
        passages: passages, best first, by question id.
    """
    judged_questions = [
        JudgedQuestion(
            question.id,
            question.type,
            question.question,
            (Judgement(_get_url(question), question.answer),),
        )
        for question in questions
    ]
    return compute_measures(judged_questions, passages)[NDCG]


def estimate_halves(
    questions: Sequence[Question], values: Mapping[str, float]
) -> dict[str, MeanEstimate]:
    """Return the mean over each half, and over all."""
    halves = {
        name: [question.id for question in questions if question.half in of]
        for name, of in HALVES.items()
    }
    return {name: estimate_mean(values, ids) for name, ids in halves.items() if ids}


def holds_answer(question: Question, chip: Chip) -> bool:
    """Return whether a chip leads to the answer.

    Records with block ids must match by block; others by the excerpt that the chip shows.
    """
    if chip.source_id != question.record:
        return False
    if question.block_id is None:
        return question.answer in chip.excerpt
    return chip.block_id == question.block_id


def is_found(question: Question, passages: Sequence[JudgeablePassage]) -> bool:
    """Return whether a passage of the right record contains the answer."""
    judgement = Judgement(_get_url(question), question.answer)
    return any(judgement.is_about(passage) for passage in passages)


def _get_url(question: Question) -> str:
    return _read_urls()[question.type, question.record]


@cache
def _read_urls() -> Mapping[tuple[str, str], str]:
    return {(row["type"], row["id"]): row.get("url", "") for row in rows("records")}
