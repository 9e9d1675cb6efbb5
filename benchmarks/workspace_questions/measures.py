"""What rankings and citations are worth, by the judged questions of the example."""

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
    """What an application shows of a hit or a citation."""

    @property
    def source_id(self) -> str | None:
        """The record that it leads to."""

    @property
    def block_id(self) -> str | None:
        """The block that it leads to."""

    @property
    def excerpt(self) -> str:
        """What it shows."""


def ndcg(
    asked: Sequence[Question], found: Mapping[str, Sequence[JudgeablePassage]]
) -> dict[str, float]:
    """nDCG@10 of each question: a passage counts that holds the answer, of the right record.

    Args:
        found: passages, best first, by question id.
    """
    judged = [
        JudgedQuestion(
            question.id,
            question.type,
            question.question,
            (Judgement(_url(question), question.answer),),
        )
        for question in asked
    ]
    return compute_measures(judged, found)[NDCG]


def by_half(asked: Sequence[Question], values: Mapping[str, float]) -> dict[str, MeanEstimate]:
    """The mean over each half, and over all."""
    halves = {
        name: [question.id for question in asked if question.half in of]
        for name, of in HALVES.items()
    }
    return {name: estimate_mean(values, ids) for name, ids in halves.items() if ids}


def holds_answer(question: Question, chip: Chip) -> bool:
    """Whether what a chip leads to holds the answer.

    That is the block, of what has blocks with ids; of all else the excerpt that it shows.
    """
    if chip.source_id != question.record:
        return False
    if question.block_id is None:
        return question.answer in chip.excerpt
    return chip.block_id == question.block_id


def is_found(question: Question, passages: Sequence[JudgeablePassage]) -> bool:
    """Whether a passage of the right record holds the answer."""
    judged = Judgement(_url(question), question.answer)
    return any(judged.is_about(passage) for passage in passages)


def _url(question: Question) -> str:
    return _urls()[question.type, question.record]


@cache
def _urls() -> Mapping[tuple[str, str], str]:
    return {(row["type"], row["id"]): row.get("url", "") for row in rows("records")}
