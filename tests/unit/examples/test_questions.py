"""The judged questions say the truth about the handbook."""

from __future__ import annotations

from collections import Counter

import pytest

from examples.judge import ANSWERS, HANDBOOK, Question, questions

QUESTIONS = questions()
LOCKED = "policies/works-council-minutes.pdf"
DRAFT = "policies/draft-parcel-lockers.md"


def test_there_are_enough_questions_and_three_for_the_demo() -> None:
    assert len({question.id for question in QUESTIONS}) == len(QUESTIONS) >= 30
    assert sum(question.demo for question in QUESTIONS) == 3


def test_every_format_answers_at_least_two_questions() -> None:
    asked = Counter(question.suffix for question in QUESTIONS)
    there = {path.suffix for path in HANDBOOK.rglob("*.*") if not path.name.startswith(".")}
    assert {suffix for suffix, count in asked.items() if count >= 2} == there


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_judgements_are_of_documents_that_can_be_found(question: Question) -> None:
    assert all((HANDBOOK / path).is_file() for path in question.relevant)
    assert not {LOCKED, DRAFT} & question.relevant.keys()
    assert sorted(question.relevant.values())[-1] == ANSWERS
    assert set(question.relevant.values()) <= {1, 2, ANSWERS}
    assert list(question.relevant.values()).count(ANSWERS) == 1
    assert question.expect.keys() <= {"heading", "text", "page", "slide", "sheet"}
    assert question.expect.keys() & {"heading", "text"}
