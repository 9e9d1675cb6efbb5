"""A chat model grades patterns: grades are counted, bad answers and caps are reported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.installation import Installation
from tests.integration.systems.experience.conftest import Learning

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

GRADES = {
    "grades": [
        {"number": 1, "grade": 4, "reason": "It can be acted on."},
        {"number": 2, "grade": 1, "reason": "It has nothing to do with it."},
    ]
}
PRICES = {"input_per_million": 1.0, "output_per_million": 10.0}


@pytest.fixture
def learned(learning: Learning, installed: Installation, llmock: LLMock) -> Learning:
    """Create two patterns of two projects, and configure a chat model."""
    for number, problem in enumerate(("cosine 0.90 of one", "cosine 0.95 of two")):
        project = learning.project(f"P{number}")
        learning.failure(project, problem, f"Steps of {problem}.")
        learning.learned(project)
    chat: dict[str, Any] = {
        "model": "gpt-4.1-mini",
        "provider": "openai",
        "prices": PRICES,
        "base_url": llmock.base_url("openai"),
        "api_key": "$OPENAI_API_KEY",
    }
    installed.configure(learning.tenant, chat_model=chat)
    learning.driver.sync(learning.tenant)
    return learning


def assessed(learned: Learning, installed: Installation, *options: str) -> dict[str, Any]:
    done = installed.command("experience", "assess", learned.tenant, "--json", *options)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_patterns_are_graded_and_their_questions_are_not_recorded(
    learned: Learning, installed: Installation, llmock: LLMock
) -> None:
    llmock.reply(f"Here it is:\n```json\n{json.dumps(GRADES)}\n```", times=None)
    found = assessed(learned, installed)
    assert found["assessed"] == 2
    assert found["model"] == "openai/gpt-4.1-mini"
    graded = [(one["aspect"], one["grade"]) for one in found["grades"]]
    # Experience of only the asking project is not shown to it, so one of two patterns is left.
    assert graded == [("worth", 4), ("relevance", 4), ("clarity", 4)] * 2
    assert found["means"] == {"relevance": 4.0, "clarity": 4.0, "worth": 4.0}
    shown = {one["pattern"] for one in found["grades"] if one["aspect"] == "relevance"}
    assert len(shown) == 2
    assert learned.ok("GET", "/report", role="admin")["questions"] == {}
    assert assessed(learned, installed, "--patterns", "1")["next"] != found["next"]

    printed = installed.command("experience", "assess", learned.tenant)
    assert "4.00 of 5" in printed.out


def test_what_is_no_grade_is_told_as_none(
    learned: Learning, installed: Installation, llmock: LLMock
) -> None:
    llmock.reply('{"grades": [{"number": 1, "grade": 9, "reason": "Best of all."}]}', times=None)
    found = assessed(learned, installed)
    assert {one["grade"] for one in found["grades"]} == {None}
    assert set(found["means"].values()) == {None}


def test_a_model_that_refuses_is_an_error(
    learned: Learning, installed: Installation, llmock: LLMock
) -> None:
    llmock.fail(400, message="no such model", times=None)
    refused = installed.command("experience", "assess", learned.tenant)
    assert refused.code != 0
    assert "Traceback" not in refused.err


def test_a_tenant_without_a_chat_model_is_told_to_name_one(
    learning: Learning, installed: Installation
) -> None:
    project = learning.project()
    learning.failure(project, "cosine 0.90", "Steps.")
    learning.learned(project)
    refused = installed.command("experience", "assess", learning.tenant)
    assert refused.code != 0
    assert "chat_model" in refused.err
