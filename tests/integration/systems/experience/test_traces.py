"""Failures with stack traces are found by the error itself, whatever surrounds it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from rag_assets.storage.catalog.tables import documents, source_records
from rag_assets.systems.experience import entries, finishing
from rag_assets.systems.experience.tables import knowledge_staging
from tests.installation import Installation
from tests.integration.systems.experience.conftest import Learning

STAGED = knowledge_staging.c


def trace(error: str, module: str, frames: int = 30, root: str = "/app") -> str:
    """Return a Python traceback whose innermost frame is in a module of the project."""
    lines = [
        f'  File "{root}/lib/python3.11/site-packages/framework/layer_{number}.py",'
        f" line {number * 3}, in call_{number}\n    return self.next(request)"
        for number in range(frames)
    ]
    own = f'  File "{root}/shop/{module}.py", line 41, in run\n    run()'
    return "\n".join(["Traceback (most recent call last):", *lines, own, error])


PROBLEMS = (
    ("The nightly import of prices stops", "KeyError: 'sku'", "prices"),
    ("Customers cannot sign in with a phone number", "ValueError: no digits in 'x'", "phones"),
    ("The invoice has a wrong total", "decimal.InvalidOperation: [<class 'Overflow'>]", "totals"),
    ("The search page is empty after a release", "ConnectionError: host 10.0.0.1", "search"),
)


def test_a_failure_with_a_long_trace_is_found_by_its_words_and_by_its_error(
    local_learning: Learning,
) -> None:
    project = local_learning.project()
    for description, error, module in PROBLEMS:
        steps = f"Change {module}."
        local_learning.failure(project, description, steps, error_message=trace(error, module))
    local_learning.learned(project)

    for description, error, module in PROBLEMS:
        assert local_learning.ask(description)[0]["solution"] == f"Change {module}."
        there = trace(error, module, frames=50, root="/builds/me").replace("line 41", "line 52")
        found = local_learning.ask("our job broke tonight", error_message=there)
        assert found[0]["solution"] == f"Change {module}."
        # A trace pasted into the description gets the same rank, however different the words are.
        assert local_learning.ask(f"why?\n{there}")[0]["id"] == found[0]["id"]
        assert local_learning.task(f"bake a cake\n{there}")[0]["id"] == found[0]["id"]
    # An unknown trace must not be answered with some other trace.
    unknown = trace("RuntimeError: the oven is cold", "kitchen")
    assert local_learning.ask("the cake is flat", error_message=unknown) == []
    [shown] = [one for one in local_learning.ask(PROBLEMS[0][0]) if "prices" in one["solution"]]
    assert shown["problem"] == f"{PROBLEMS[0][0]}\nKeyError: 'sku' (at run in prices.py)"


def test_the_error_of_the_question_goes_first_and_decides_by_success(learning: Learning) -> None:
    first, second = learning.project("first"), learning.project("second")
    message = trace("KeyError: 'sku'", "prices")
    learning.failure(first, "cosine 0.99 another problem", "Near.")
    learning.failure(first, "cosine 0.20 one way", "Rare.", error_message=message)
    learning.failure(first, "cosine 0.10 another way", "Usual.", error_message=message)
    learning.learned(first)
    learning.failure(second, "cosine 0.10 another way", "Usual.", error_message=message)
    learning.learned(second)

    found = learning.ask("broken", error_message=trace("KeyError: 'sku'", "prices", 3, "/x"))
    assert [one["solution"] for one in found] == ["Usual.", "Rare.", "Near."]
    assert found[0]["conflicts_with"] == [found[1]["id"]]
    # The same error elsewhere in the code is another failure.
    other = learning.ask("broken", error_message=trace("KeyError: 'sku'", "stock"))
    assert [one["solution"] for one in other] == ["Near."]
    # The error line alone has no location: it ranks near entries first, and adds no others.
    line = learning.ask("broken", error_message="KeyError: 'sku'")
    assert [one["solution"] for one in line] == ["Near."]
    # Filters apply as usual.
    assert learning.ask("broken", error_message=message, agent_type="architect") == []
    assert (
        learning.ask("broken", error_message=message, project_id=second)[0]["solution"] == "Usual."
    )


def test_entries_of_former_rules_get_the_present_ones_by_themselves(
    local_learning: Learning, installed: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = local_learning.project()
    description, error, module = PROBLEMS[0]
    message = trace(error, module)

    def whole(entry: entries.Entry) -> str:
        return f"Failure: {entry.failure_description}\nError: {entry.error_message}"

    with monkeypatch.context() as former:
        former.setattr(entries, "build_searched_text", whole)
        former.setattr(entries, "compute_error_keys", lambda _: [])
        former.setattr(entries, "WORDING_VERSION", 1)
        former.setattr(finishing, "rewrite_outdated_records", lambda _: 0)
        local_learning.failure(project, description, "Change prices.", error_message=message)
        local_learning.learned(project)
    tenant = local_learning.tenant
    catalog = installed.session().catalog
    with catalog.database.begin() as connection:
        [row] = connection.execute(select(knowledge_staging).where(STAGED.tenant == tenant))
        found_at = row.embedded_at - timedelta(days=100)
        for table in (knowledge_staging, documents):
            connection.execute(
                update(table).where(table.c.tenant == tenant).values(embedded_at=found_at)
            )
    assert row.record_version == 1
    asked = {"error_message": trace(error, module, 7, "/builds")}
    assert local_learning.ask("our job broke tonight", **asked) == []

    assert finishing.FOLLOW_UP.unfinished(catalog, tenant) is not None
    for _ in range(2):
        local_learning.driver.sync(tenant)
    [pattern] = local_learning.ask("our job broke tonight", **asked)
    assert pattern["solution"] == "Change prices."
    with catalog.database.begin() as connection:
        [row] = connection.execute(select(knowledge_staging).where(STAGED.tenant == tenant))
        ages = connection.scalars(
            select(documents.c.embedded_at).where(documents.c.tenant == tenant)
        ).all()
        [text] = connection.scalars(
            select(source_records.c.text).where(source_records.c.tenant == tenant)
        )
        assert connection.scalar(finishing.select_outdated_entries(tenant)) is None
    assert text == f"Failure: {description}\n" + "Error: KeyError: 'sku'"
    # Embedding again does not restart the retention period.
    assert (row.embedded_at, ages) == (found_at, [found_at])
    assert finishing.FOLLOW_UP.unfinished(catalog, tenant) is None
