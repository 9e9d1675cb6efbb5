from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import pytest

from examples.judge import HANDBOOK
from examples.judged.judgements import (
    ANNEX,
    UNANSWERED,
    JudgedQuestion,
    Judgement,
    halves,
    judged_questions,
    passage_hash,
)

ROOTS = {"handbook": HANDBOOK, "annex": ANNEX}
PLAIN = {".md", ".mdx", ".rst", ".txt", ".csv", ".html", ".py", ".sql", ".eml"}


@dataclass(frozen=True)
class Found:
    uri: str
    text: str
    also: tuple[str, ...] = ()


QUESTION = JudgedQuestion(
    "q",
    "paraphrase",
    "?",
    (Judgement("a/x.md", "cold tea", 1), Judgement("a/x.md", "hot tea", 3)),
    frozenset({passage_hash("read and worthless")}),
)


def test_enough_of_every_kind() -> None:
    kinds = Counter(question.kind for question in judged_questions())
    assert kinds.keys() == {"paraphrase", "identifier", "several", "lookalike", UNANSWERED}
    assert min(kinds.values()) >= 10
    assert kinds.total() - kinds[UNANSWERED] >= 70
    assert kinds[UNANSWERED] >= 15


def test_every_question_has_an_id_of_its_own_and_an_answer_unless_nothing_answers_it() -> None:
    asked = judged_questions()
    assert len({question.id for question in asked}) == len(asked)
    for question in asked:
        answers = [j for j in question.relevant if j.grade == 3]
        assert bool(answers) == question.answerable, question.id
        assert all(j.grade in {1, 2, 3} for j in question.relevant)


def test_what_is_quoted_stands_in_the_document() -> None:
    for question in judged_questions():
        for judgement in question.relevant:
            source, _, path = judgement.path.partition("/")
            file = ROOTS[source] / path
            assert file.is_file(), judgement
            if file.suffix in PLAIN:
                text = file.read_text(encoding="utf-8")
                if file.suffix == ".html":
                    text = re.sub(r"<[^>]*>", " ", text)
                if judgement.quote not in " ".join(text.split()):
                    # Within a message, an attachment is encoded.
                    assert file.suffix == ".eml", (question.id, judgement)


def test_each_judgement_is_met_once_and_the_best_first() -> None:
    both = Found("a/x.md", "cold tea,\n hot  tea")
    assert QUESTION.names([Found("a/y.md", "hot tea"), both, both, both]) == [
        "other-1",
        "1",
        "0",
        "other-4",
    ]
    assert QUESTION.grades == {"0": 1, "1": 3}


def test_a_copy_counts_for_the_document_it_copies() -> None:
    assert QUESTION.is_answered_by(Found("b/copy.md", "hot tea", also=("a/x.md",)))
    assert not QUESTION.is_answered_by(Found("a/x.md", "cold tea"))


@pytest.mark.parametrize(
    ("text", "known"), [("hot tea", True), ("read\nand worthless", True), ("never read", False)]
)
def test_what_was_read_is_known(text: str, known: bool) -> None:
    assert QUESTION.knows(Found("a/x.md", text)) is known


def test_halves_share_every_kind() -> None:
    first, second = (Counter(q.kind for q in half) for half in halves(judged_questions()))
    assert all(0 <= first[kind] - second[kind] <= 1 for kind in first | second)
