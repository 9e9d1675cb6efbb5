"""Entries are equal if their words are, ignoring differences in writing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from rag_assets.systems.experience.model import Entry
from rag_assets.systems.experience.wording import compute_exact_key

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
def test_other_words_another_agent_and_another_type_are_not(change: dict[str, object]) -> None:
    assert compute_exact_key(replace(ENTRY, **change)) != compute_exact_key(ENTRY)
