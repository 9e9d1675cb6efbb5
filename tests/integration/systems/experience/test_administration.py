"""Merges, splits, retractions and expiry: counts equal those of a simple recount."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, literal_column, select, update
from starlette.testclient import TestClient

from rag_assets.common.clock import Clock
from rag_assets.pipeline.retention import prune_tenant
from rag_assets.storage.catalog.erasure.holds import HoldScope
from rag_assets.storage.catalog.tables import documents, events, metadata
from rag_assets.systems.experience.errors import UnknownExperience
from rag_assets.systems.experience.merges import delete_questions, merge_patterns
from rag_assets.systems.experience.patterns import PatternReader, compute_cutoff
from rag_assets.systems.experience.tables import experience_questions, knowledge_staging
from rag_assets.tenants.model import Tenant
from tests.driving import Driver
from tests.embedding_server import EmbeddingServer
from tests.installation import Installation
from tests.integration.systems.experience.conftest import Learning, new_learning


@pytest.fixture(scope="module")
def filtered(
    installed: Installation, driver: Driver, service: TestClient, server: EmbeddingServer
) -> Learning:
    """Create a tenant with three patterns that tests only read."""
    learning = new_learning(installed, driver, service, server)
    project = learning.project()
    learning.failure(project, "cosine 0.90 die Münze stürzt ab", "1. Neu starten.")
    more = {"technology": "Postgres", "task_type": "migration"}
    learning.failure(project, "cosine 0.91 the disk is 100% full", "2. Drop it.", **more)
    feedback = {"human_feedback": "Too wide on MOBILE", "revision_approach": "3. One column."}
    gate(learning, project, "gate_rejection", gate_type="ux", **feedback)
    learning.learned(project)
    return learning


def listed(learning: Learning, **parameters: Any) -> list[dict[str, Any]]:
    answer = learning.send("GET", "/patterns", role="admin", params=parameters)
    assert answer.is_success, answer.text
    found: list[dict[str, Any]] = answer.json()["patterns"]
    return found


def patterns(learning: Learning) -> dict[str, dict[str, Any]]:
    """Return the patterns by solution, without the fields that every question changes."""
    uses = {"shown_count", "last_shown_at"}
    return {
        one["solution"]: {name: value for name, value in one.items() if name not in uses}
        for one in listed(learning)
    }


def merged(learning: Learning, pattern: str, into: str, **more: Any) -> Any:
    """Merge a pattern into another; return the response."""
    body = {"into": into, **more}
    return learning.send("POST", f"/patterns/{pattern}/merge", body, role="admin")


def gate(learning: Learning, project: str, kind: str, **more: str) -> str:
    body = {"entry_type": kind, "project_id": project, "agent_type": "designer", **more}
    return str(learning.ok("POST", "/entries", body)["id"])


def feedback(learning: Learning, pattern: str, outcome: str) -> None:
    answer = learning.ok("POST", "/failure", {"failure_description": "x"})
    body = {"query_id": answer["query_id"], "pattern_id": pattern, "outcome": outcome}
    learning.ok("POST", "/feedback", body)


def test_a_merge_by_hand_adds_counts_and_a_split_restores_them(learning: Learning) -> None:
    first, second = learning.project("first"), learning.project("second")
    learning.failure(first, "cosine 0.90 of one", "Steps of one.")
    learning.learned(first)
    learning.failure(second, "cosine 0.95 of two", "Steps of two.")
    entry = learning.failure(second, "cosine 0.95  OF two", "Steps of two.")
    learning.learned(second)
    before = patterns(learning)
    one, two = before["Steps of one."], before["Steps of two."]
    feedback(learning, one["id"], "helped")
    feedback(learning, two["id"], "did_not_help")
    before = patterns(learning)
    assert before["Steps of one."]["success_count"] == 2

    answer = merged(learning, two["id"], one["id"], confirm=True).json()
    counts = answer["pattern"]
    assert (counts["success_count"], counts["failure_count"]) == (3, 1)
    assert len(answer["entries"]) == 3
    assert {made["way"] for made in answer["merges"]} == {"exact", "manual"}
    assert list(patterns(learning)) == ["Steps of one."]
    # Answers of the former pattern still accept feedback.
    [found] = learning.ask("x")
    assert found["solution"] == "Steps of two."
    assert found["id"] == one["id"]

    split = learning.ok("POST", f"/patterns/{one['id']}/split", {"entry_id": entry}, role="admin")
    assert split["id"] == two["id"]
    assert patterns(learning) == before

    # One of two equal entries is removed; the pair stays split.
    apart = learning.ok("POST", f"/patterns/{two['id']}/split", {"entry_id": entry}, role="admin")
    assert apart["id"] == entry
    learning.driver.sync(learning.tenant)
    assert len(learning.ok("GET", "/patterns", role="admin")["patterns"]) == 3
    answer = learning.send("POST", f"/patterns/{entry}/split", {"entry_id": entry}, role="admin")
    assert answer.status_code == 422


def test_a_merge_of_different_problems_asks_first(learning: Learning) -> None:
    project = learning.project()
    learning.failure(project, "cosine 0.90 the import stops", "Retry it.")
    learning.failure(project, "cosine 0.91 the page is blank", "Clear the cache.")
    learning.learned(project)
    before = patterns(learning)
    one, two = before["Retry it."]["id"], before["Clear the cache."]["id"]
    refused = merged(learning, one, two)
    assert (refused.status_code, refused.json()["type"]) == (
        409,
        "urn:rag-assets:problem:problems-differ",
    )
    assert "confirm" in refused.json()["detail"]
    assert "blank" not in refused.text
    assert merged(learning, one, two, confirm="yes").status_code == 422
    assert patterns(learning) == before
    assert merged(learning, one, two, confirm=True).status_code == 200
    # It is part of the other pattern now, and cannot become part of a third one.
    assert merged(learning, one, two, confirm=True).status_code == 404


def test_two_merges_at_one_moment_make_no_circle(learning: Learning) -> None:
    project = learning.project()
    one = UUID(learning.failure(project, "cosine 0.90 the import stops", "Retry it."))
    two = UUID(learning.failure(project, "cosine 0.91 the page is blank", "Clear the cache."))
    learning.learned(project)
    catalog = learning.driver.session.catalog
    ref = catalog.tenants.get(learning.tenant).ref
    with catalog.database.begin_exclusive(ref) as connection:
        merge_patterns(connection, ref, one, two, by="first")
    with (
        pytest.raises(UnknownExperience),
        catalog.database.begin_exclusive(ref) as connection,
    ):
        merge_patterns(connection, ref, two, one, by="second")
    assert [pattern["id"] for pattern in listed(learning)] == [str(two)]


def test_alternatives_of_one_problem_are_merged_at_once(learning: Learning) -> None:
    project = learning.project()
    learning.failure(project, "cosine 0.90 the import stops", "Retry it.")
    learning.failure(project, "cosine 0.90  The import STOPS", "Raise the timeout.")
    other = {"agent_type": "operator"}
    learning.failure(project, "cosine 0.90 the import stops", "Call them.", **other)
    learning.learned(project)
    found = {solution: pattern["id"] for solution, pattern in patterns(learning).items()}
    into = found["Raise the timeout."]
    assert merged(learning, found["Retry it."], into).status_code == 200
    assert merged(learning, found["Call them."], into).status_code == 200


def test_approvals_of_one_gate_are_not_known_to_be_one_problem(learning: Learning) -> None:
    project = learning.project()
    for gate_type, approach in (("ux", "One column."), ("UX", "Real data in the mock-up.")):
        gate(learning, project, "gate_approval", gate_type=gate_type, approved_approach=approach)
    learning.learned(project)
    one, two = (pattern["id"] for pattern in patterns(learning).values())
    assert merged(learning, one, two).status_code == 409
    assert merged(learning, one, two, confirm=True).status_code == 200


def test_a_merge_and_its_undo_show_the_texts_of_entries(learning: Learning) -> None:
    project = learning.project()
    first = learning.failure(project, "cosine 0.90 the import stops", "Retry it.")
    more = {"technology": "Kafka", "when_to_try": "On Mondays"}
    second = learning.failure(project, "cosine 0.91 the page is blank", "Clear. " * 200, **more)
    third = learning.failure(project, "cosine 0.91 The page is blank", "Clear. " * 200)
    learning.learned(project)
    # A pattern keeps its own text, although the merged one is older.
    there = merged(learning, first, second, confirm=True).json()
    assert there["pattern"]["problem"] == "cosine 0.91 the page is blank"
    learning.ok("POST", f"/patterns/{second}/split", {"entry_id": first}, role="admin")

    answer = merged(learning, second, first, confirm=True).json()
    entries = {one["id"]: one for one in answer["entries"]}
    assert entries.keys() == {first, second, third}
    assert answer["pattern"]["problem"] == "cosine 0.90 the import stops"
    assert entries[second]["problem"] == "cosine 0.91 the page is blank"
    assert entries[second]["solution"] == "Clear. " * 200
    assert (entries[second]["technology"], entries[second]["when_to_try"]) == (
        "Kafka",
        "On Mondays",
    )
    merges = {(one["way"], one["entry_id"]): one for one in answer["merges"]}
    assert merges["manual", second]["problem"] == "cosine 0.91 the page is blank"
    assert merges["manual", second]["other_problem"] is None
    equal = merges["exact", third]
    assert (equal["other_id"], equal["other_problem"]) == (second, "cosine 0.91 the page is blank")
    assert len(equal["other_solution"]) <= 301
    assert equal["other_solution"].startswith("Clear. Clear.")

    undone = learning.ok("POST", f"/patterns/{first}/split", {"entry_id": third}, role="admin")
    assert {one["id"]: one["problem"] for one in undone["entries"]} == {
        second: "cosine 0.91 the page is blank",
        third: "cosine 0.91 The page is blank",
    }
    # Neither retracted texts nor texts merged into them are shown.
    for entry in (second, third):
        learning.ok("DELETE", f"/entries/{entry}", role="admin")
    left = learning.send("GET", f"/patterns/{first}", role="admin")
    assert "blank" not in left.text


def test_patterns_are_listed_by_use(learning: Learning) -> None:
    project = learning.project()
    for number, name in enumerate("abcde"):
        learning.failure(project, f"cosine 0.{90 - number} of {name}", f"Steps of {name}.")
    learning.learned(project)
    named = {one["solution"][9]: one["id"] for one in listed(learning)}
    # A failure gets three patterns, the nearest first: a, b and c.
    for _ in range(2):
        learning.ask("x")
    assert merged(learning, named["b"], named["e"], confirm=True).status_code == 200
    learning.ask("x", project_id=str(uuid4()))

    by_use = listed(learning, order="use")
    assert [one["shown_count"] for one in by_use] == [3, 3, 3, 0]
    assert by_use[-1]["id"] == named["d"]
    assert by_use[-1]["last_shown_at"] is None
    assert {one["id"] for one in by_use[:3]} == {named["a"], named["c"], named["e"]}
    assert all(one["last_shown_at"] is not None for one in by_use[:3])
    newest = [one["last_embedded_at"] for one in listed(learning, order="newest")]
    assert newest == sorted(newest, reverse=True)

    for order in ("use", "newest", "id"):
        seen: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = {"limit": 1, "order": order, **after}
            answer = learning.send("GET", "/patterns", role="admin", params=page).json()
            seen += [one["id"] for one in answer["patterns"]]
            if answer["next"] is None:
                break
            after = {"after": answer["next"]}
        assert seen == [one["id"] for one in listed(learning, order=order)], order
    page = {"order": "use", "after": named["b"]}
    gone = learning.send("GET", "/patterns", role="admin", params=page)
    assert (gone.status_code, "after" in gone.json()["detail"]) == (404, True)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, "123"),
        ({"search": "MÜNZE stürzt"}, "1"),
        ({"search": "100%"}, "2"),
        ({"search": "münze absent"}, ""),
        ({"search": "mobile"}, "3"),
        ({"entry_type": "gate_rejection"}, "3"),
        ({"technology": "POSTGRES"}, "2"),
        ({"technology": "postgresql", "order": "use"}, "2"),
        ({"agent_type": "backend-developer", "order": "use"}, "12"),
        ({"task_type": "migration", "search": "disk"}, "2"),
        ({"task_type": "none of these"}, ""),
    ],
)
def test_patterns_are_searched_and_filtered(
    filtered: Learning, wanted: dict[str, str], expected: str
) -> None:
    found = listed(filtered, **wanted)
    assert "".join(sorted(one["solution"][0] for one in found)) == expected


def test_a_value_that_no_entry_has_is_named(filtered: Learning) -> None:
    page = {"technology": "COBOL", "task_type": "migration"}
    answer = filtered.ok("GET", f"/patterns?{urlencode(page)}", role="admin")
    assert (answer["patterns"], [one["field"] for one in answer["warnings"]]) == (
        [],
        ["technology"],
    )


def test_a_pattern_is_searched_by_its_id_and_a_project(filtered: Learning) -> None:
    found = listed(filtered)
    assert [one["id"] for one in listed(filtered, search=f" {found[0]['id']} ")] == [found[0]["id"]]
    assert len(listed(filtered, project_id=filtered.projects[0])) == 3
    assert listed(filtered, project_id=str(uuid4())) == []


@pytest.mark.parametrize(
    "wanted", [{"order": "best"}, {"search": " "}, {"entry_type": "gate"}, {"project_id": "x"}]
)
def test_a_filter_that_is_wrong_is_refused(filtered: Learning, wanted: dict[str, str]) -> None:
    answer = filtered.send("GET", "/patterns", role="admin", params=wanted)
    assert answer.status_code == 422
    assert next(iter(wanted)) in answer.text


def test_patterns_come_in_pages(learning: Learning) -> None:
    project = learning.project()
    for number in range(5):
        learning.failure(project, f"cosine 0.9{number}", f"Steps {'abcde'[number]}.")
    learning.learned(project)
    seen: list[str] = []
    after = ""
    while True:
        page = learning.ok("GET", f"/patterns?limit=2{after}", role="admin")
        seen += [one["id"] for one in page["patterns"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert len(seen) == len(set(seen)) == 5
    assert seen == sorted(seen)


def test_a_retraction_is_gone_with_its_reply_and_then_from_every_store(
    learning: Learning,
) -> None:
    good, bad = learning.project("good"), learning.project("bad")
    learning.failure(good, "cosine 0.90 of both", "Good steps.")
    learning.learned(good)
    learning.failure(bad, "cosine 0.90 of both", "Good steps.")
    learning.failure(bad, "cosine 0.95 poisonous words", "Poisonous steps.")
    learning.learned(bad)
    learning.failure(bad, "cosine 0.96 still staged", "Staged poisonous steps.")
    assert {one["solution"] for one in learning.ask("x")} == {"Good steps.", "Poisonous steps."}

    taken = learning.ok("POST", "/retract", {"project_id": bad}, role="admin")
    assert taken == {"entries": 3}
    [left] = learning.ask("x")
    assert (left["solution"], left["success_count"]) == ("Good steps.", 1)
    learning.driver.sync(learning.tenant)
    session = learning.driver.session
    with session.catalog.database.begin() as connection:
        for table in metadata.sorted_tables:
            row = literal_column("t::text")
            rows = connection.execute(select(row).select_from(table.alias("t")))
            assert not any("oisonous" in one for one in rows.scalars()), table.name
    assert learning.ok("GET", "/report", role="admin")["patterns"] == 1


def test_one_entry_is_taken_back(learning: Learning) -> None:
    project = learning.project()
    entry = learning.failure(project, "cosine 0.90", "Steps.")
    learning.learned(project)
    learning.ok("DELETE", f"/entries/{entry}", role="admin")
    assert learning.ask("x") == []
    assert learning.send("GET", f"/patterns/{entry}", role="admin").status_code == 404


@pytest.mark.parametrize(("seconds", "answers"), [(-1, True), (0, True), (1, False)])
def test_an_entry_answers_for_a_year(learning: Learning, seconds: int, answers: bool) -> None:
    project = learning.project()
    learning.failure(project, "cosine 0.90", "Steps.")
    learning.learned(project)
    catalog = learning.driver.session.catalog
    staged = knowledge_staging.c
    with catalog.database.begin() as connection:
        found = select(staged.id, staged.embedded_at).where(staged.tenant == learning.tenant)
        id_, since = connection.execute(found).one()
    tenant = Tenant.from_config(catalog.tenants.get(learning.tenant).config)
    now = since + timedelta(days=365, seconds=seconds)
    cutoff = compute_cutoff(tenant, Clock(machine=lambda: now).now())
    read = PatternReader(catalog.database).read_entries(learning.tenant, [id_], cutoff)
    assert bool(read.entries) is answers


def test_the_prune_counts_the_year_from_the_same_moment(learning: Learning) -> None:
    project = learning.project()
    learning.failure(project, "cosine 0.90", "Steps.")
    learning.learned(project)
    learning.driver.sync(learning.tenant)
    staged = knowledge_staging.c
    both = select(staged.embedded_at, documents.c.embedded_at).where(
        staged.tenant == learning.tenant,
        documents.c.tenant == staged.tenant,
        documents.c.document_id == staged.document_id,
    )
    with learning.driver.session.catalog.database.begin() as connection:
        [(of_entry, of_document)] = connection.execute(both).all()
    assert of_entry == of_document


def test_an_expired_entry_neither_answers_nor_counts(learning: Learning) -> None:
    old, new = learning.project("old"), learning.project("new")
    for project in (old, new):
        learning.failure(project, "cosine 0.90", "Steps.")
        learning.learned(project)
    assert learning.ask("x")[0]["success_count"] == 2
    catalog = learning.driver.session.catalog
    staged = knowledge_staging.c
    long_ago = datetime.now(UTC) - timedelta(days=366)
    with catalog.database.begin() as connection:
        connection.execute(
            update(knowledge_staging)
            .where(staged.tenant == learning.tenant, staged.project_id == old)
            .values(embedded_at=long_ago)
        )
    [pattern] = learning.ask("x")
    assert pattern["success_count"] == 1
    assert pattern["projects"] == [new]


def test_a_hold_keeps_rows_that_are_deleted_by_their_age(learning: Learning) -> None:
    project = learning.project()
    learning.failure(project, "cosine 0.90 of one", "Steps of one.")
    learning.learned(project)
    learning.ask("x")
    catalog = learning.driver.session.catalog
    held = catalog.holds
    asked = insert(events).values(tenant=learning.tenant, kind="rag_search_started", payload={})
    of_searches = select(events).where(events.c.kind == "rag_search_started")
    pruned = {
        "staged": select(knowledge_staging),
        "questions": select(experience_questions),
        "searches": of_searches,
    }
    with catalog.database.begin() as connection:
        connection.execute(asked)

    def prune_after_a_year() -> set[str]:
        """Prune 366 days later; return the remaining rows."""
        later = Clock(ahead=timedelta(days=366))
        with learning.driver.locked(learning.tenant) as ctx:
            prune_tenant(replace(ctx, clock=later), by="a test")
            with catalog.database.begin_exclusive(ctx.ref) as connection:
                delete_questions(connection, ctx.ref, later.now())
        with catalog.database.begin() as connection:
            return {
                name
                for name, query in pruned.items()
                if connection.execute(query.filter_by(tenant=learning.tenant)).all()
            }

    with learning.driver.locked(learning.tenant) as ctx:
        held.set(ctx.ref, HoldScope(), reason="a claim", by="a test")
    assert prune_after_a_year() == {"staged", "questions", "searches"}
    with learning.driver.locked(learning.tenant) as ctx:
        held.lift(ctx.ref, HoldScope(), reason="settled", by="a test")
        held.set(ctx.ref, HoldScope(source="experience"), reason="a claim", by="a test")
    assert prune_after_a_year() == {"staged"}
    with learning.driver.locked(learning.tenant) as ctx:
        held.lift(ctx.ref, HoldScope(source="experience"), reason="settled", by="a test")
    assert prune_after_a_year() == set()


def test_old_questions_are_forgotten_only_while_the_clock_is_trusted(learning: Learning) -> None:
    project = learning.project()
    learning.failure(project, "cosine 0.90 of one", "Steps of one.")
    learning.learned(project)
    learning.ask("x")
    catalog = learning.driver.session.catalog
    questions = experience_questions.c.tenant == learning.tenant
    long_ago = datetime.now(UTC) - timedelta(days=400)

    def question_count() -> int:
        with catalog.database.begin() as connection:
            return len(connection.execute(select(experience_questions).where(questions)).all())

    with catalog.database.begin() as connection:
        connection.execute(update(experience_questions).where(questions).values(asked_at=long_ago))
    catalog.clock.replace(long_ago, None)
    learning.learned(project)
    assert question_count() == 1
    catalog.clock.replace(datetime.now(UTC), None)
    learning.learned(project)
    assert question_count() == 0


def test_the_report_tells_what_there_is(learning: Learning) -> None:
    project = learning.project()
    learning.failure(project, "cosine 0.90 shown", "Shown.")
    learning.failure(project, "cosine 0.10 never shown", "Hidden.")
    learning.learned(project)
    learning.failure(project, "cosine 0.90 staged", "Staged.")
    [shown] = learning.ask("x")
    feedback(learning, shown["id"], "helped")
    report = learning.ok("GET", "/report", role="admin")
    assert report["entries"] == {"failure_solution": 2}
    assert (report["patterns"], report["staged"], report["never_shown"]) == (2, 1, 1)
    assert (report["helped"], report["did_not_help"]) == (1, 0)
    assert report["questions"] == {"failure": 2}
    assert report["next_expiry"] is not None
