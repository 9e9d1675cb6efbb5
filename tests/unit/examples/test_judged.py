import re
from collections import Counter

from examples.judge import HANDBOOK, questions
from examples.judged.judgements import ANNEX, halves, judged_questions
from rag_assets.quality.judgements import UNANSWERED

ROOTS = {"handbook": HANDBOOK, "annex": ANNEX}
PLAIN = {".md", ".mdx", ".rst", ".txt", ".csv", ".html", ".py", ".sql", ".eml"}


def test_enough_of_every_kind() -> None:
    kinds = Counter(question.kind for question in judged_questions())
    assert kinds.keys() == {"paraphrase", "identifier", "several", "lookalike", UNANSWERED}
    assert min(kinds.values()) >= 10
    assert kinds.total() - kinds[UNANSWERED] >= 70
    assert kinds[UNANSWERED] >= 15


def test_every_question_has_an_answer_unless_nothing_answers_it() -> None:
    for question in judged_questions():
        answers = [j for j in question.relevant if j.grade == 3]
        assert bool(answers) == (question.kind != UNANSWERED), question.id
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
                assert judgement.quote is not None
                if judgement.quote not in " ".join(text.split()):
                    # Within a message, an attachment is encoded.
                    assert file.suffix == ".eml", (question.id, judgement)


def test_the_questions_about_the_handbook_are_those_of_the_demo() -> None:
    judged = {question.id: question for question in judged_questions()}
    for asked in questions():
        assert judged[asked.id].question == asked.question
        assert judged[asked.id].kind == asked.kind


def test_halves_share_every_kind() -> None:
    first, second = (Counter(q.kind for q in half) for half in halves(judged_questions()))
    assert all(0 <= first[kind] - second[kind] <= 1 for kind in first | second)
