import pytest

from examples.judge import Question, ndcg, rank, score


def question(name: str, **relevant: int) -> Question:
    return Question(name, "paraphrase", "?", relevant, {}, "!")


ONE = question("one", a=3, b=1)
TWO = question("two", c=3)


@pytest.mark.parametrize(
    ("found", "place"), [(["a"], 1), (["b", "b", "a"], 3), (["b"], None), ([], None)]
)
def test_the_rank_is_that_of_the_answering_document(found: list[str], place: int | None) -> None:
    assert rank(ONE, found) == place


def test_the_best_order_has_all_the_gain_and_a_worse_one_less() -> None:
    assert ndcg(ONE, ["a", "b"]) == 1.0
    assert ndcg(ONE, ["a", "a", "b"]) == 1.0
    assert 0 < ndcg(ONE, ["b", "a"]) < ndcg(ONE, ["a"]) < 1.0
    assert ndcg(ONE, ["x"]) == 0.0


def test_scores_are_shares_of_the_questions() -> None:
    scored = score([ONE, TWO], {"one": ["a", "b"], "two": ["x", "c"]})
    assert (scored.questions, scored.first, scored.top_three, scored.top_five) == (2, 0.5, 1.0, 1.0)
    assert scored.ndcg == pytest.approx((1 + 1 / 1.58496) / 2, abs=1e-4)
