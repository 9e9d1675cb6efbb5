"""Words of errors, and how they match."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.tokens import count_text
from rag_assets.systems.experience.model import Entry
from rag_assets.systems.experience.wording import (
    MAX_ERROR_TOKENS,
    MAX_TOKENS,
    build_searched_text,
    compute_error_keys,
    compute_exact_key,
    describe_problem,
    describe_solution,
    describe_when_to_try,
    shorten_text,
)

ENTRY = Entry(
    id=uuid4(), entry_type="failure_solution", project_id=uuid4(), agent_type="tester",
    task_type=None, technology=None, failure_description="The build fails", error_message=None,
    solution_steps="Pin the version.", gate_type=None, human_feedback=None, revision_approach=None,
    approved_approach=None, when_to_try=None, about=(), contributed_by=None,
    captured_at=datetime(2026, 1, 1, tzinfo=UTC), checkpoint_id=None, document_id=None,
    pattern_id=None, embedded_at=None,
)  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"failure_description": "the  BUILD\nfails"},
        {"solution_steps": "\uff30in the version."},
        {"id": uuid4(), "project_id": uuid4(), "task_type": "testing", "technology": "python"},
    ],
)
def test_other_spellings_of_an_entry_have_the_same_key(change: dict[str, object]) -> None:
    assert compute_exact_key(replace(ENTRY, **change)) == compute_exact_key(ENTRY)


@pytest.mark.parametrize(
    "change",
    [
        {"failure_description": "The build fails."},
        {"error_message": "exit 1"},
        {"solution_steps": "Pin the versions."},
        {"agent_type": "architect"},
        {"entry_type": "gate_rejection", "gate_type": "ux"},
    ],
)
def test_other_words_agents_and_types_have_another_key(change: dict[str, object]) -> None:
    assert compute_exact_key(replace(ENTRY, **change)) != compute_exact_key(ENTRY)


GATE = replace(ENTRY, gate_type="security", agent_type="any")


def test_a_failure_is_searched_in_the_form_of_its_question() -> None:
    entry = replace(ENTRY, error_message="exit 1\nat line 2")
    assert describe_problem(entry) == "The build fails\nexit 1\nat line 2"
    assert describe_solution(entry) == "Pin the version."
    assert build_searched_text(entry) == "Failure: The build fails\nError: exit 1\nat line 0"
    assert build_searched_text(ENTRY) == "Failure: The build fails"
    assert describe_when_to_try(entry) == "After the error exit 1"
    assert describe_when_to_try(replace(entry, when_to_try="Always first")) == "Always first"
    assert describe_when_to_try(ENTRY) is None


@pytest.mark.parametrize("frames", [1, 25, 400])
def test_the_exception_of_a_trace_is_searched_and_shown(frames: int) -> None:
    called = [f'  File "/app/m{n}.py", line {n}, in step\n    step()' for n in range(frames)]
    error = "ValueError: 17 is no colour"
    trace = "\n".join(["Traceback (most recent call last):", *called, error])
    entry = replace(ENTRY, error_message=trace)
    searched = "Failure: The build fails\nError: ValueError: 0 is no colour"
    assert build_searched_text(entry) == searched
    place = f"(at step in m{frames - 1}.py)"
    assert describe_problem(entry) == f"The build fails\nValueError: 17 is no colour {place}"
    assert describe_when_to_try(entry) == "After the error ValueError: 17 is no colour"
    pasted = replace(ENTRY, failure_description=f"The build fails\n{trace}")
    assert build_searched_text(pasted) == "Failure: The build fails\nValueError: 0 is no colour"
    assert compute_error_keys(entry) == compute_error_keys(pasted) != []
    moved = replace(ENTRY, error_message=trace.replace("/app/", "/builds/x/"))
    assert compute_exact_key(moved) == compute_exact_key(entry)


def test_a_gate_is_searched_with_its_solution() -> None:
    rejection = replace(
        GATE, entry_type="gate_rejection", human_feedback="No.", revision_approach="Yes."
    )
    shown = "A reviewer rejected the change at the security gate: No."
    assert (describe_problem(rejection), describe_solution(rejection)) == (shown, "Yes.")
    assert describe_when_to_try(rejection) is None
    named = replace(rejection, gate_type="Release Gate")
    assert describe_problem(named) == "A reviewer rejected the change at the Release Gate: No."
    assert build_searched_text(rejection) == "No.\nYes."
    approval = replace(GATE, entry_type="gate_approval", approved_approach="Short.")
    assert describe_problem(approval) == "Pass the security gate at the first attempt"
    assert build_searched_text(approval).endswith("\nShort.")
    assert describe_when_to_try(approval) is None


def test_the_first_and_the_last_lines_of_a_long_error_are_searched() -> None:
    middle = (f"what {'x' * number} says" for number in range(1, 900))
    error = "\n".join(["FIRST of all", *middle, "LAST"])
    text = build_searched_text(replace(ENTRY, error_message=error))
    assert count_text(text) <= MAX_ERROR_TOKENS + 20
    assert text.startswith("Failure: The build fails\nError: FIRST of all\n")
    assert text.endswith("\nLAST")
    assert "[...]" in text


@pytest.mark.parametrize("long", ["x" * 20_000, "word " * 4_000, "語" * 20_000, "\n" * 20_000])
def test_a_searched_text_is_within_the_limit(long: str) -> None:
    for entry in (
        replace(ENTRY, failure_description=long, error_message=long),
        replace(ENTRY, failure_description=long),
        replace(GATE, entry_type="gate_approval", approved_approach=long),
    ):
        assert count_text(build_searched_text(entry)) <= MAX_TOKENS


@given(st.text(max_size=400), st.integers(8, 60))
def test_a_shortened_text_fits_and_keeps_both_ends(text: str, tokens: int) -> None:
    short = shorten_text(text, tokens)
    assert count_text(short) <= tokens
    if count_text(text) <= tokens:
        assert short == text
    else:
        assert "[...]" in short
