"""What makes two entries the same: their words without differences of writing, and facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from rag_assets.systems.experience.matching import differ, exact_key
from rag_assets.systems.experience.model import Entry

ENTRY = Entry(
    id=uuid4(),
    entry_type="failure_solution",
    project_id=uuid4(),
    agent_type="tester",
    task_type=None,
    technology=None,
    failure_description="The build fails",
    error_message=None,
    solution_steps="Pin the version.",
    gate_type=None,
    human_feedback=None,
    revision_approach=None,
    approved_approach=None,
    when_to_try=None,
    about=(),
    contributed_by=None,
    captured_at=datetime(2026, 1, 1, tzinfo=UTC),
    checkpoint_id=None,
    document_id=None,
    pattern_id=None,
    embedded_at=None,
)


@pytest.mark.parametrize(
    "change",
    [
        {"failure_description": "the  BUILD\nfails"},
        {"solution_steps": "\uff30in the version."},
        {"id": uuid4(), "project_id": uuid4(), "task_type": "testing", "technology": "python"},
    ],
)
def test_ways_to_write_the_same_are_one(change: dict[str, object]) -> None:
    assert exact_key(replace(ENTRY, **change)) == exact_key(ENTRY)


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
def test_other_words_another_agent_and_another_type_are_not(change: dict[str, object]) -> None:
    assert exact_key(replace(ENTRY, **change)) != exact_key(ENTRY)


@pytest.mark.parametrize(
    ("first", "second", "fact"),
    [
        ("Raise the timeout to 30 s.", "Raise the timeout to 300 s.", "a number or a version"),
        ("Use Python 3.11.", "Use Python 3.12.", "a number or a version"),
        ("Retry twice.", "Retry.", "a number or a version"),
        ("Pass --no-cache.", "Pass --pull.", "an identifier"),
        ("Set MAX_JOBS higher.", "Set MAX_MEMORY higher.", "an identifier"),
        ("Call flush() at the end.", "Call close() at the end.", "an identifier"),
        ("Edit config/app.yml.", "Edit config/db.yml.", "an identifier"),
        ("Cache the response.", "Do not cache the response.", "a negation"),
        ("Enable the cache.", "Disable the cache.", "a negation"),
        ("Migrate before the deployment.", "Migrate after the deployment.", "a negation"),
        ("Don't wait.", "Wait.", "a negation"),
        ("Allow the origin.", "Deny the origin.", "a negation"),
        ("Increase the pool.", "Reduce the pool.", "a negation"),
    ],
)
def test_facts_that_vectors_hardly_tell_apart_keep_solutions_apart(
    first: str, second: str, fact: str
) -> None:
    assert differ(first, second) == fact
    assert differ(second, first) == fact


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Pin the version of the driver.", "The driver's version must be pinned."),
        ("Raise the timeout to 30 s.", "Set a timeout of 30 s, raised from less."),
        ("Do not cache it.", "Never cache it."),
        ("Pass --no-cache to the build.", "Build with --no-cache."),
    ],
)
def test_other_words_for_the_same_facts_do_not(first: str, second: str) -> None:
    assert differ(first, second) is None
