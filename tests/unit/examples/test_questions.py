"""The judged questions agree with the handbook."""

from collections import Counter
from functools import cache

import pytest

from examples.judge import ANSWERS, HANDBOOK, Question, questions
from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.media_types import find_media_type
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import parse

QUESTIONS = questions()
LOCKED = "policies/works-council-minutes.pdf"
DRAFT = "policies/draft-parcel-lockers.md"


@cache
def parsed(path: str) -> ParsedText:
    data = (HANDBOOK / path).read_bytes()
    return parse(data, find_media_type(path), ParseOptions(ocr=True))


def stands_there(question: Question, text: ParsedText, block: Block) -> bool:
    """Return whether a block contains the expected answer at the expected place."""
    expect = question.expect
    words = " ".join(text.text[block.start : block.end].split())
    return (
        expect.get("heading", "") in {"", *block.heading_path[-1:]}
        and expect.get("text", "") in words
        and all(
            getattr(block, name) == expect[name]
            for name in ("page", "slide", "sheet")
            if name in expect
        )
    )


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


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_the_answer_is_in_the_document_named(question: Question) -> None:
    text = parsed(question.source)
    assert any(stands_there(question, text, block) for block in text.blocks)


def test_the_locked_document_is_refused_without_its_password() -> None:
    with pytest.raises(DocumentRejected, match="password"):
        parsed(LOCKED)
