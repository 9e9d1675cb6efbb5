"""Scores of rankings and citations by judged questions, and the extractive writer's output."""

from dataclasses import dataclass, field

import pytest

from benchmarks.extractive_writer import Writer
from benchmarks.workspace_questions.measures import (
    compute_ndcg,
    estimate_halves,
    holds_answer,
    is_found,
)
from examples.workspace.data import Question, questions, rows
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.search.answerer import NOT_ANSWERED, build_prompt
from tests.unit.search.hits import hit_of

[PAGE, *_] = (question for question in questions() if question.type == "page")
[FILE, *_] = (question for question in questions() if question.type == "file")


@dataclass(frozen=True)
class Shown:
    """A hit or a citation."""

    source_id: str | None = PAGE.record
    block_id: str | None = PAGE.block_id
    excerpt: str = ""
    uri: str = ""
    document_id: str = "d"
    also: tuple[str, ...] = ()
    text: str = field(default=f"It is {PAGE.answer}, always.")


def url(question: Question) -> str:
    [row] = [r for r in rows("records") if (r["type"], r["id"]) == (question.type, question.record)]
    return str(row["url"])


def test_only_passages_of_the_right_record_with_the_answer_count() -> None:
    right, elsewhere = Shown(uri=url(PAGE)), Shown(uri="https://other.example")
    silent = Shown(uri=url(PAGE), text="It says nothing of it.")
    assert is_found(PAGE, [elsewhere, right])
    assert not is_found(PAGE, [elsewhere, silent])
    assert compute_ndcg([PAGE], {PAGE.id: [right]})[PAGE.id] == 1.0
    assert 0 < compute_ndcg([PAGE], {PAGE.id: [elsewhere, right]})[PAGE.id] < 1.0
    assert compute_ndcg([PAGE], {PAGE.id: [elsewhere, silent]})[PAGE.id] == 0.0


def test_chip_leads_to_the_block_or_shows_the_answer_without_blocks() -> None:
    assert holds_answer(PAGE, Shown())
    assert not holds_answer(PAGE, Shown(block_id="another"))
    assert not holds_answer(PAGE, Shown(source_id="another"))
    assert holds_answer(FILE, Shown(FILE.record, None, f"… {FILE.answer} …"))
    assert not holds_answer(FILE, Shown(FILE.record, None, "…"))


def test_halves_are_estimated_separately() -> None:
    values = {question.id: float(question.half == "tuned") for question in questions()}
    means = {half: one.mean for half, one in estimate_halves(questions(), values).items()}
    assert means == {"all": 0.5, "tuned": 1.0, "untouched": 0.0}


@pytest.mark.slow
def test_writer_answers_with_a_sentence_of_the_passages() -> None:
    hits = [hit_of("# Valves\n\nThe valve opens at noon. It is made of brass."), hit_of("Apples.")]
    asked = "When does it open?"
    writer = Writer(OnnxEmbedder())
    text = build_prompt(asked, hits, "seal")
    assert writer.answer(text) == f"The valve opens at noon. [{hits[0].number}]"
    writer.required_words[asked] = "of brass"
    assert writer.answer(text) == f"It is made of brass. [{hits[0].number}]"
    writer.required_words[asked] = "zeppelin"
    assert writer.answer(text) == NOT_ANSWERED
    assert writer.answer(build_prompt("anything?", [], "seal")) == NOT_ANSWERED
