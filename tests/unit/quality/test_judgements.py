import pytest

from rag_assets.quality.judgements import JudgedQuestion, Judgement, contains_quote, hash_passage
from tests.unit.quality.passages import Found

QUESTION = JudgedQuestion(
    "q", "paraphrase", "?", (Judgement("a/x.md", "cold tea", 1), Judgement("a/x.md", "hot tea", 3)),
    frozenset({hash_passage("read and worthless")}),
)  # fmt: skip
QUOTE = "one two three four five six seven eight"


def test_each_judgement_is_met_once_and_the_best_first() -> None:
    both = Found("a/x.md", "cold tea,\n hot  tea")
    assert QUESTION.names([Found("a/y.md", "hot tea"), both, both, both]) == [
        "other-1", "1", "0", "other-4",
    ]  # fmt: skip
    assert QUESTION.grades == {"0": 1, "1": 3}


def test_a_copy_counts_for_the_document_it_copies() -> None:
    assert QUESTION.is_answered_by(Found("b/copy.md", "hot tea", also=("a/x.md",)))
    assert not QUESTION.is_answered_by(Found("a/x.md", "cold tea"))


@pytest.mark.parametrize(
    ("text", "known"), [("hot tea", True), ("read\nand worthless", True), ("never read", False)]
)
def test_what_was_read_is_known(text: str, known: bool) -> None:
    assert QUESTION.knows(Found("a/x.md", text)) is known


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("before one two  three four\nfive six seven eight after", True),
        ("before one two three four", True),
        ("five six seven eight after", True),
        ("three four five six", True),
        ("before one two three", False),
        ("six seven eight after", False),
        ("before one two three four and another", False),
        ("four five", False),
        ("", False),
    ],
)
def test_a_chunk_that_was_cut_within_a_quote_holds_it_by_half(text: str, held: bool) -> None:
    assert contains_quote(text, QUOTE) is held


def test_a_short_quote_must_be_held_whole() -> None:
    assert contains_quote("there is hot tea", "hot tea")
    assert not contains_quote("there is hot", "hot tea")
    assert not contains_quote("only ten working", "ten working days")


@pytest.mark.parametrize("named", ["a/x.md", "id-of-a/x.md"])
def test_a_document_is_named_by_its_uri_or_its_id(named: str) -> None:
    judgement = Judgement(named)
    assert judgement.is_about(Found("a/x.md", "anything"))
    assert not judgement.is_about(Found("a/y.md", "anything"))


def test_a_path_that_stands_for_a_document_is_met_by_that_alone() -> None:
    judgement = Judgement("page 7", names=frozenset({"id-of-b/y.md", "b/y.md"}))
    assert judgement.is_about(Found("b/y.md", "anything"))
    assert not judgement.is_about(Found("page 7", "anything"))


@pytest.mark.parametrize(
    ("grades", "least", "answerable"),
    [((1,), 2, False), ((1, 2), 2, True), ((1,), 1, True), ((0,), 1, False), ((), 2, False)],
)
def test_the_least_grade_decides(grades: tuple[int, ...], least: int, answerable: bool) -> None:
    relevant = tuple(Judgement(f"{at}.md", grade=grade) for at, grade in enumerate(grades))
    assert JudgedQuestion("q", "", "?", relevant, relevant_from=least).answerable is answerable
