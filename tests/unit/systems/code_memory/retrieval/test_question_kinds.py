from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.retrieval.question_subject import find_question_kinds

ASKED = {
    "Which endpoint takes an order?": {"route", "controller_method", "api_endpoint"},
    "What validates the address of a customer?": {"request"},
    "Who is allowed to cancel it?": {"policy"},
    "What works in the background?": {"job"},
    "Who is notified of a payment?": {"event", "listener"},
    "In which table is it stored?": {"table", "model"},
    "Since which migration are there columns for it?": {"migration", "table"},
    "How are totals rounded?": set(),
}


@pytest.mark.parametrize(("query", "types"), ASKED.items(), ids=list(ASKED))
def test_words_of_people_ask_for_kinds(query: str, types: set[str]) -> None:
    assert find_question_kinds(query).wanted_types == types


def test_what_asks_for_a_kind_is_no_topic() -> None:
    topic = find_question_kinds(
        "Which endpoint cancels an order, what validates it, and who is allowed to?"
    )
    assert topic.topic == "Which cancels an order what it and who is to"


def test_compounds_are_there_as_code_has_them() -> None:
    assert find_question_kinds("two-factor sign-in at Last.fm").topic == (
        "two-factor twofactor sign-in signin at Last.fm Lastfm"
    )


def test_a_question_of_nothing_else_keeps_its_words() -> None:
    assert find_question_kinds("endpoints and tables").topic == "and"
    assert find_question_kinds("tables?").topic == "tables?"


@pytest.mark.parametrize(("query", "tests"), [("Which tests cover it?", True), ("latest", False)])
def test_questions_about_tests_are_told(query: str, tests: bool) -> None:
    assert find_question_kinds(query).is_about_tests is tests
