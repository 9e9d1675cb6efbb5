"""Builds are judged, held, published, rolled back and discarded by commands, on real servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from anyio import to_thread
from sqlalchemy import update

from rag_assets.assets.reports import build_generations_report
from rag_assets.common.clock import Clock
from rag_assets.declarations import PLAIN
from rag_assets.pipeline.context import SliceLimits
from rag_assets.pipeline.generation_moves import BuildOrder, choose_rollback_build, roll_back
from rag_assets.pipeline.generations import drop_generation, open_active_builds
from rag_assets.pipeline.upkeep import drop_old_generations
from rag_assets.search import Retriever
from rag_assets.search.model import SearchRequest
from rag_assets.storage.catalog.builds.search_state import SearchState, SearchStateReader
from rag_assets.storage.catalog.tables import generations
from tests.driving import Driver
from tests.embedding_server import embedding_server
from tests.installation import FAST, CommandResult, Installation
from tests.integration.builds import DOCUMENTS, found, prose, remote, serving, states
from tests.integration.test_generations import CHUNKED, SPARSE, assert_nothing_to_do

Run = Callable[..., CommandResult]


@pytest.fixture
def run(shared_installation: Installation, tenant: str) -> Run:
    """Return a function that runs `rag-assets generations COMMAND TENANT ...` successfully."""

    def command(name: str, *arguments: str) -> CommandResult:
        result = shared_installation.command("generations", name, tenant, *arguments)
        assert result.code == 0, result.err
        return result

    return command


@pytest.fixture
def refused(shared_installation: Installation, tenant: str) -> Callable[..., str]:
    """Return a function that runs a command which must be refused, and returns the reason."""

    def command(name: str, *arguments: str) -> str:
        result = shared_installation.command("generations", name, tenant, *arguments)
        assert result.code == 1
        return result.err

    return command


def alter_one_entry(installation: Installation, driver: Driver, tenant: str, number: int) -> None:
    """Change an entry of a build, as a foreign program could."""
    (build,) = [g for g in driver.session.catalog.generations.live(tenant) if g.number == number]
    with driver.locked(tenant) as ctx:
        entry = next(iter(ctx.store.entries.stored(build.index_name, ctx.owner(build))))
    url = f"{installation.environment['RAG_ASSETS_ELASTICSEARCH_URL']}/{build.index_name}"
    body = {"doc": {"access_scope": "everybody"}}
    path = f"{url}/_update/{entry.id}?routing={tenant}&refresh=true"
    assert httpx.post(path, json=body).status_code == 200


def build_with_a_fault(installation: Installation, driver: Driver, tenant: str) -> None:
    """Make half of a build, and alter one of its entries."""
    installation.configure(tenant, **CHUNKED)
    Driver(installation, SliceLimits(documents=1)).run_once(tenant)
    alter_one_entry(installation, driver, tenant, 2)


def test_a_build_that_fails_a_check_is_held_with_the_reason(
    shared_installation: Installation,
    driver: Driver,
    tenant: str,
    files: Path,
    run: Run,
    refused: Callable[..., str],
) -> None:
    build_with_a_fault(shared_installation, driver, tenant)
    shared_installation.synced(tenant)
    assert states(driver, tenant) == {1: "SERVING", 2: "HELD"}
    held = run("list", "--json").json["generations"][1]
    assert "search_index.drift: altered entries" in held["reason"]
    assert held["differs"] == [
        "chunker: heading max_tokens 220 overlap 32 → heading max_tokens 40 overlap 8"
    ]
    assert (held["documents"], held["of_documents"]) == (DOCUMENTS, DOCUMENTS)
    checks = {check["check"]: check["passed"] for check in held["checks"]}
    assert checks["search_index.isolation"] is False
    assert checks["chunks.secrets"] is checks["embeddings.expectations"] is True
    assert "search_index.drift" in run("show", "2").out
    # It is not judged again, and edits reach the serving build.
    (files / "1.md").write_text(prose("zebras"))
    shared_installation.synced(tenant)
    assert found(shared_installation, tenant, "of zebras") == {"files/1.md"}
    assert_nothing_to_do(shared_installation, tenant)
    assert "is held: search_index.drift" in refused("publish")
    assert "needs a reason" in refused("publish", "--force")
    assert states(driver, tenant) == {1: "SERVING", 2: "HELD"}
    answer = run("publish", "2", "--force", "--reason", "the scope does not matter", "--json")
    assert answer.json["number"] == 2
    assert states(driver, tenant) == {1: "RETIRED", 2: "SERVING"}
    [event] = driver.session.catalog.events.latest(tenant, kind="generation_published", limit=1)
    assert event.payload["forced"] is True
    assert event.payload["reason"] == "the scope does not matter"


def test_a_held_build_goes_through_once_it_is_repaired(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path
) -> None:
    build_with_a_fault(shared_installation, driver, tenant)
    shared_installation.synced(tenant)
    assert states(driver, tenant) == {1: "SERVING", 2: "HELD"}
    repaired = shared_installation.synced(tenant, repair=True)
    assert repaired["embeddings"]["embedded"] == 0
    assert states(driver, tenant) == {1: "RETIRED", 2: "SERVING"}
    checks = serving(driver, tenant).checks
    assert checks is not None
    assert all(check["passed"] for check in checks)


def test_a_tenant_that_publishes_by_hand(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path, run: Run
) -> None:
    shared_installation.configure(tenant, publish="manual", **SPARSE)
    driver.sync(tenant)
    assert states(driver, tenant) == {1: "SERVING", 2: "COMPLETE"}
    assert_nothing_to_do(shared_installation, tenant)
    (files / "1.md").write_text(prose("zebras"))
    assert driver.sync(tenant)["embedded"] == 2
    assert found(shared_installation, tenant, "of zebras") == {"files/1.md"}
    run("publish")
    assert states(driver, tenant) == {1: "RETIRED", 2: "SERVING"}
    assert found(shared_installation, tenant, "of zebras") == {"files/1.md"}


def test_going_back_brings_up_to_date_first_and_lasts(
    shared_installation: Installation,
    driver: Driver,
    tenant: str,
    files: Path,
    run: Run,
    refused: Callable[..., str],
) -> None:
    shared_installation.configure(tenant, **SPARSE)
    driver.sync(tenant)
    (files / "1.md").write_text(prose("zebras"))
    (files / "2.md").unlink()
    driver.sync(tenant)
    answer = run("rollback", "--reason", "worse answers", "--json").json
    assert (answer["number"], answer["state"]) == (1, "SERVING")
    assert answer["pinned"]["reason"] == "worse answers"
    assert states(driver, tenant) == {1: "SERVING", 2: "RETIRED"}
    assert found(shared_installation, tenant, "of zebras") == {"files/1.md"}
    assert found(shared_installation, tenant, "Sentence 5 of 2") == set()
    # A second rollback would lead to the build that was rolled back.
    again = refused("rollback", "--reason", "why")
    assert "generation 1" in again
    assert "answers already, pinned by" in again
    # The configuration asks for the other build, but syncs keep the pinned one.
    plan = shared_installation.command("plan", tenant, "--json").json
    assert (plan["documents"], plan["new_generation"]) == (0, False)
    assert_nothing_to_do(shared_installation, tenant)
    (files / "3.md").write_text(prose("yaks"))
    assert driver.sync(tenant)["embedded"] == 1
    assert found(shared_installation, tenant, "of yaks") == {"files/3.md"}
    assert serving(driver, tenant).number == 1
    assert "pinned by" in run("list").out
    assert run("publish", "--json").json["number"] == 2
    assert found(shared_installation, tenant, "of yaks") == {"files/3.md"}
    driver.sync(tenant)
    assert serving(driver, tenant).number == 2
    assert driver.session.catalog.pins.find(tenant) is None


def test_going_back_now_answers_before_it_is_up_to_date(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path
) -> None:
    shared_installation.configure(tenant, **CHUNKED)
    driver.sync(tenant)
    (files / "1.md").write_text(prose("zebras"))
    (files / "2.md").unlink()
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        generation = choose_rollback_build(ctx, None)
        assert roll_back(ctx, generation, BuildOrder.create(ctx, "a test", "worse"), now=True)
    assert found(shared_installation, tenant, "of zebras") == set()
    assert found(shared_installation, tenant, "Sentence 5 of 2") == set()
    assert found(shared_installation, tenant, "Sentence 5 of 3") == {"files/3.md"}
    assert driver.sync(tenant)["embedded"] == 1
    assert found(shared_installation, tenant, "of zebras") == {"files/1.md"}
    assert serving(driver, tenant).number == 1


def test_a_way_back_that_was_interrupted_goes_on_to_the_pinned_build(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path, run: Run
) -> None:
    shared_installation.configure(tenant, **CHUNKED)
    driver.sync(tenant)
    shared_installation.configure(tenant, chunker=None, **SPARSE)
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        generation = choose_rollback_build(ctx, 1)
        roll_back(ctx, generation, BuildOrder.create(ctx, "a test", "worse"), now=False)
    assert states(driver, tenant) == {1: "RETIRED", 2: "RETIRED", 3: "SERVING"}
    assert run("rollback", "--reason", "worse", "--json").json["number"] == 1
    assert states(driver, tenant) == {1: "SERVING", 2: "RETIRED", 3: "RETIRED"}


def test_what_cannot_be_gone_back_to_is_refused_with_the_reason(
    shared_installation: Installation,
    driver: Driver,
    tenant: str,
    files: Path,
    refused: Callable[..., str],
) -> None:
    assert "no former build" in refused("rollback", "--reason", "why")
    shared_installation.configure(tenant, **SPARSE)
    Driver(shared_installation, SliceLimits(documents=1)).run_once(tenant)
    assert "is building, and never answered" in refused("rollback", "--to", "2", "--reason", "why")
    assert "has no generation 9" in refused("rollback", "--to", "9", "--reason", "why")
    driver.sync(tenant)
    for column, value, reason in (
        ("recipe", None, "did not record its chunker"),
        ("embedder", {"provider": "deterministic", "dimensions": 9}, "is no longer available"),
        ("generation_key", "of another schema", "a different version of the chunker"),
    ):
        (former, _) = driver.session.catalog.generations.live(tenant)
        present = former.key if column == "generation_key" else getattr(former, column)
        change_row(driver, tenant, {column: value})
        assert reason in refused("rollback", "--reason", "why")
        change_row(driver, tenant, {column: present})
    assert serving(driver, tenant).number == 2


def change_row(driver: Driver, tenant: str, values: dict[str, Any]) -> None:
    """Change the catalog row of the first build."""
    which = (generations.c.tenant == tenant) & (generations.c.generation == 1)
    with driver.session.catalog.database.begin() as connection:
        connection.execute(update(generations).where(which).values(values))


def test_a_build_without_a_document_is_listed(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path, run: Run
) -> None:
    shared_installation.configure(tenant, **CHUNKED)
    with driver.locked(tenant) as ctx:
        assert open_active_builds(ctx).wanted.generation.number == 2
        assert build_generations_report(PLAIN, ctx) is not None
    [_, opened] = run("list", "--json").json["generations"]
    assert (opened["state"], opened["documents"], opened["planned"]) == ("BUILDING", 0, None)
    assert "BUILDING" in run("list").out


def test_a_build_whose_key_is_gone_is_not_gone_back_to(
    shared_installation: Installation,
    tenant: str,
    refused: Callable[..., str],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
    monkeypatch.setenv("KEY_OF_THE_FORMER", "a-key-for-tests")
    driver = Driver(shared_installation)
    with embedding_server() as server:
        embedder = {**remote(server), "api_key": "$KEY_OF_THE_FORMER"}
        folder = shared_installation.add_tenant(tenant, embedder=embedder)
        (folder / "1.md").write_text(prose("zebras"))
        driver.sync(tenant)
        shared_installation.configure(tenant, **FAST)
        driver.sync(tenant)
        monkeypatch.delenv("KEY_OF_THE_FORMER")
        assert "KEY_OF_THE_FORMER" in refused("rollback", "--reason", "why")
        assert driver.session.catalog.pins.find(tenant) is None
        monkeypatch.setenv("KEY_OF_THE_FORMER", "a-key-for-tests")
        run("rollback", "--reason", "why")
    assert serving(driver, tenant).number == 1


def test_a_build_is_discarded_unless_it_answers(
    shared_installation: Installation,
    driver: Driver,
    tenant: str,
    files: Path,
    run: Run,
    refused: Callable[..., str],
) -> None:
    shared_installation.configure(tenant, **CHUNKED)
    driver.sync(tenant)
    former = driver.session.catalog.generations.live(tenant)[0]
    assert "is serving and cannot be discarded" in refused("discard", "2")
    assert run("discard", "1", "--json").json["discarded"] == 1
    assert states(driver, tenant) == {2: "SERVING"}
    with driver.locked(tenant) as ctx:
        assert ctx.store.entries.count(former.index_name, ctx.owner(former)) == 0
    [receipt] = driver.session.catalog.receipts.all(tenant)
    assert (receipt.kind, receipt.rule, receipt.documents) == ("discard", "request", ())
    assert receipt.counts["index"]["builds"] == 1
    assert receipt.counts["index"]["entries"] > 0
    assert "no former build" in refused("rollback", "--reason", "why")


def test_former_builds_are_kept_for_the_days_of_their_tenant(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path
) -> None:
    shared_installation.configure(tenant, grace_days=2, **CHUNKED)
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        for hours, dropped in ((47, 0), (49, 1)):
            later = replace(ctx, clock=Clock(ahead=timedelta(hours=hours)))
            assert drop_old_generations(later) == dropped
    assert states(driver, tenant) == {2: "SERVING"}


def test_a_removal_that_was_interrupted_is_continued(
    shared_installation: Installation, driver: Driver, tenant: str, files: Path
) -> None:
    shared_installation.configure(tenant, **CHUNKED)
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        first = ctx.catalog.generations.live(tenant)[0]
        ctx.catalog.generations.begin_removal(ctx.ref, first)
    shared_installation.configure(tenant, chunker=None)
    driver.sync(tenant)  # but not this build, which is being removed
    assert states(driver, tenant) == {1: "REMOVING", 2: "RETIRED", 3: "SERVING"}
    with driver.locked(tenant) as ctx:
        assert drop_old_generations(ctx) == 1
    assert states(driver, tenant) == {2: "RETIRED", 3: "SERVING"}


@pytest.mark.parametrize("placement", ["shared", "dedicated"])
def test_a_search_of_a_build_that_is_discarded_meanwhile_is_answered_by_its_successor(
    shared_installation: Installation,
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
    placement: str,
) -> None:
    tenant = f"overtaken-{placement}"
    folder = shared_installation.add_tenant(tenant, index={"placement": placement}, **FAST)
    (folder / "1.md").write_text(prose("zebras"))
    driver.sync(tenant)

    def overtake() -> None:
        shared_installation.configure(tenant, index={"placement": "shared"}, **CHUNKED)
        driver.sync(tenant)
        with driver.locked(tenant) as ctx:
            drop_generation(ctx, ctx.catalog.generations.live(tenant)[0])

    at_first, moves = SearchStateReader.search_state, [overtake]

    async def overtaken(reader: SearchStateReader, *asked: Any, **said: Any) -> SearchState:
        state = await at_first(reader, *asked, **said)
        if moves:
            await to_thread.run_sync(moves.pop())
        return state

    session = shared_installation.session()
    with monkeypatch.context() as patched:
        patched.setattr(SearchStateReader, "search_state", overtaken)
        retriever = Retriever(session.catalog, session.store, session.embedders)
        answer = retriever.search(tenant, SearchRequest(query="zebras", mode="text"))
        retriever.close()
    assert answer.generation == 2
    assert {hit.uri for hit in answer.hits} == {"files/1.md"}
