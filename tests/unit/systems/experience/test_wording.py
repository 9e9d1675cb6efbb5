"""The words of entries: problem, solution, when to try, and what is searched of a long one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.tokens import count_text
from rag_assets.systems.experience.wording import (
    MOST_TOKENS,
    problem_of,
    searched_text,
    shortened,
    solution_of,
    when_to_try,
)
from tests.unit.systems.experience.test_matching import ENTRY

GATE = replace(ENTRY, gate_type="security", agent_type="any")


def test_a_failure_is_searched_in_the_form_of_its_question() -> None:
    entry = replace(ENTRY, error_message="exit 1\nat line 2")
    assert problem_of(entry) == "The build fails\nexit 1\nat line 2"
    assert solution_of(entry) == "Pin the version."
    assert searched_text(entry) == "Failure: The build fails\nError: exit 1\nat line 2"
    assert searched_text(ENTRY) == "Failure: The build fails"
    assert when_to_try(entry) == "Agent: tester; error: exit 1"
    assert when_to_try(replace(entry, when_to_try="Always first")) == "Always first"


def test_a_gate_is_searched_with_its_solution() -> None:
    rejection = replace(
        GATE, entry_type="gate_rejection", human_feedback="No.", revision_approach="Yes."
    )
    assert (problem_of(rejection), solution_of(rejection)) == ("No.", "Yes.")
    assert searched_text(rejection) == "No.\nYes."
    approval = replace(GATE, entry_type="gate_approval", approved_approach="Short.")
    assert problem_of(approval) == "Pass the security gate at the first attempt"
    assert searched_text(approval).endswith("\nShort.")
    assert when_to_try(approval) == "Gate: security"


def test_the_first_and_the_last_lines_of_a_long_error_are_searched() -> None:
    frames = (f"  at frame {number} of the stack" for number in range(900))
    error = "\n".join(["FIRST of all", *frames, "LAST"])
    text = searched_text(replace(ENTRY, error_message=error))
    assert count_text(text) <= MOST_TOKENS
    assert text.startswith("Failure: The build fails\nError: FIRST of all\n")
    assert text.endswith("\nLAST")
    assert "[...]" in text


@pytest.mark.parametrize("long", ["x" * 20_000, "word " * 4_000, "語" * 20_000, "\n" * 20_000])
def test_nothing_that_is_searched_is_over_the_limit(long: str) -> None:
    for entry in (
        replace(ENTRY, failure_description=long, error_message=long),
        replace(ENTRY, failure_description=long),
        replace(GATE, entry_type="gate_approval", approved_approach=long),
    ):
        assert count_text(searched_text(entry)) <= MOST_TOKENS


@given(st.text(max_size=400), st.integers(8, 60))
def test_a_shortened_text_fits_and_keeps_both_ends(text: str, tokens: int) -> None:
    short = shortened(text, tokens)
    assert count_text(short) <= tokens
    if count_text(text) <= tokens:
        assert short == text
    else:
        assert "[...]" in short
