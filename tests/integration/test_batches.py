"""A backfill through a provider's batch API costs half, and delays no other work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import dagster as dg
import pytest
from sqlalchemy import update

from rag_assets.declarations import PLAIN
from rag_assets.pipeline.batches import poll_batches
from rag_assets.sensors.batches import embedding_batches_sensor
from rag_assets.sensors.source_files import source_files_sensor
from rag_assets.storage.catalog.accounts.tables import embedding_batches
from rag_assets.storage.catalog.accounts.usage import today
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.documents.status import NEVER
from rag_assets.storage.catalog.tables import documents as documents_table
from tests.batch_server import BatchServer
from tests.driving import Driver, tenant_named_after
from tests.installation import Installation
from tests.sensor_resources import sensor_resources

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*SpooledTemporaryFile:pytest.PytestUnraisableExceptionWarning"
)


class Backfill:
    """A tenant with more texts than batch_above, and its batches."""

    def __init__(self, driver: Driver, server: BatchServer, tenant: str, folder: Path) -> None:
        self.driver = driver
        self.server = server
        self.tenant = tenant
        self.folder = folder

    def write(self, *numbers: int) -> None:
        for number in numbers:
            (self.folder / f"{number}.md").write_text(f"# Page {number}\n\nIt is page {number}.\n")

    def poll(self) -> list[str]:
        """Poll the batches as the sensor does, without its delays."""
        catalog = self.driver.session.catalog
        return poll_batches(
            catalog, self.driver.session.embedders, catalog.batches.list_open(self.tenant)
        )

    def sync(self) -> int:
        """Sync; return the number of texts that were embedded immediately."""
        return self.driver.sync(self.tenant)["embedded"]

    def forget_waits(self) -> None:
        """Make all pending retries due."""
        past = datetime.now(UTC) - timedelta(days=1)
        for table, column in ((documents_table, "retry_at"), (embedding_batches, "ended_at")):
            with self.driver.session.catalog.database.begin() as connection:
                connection.execute(
                    update(table)
                    .where(table.c.tenant == self.tenant, table.c[column] < NEVER)
                    .values({column: past})
                )

    @property
    def documents(self) -> list[Document]:
        return self.driver.session.catalog.documents.all(self.tenant)

    def statuses(self) -> dict[str, int]:
        return self.driver.session.catalog.documents.count_by_status(self.tenant)


def embedder(server: BatchServer, key: str) -> dict[str, Any]:
    return {
        "provider": "openai",
        "base_url": server.base_url,
        "api_key": key,
        "batch_above": 4,
        "price": {"per_million": 1_000, "batch_per_million": 500},
    }


@pytest.fixture
def backfill(
    shared_installation: Installation,
    llmock: LLMock,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Backfill:
    """Sync six documents of one text each once, with a limit of four immediate texts."""
    server = BatchServer(llmock, monkeypatch)
    monkeypatch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", urlsplit(server.base_url).netloc)
    monkeypatch.setenv("BATCH_TEST_KEY", "sk-of-the-tenant")
    tenant = tenant_named_after(request)
    folder = shared_installation.add_tenant(tenant, embedder=embedder(server, "$BATCH_TEST_KEY"))
    found = Backfill(Driver(shared_installation), server, tenant, folder)
    found.write(*range(6))
    return found


def test_a_backfill_waits_for_its_batch_and_costs_half(backfill: Backfill) -> None:
    assert backfill.sync() == 0
    assert [len(texts) for texts in backfill.server.texts] == [6]
    assert backfill.statuses() == {"PROCESSING": 6}
    reason = backfill.documents[0].error_message or ""
    assert reason.startswith("its texts are in batch batch_")
    assert "takes up to 24 hours" in reason
    assert backfill.poll() == []
    assert backfill.sync() == 0
    assert len(backfill.server.batches) == 1
    backfill.server.finish()
    assert backfill.poll() == []
    assert backfill.sync() == 0
    assert backfill.statuses() == {"READY": 6}
    [row] = backfill.driver.session.catalog.usage.rows(today(), backfill.tenant)
    assert (row.used.texts, row.used.tokens) == (6, row.used.batch_tokens)
    assert row.used.cost == pytest.approx(row.used.tokens / 2_000)
    assert backfill.driver.session.catalog.batches.list_open(backfill.tenant) == []


def test_edits_and_removals_pass_by_and_no_text_is_sent_twice(backfill: Backfill) -> None:
    backfill.sync()
    (backfill.folder / "copy.md").write_text((backfill.folder / "0.md").read_text())
    (backfill.folder / "1.md").unlink()
    backfill.write(7)
    assert backfill.sync() == 1
    standing = {document.uri: document.status for document in backfill.documents}
    assert standing["files/7.md"] == "READY"
    assert standing["files/copy.md"] == "PROCESSING"
    assert "files/1.md" not in standing
    backfill.server.finish()
    backfill.poll()
    assert backfill.sync() == 0
    assert set(backfill.statuses()) == {"READY", "DELETED"}
    assert len(backfill.server.batches) == 1


@pytest.mark.parametrize("taken", [True, False], ids=["taken", "not-taken"])
def test_a_submission_that_was_broken_off_is_found_by_its_tag(
    backfill: Backfill, taken: bool
) -> None:
    backfill.sync()
    # The state after a kill between the provider's answer and our record of it, or before its
    # answer.
    with backfill.driver.session.catalog.database.begin() as connection:
        connection.execute(
            update(embedding_batches)
            .where(embedding_batches.c.tenant == backfill.tenant)
            .values(state="SUBMITTING", batch_id=None, **({} if taken else {"tag": "never-sent"}))
        )
    backfill.driver.session.catalog.quarantine.release(
        backfill.driver.session.get_active_tenant(backfill.tenant).ref
    )
    backfill.sync()
    # A provider's list may lack new batches: it is asked twice before anything is sent again.
    assert len(backfill.server.batches) == 1
    if not taken:
        assert backfill.statuses() == {"FAILED": 6}
        age_batches(backfill)
        backfill.forget_waits()
        backfill.sync()
        assert len(backfill.server.batches) == 2
    backfill.server.finish()
    backfill.poll()
    backfill.sync()
    assert backfill.statuses() == {"READY": 6}
    [row] = backfill.driver.session.catalog.usage.rows(today(), backfill.tenant)
    assert row.used.texts == 6


def test_a_failed_batch_is_reported_and_submitted_again_later(backfill: Backfill) -> None:
    backfill.sync()
    backfill.server.end("failed", errors={"data": [{"code": "token_limit_exceeded"}]})
    backfill.poll()
    backfill.sync()
    assert backfill.statuses() == {"FAILED": 6}
    assert "token_limit_exceeded" in (backfill.documents[0].error_message or "")
    assert len(backfill.server.batches) == 1
    backfill.forget_waits()
    backfill.sync()
    assert len(backfill.server.batches) == 2
    assert backfill.statuses() == {"PROCESSING": 6}


def test_few_texts_left_by_a_batch_are_sent_at_once(backfill: Backfill) -> None:
    def refuse_two(lines: list[dict[str, Any]]) -> list[Any]:
        return lines[:4]

    finish_with(backfill, refuse_two)
    assert backfill.sync() == 2
    assert backfill.statuses() == {"READY": 6}


def test_vectors_of_another_dimension_reach_neither_lake_nor_index(backfill: Backfill) -> None:
    def shorten(lines: list[dict[str, Any]]) -> list[Any]:
        for line in lines:
            line["response"]["body"]["data"][0]["embedding"] = [1.0, 0.0]
        return lines

    finish_with(backfill, shorten)
    backfill.sync()
    assert backfill.statuses() == {"FAILED": 6}
    assert {document.retry_at for document in backfill.documents} == {NEVER}
    assert "results of a batch are not usable" in (backfill.documents[0].error_message or "")
    with backfill.driver.locked(backfill.tenant) as ctx:
        assert ctx.lake.read_vector_hashes(ctx.embedder.embedder_id) == set()


def test_a_cap_holds_back_what_a_batch_would_cost(
    backfill: Backfill, shared_installation: Installation
) -> None:
    backfill.sync()
    catalog = backfill.driver.session.catalog
    promised = catalog.batches.open_cost(backfill.tenant)
    assert promised > 0
    assert catalog.usage.read_spending(backfill.tenant, today()).run == pytest.approx(promised)
    # Reserved costs count before anything is charged.
    shared_installation.configure(backfill.tenant, caps={"per_day": promised * 1.5})
    backfill.write(*range(10, 16))
    backfill.sync()
    assert len(backfill.server.batches) == 1
    assert backfill.statuses() == {"PROCESSING": 6, "FAILED": 6}
    [failed] = {d.error_message for d in backfill.documents if d.status == "FAILED"}
    assert "the cap of" in (failed or "")
    shared_installation.configure(backfill.tenant, caps={"per_day": promised * 3})
    catalog.quarantine.retry_transient_failures(catalog.tenants.get(backfill.tenant).ref)
    backfill.sync()
    assert len(backfill.server.batches) == 2
    assert backfill.statuses() == {"PROCESSING": 12}


def test_a_sync_reports_what_waits_and_the_sensor_makes_it_due(
    backfill: Backfill, shared_installation: Installation
) -> None:
    planned = shared_installation.command("plan", backfill.tenant, "--json")
    assert (planned.json["batch"], planned.json["per_million"]) == (True, 500)
    assert planned.json["cost"] == pytest.approx(planned.json["tokens"] / 2_000)
    first = shared_installation.command("sync", backfill.tenant)
    assert first.code == 0
    assert "6 documents wait for a batch at the provider" in first.out
    again = shared_installation.command("sync", backfill.tenant, "--json")
    assert (again.code, again.json["waiting_for_batches"]) == (0, 6)
    assert len(backfill.server.batches) == 1
    backfill.server.finish()
    with (
        shared_installation.session() as session,
        dg.build_sensor_context(instance=session.instance, resources=sensor_resources()) as context,
    ):
        # A batch is polled a minute after its submission, not immediately.
        embedding_batches_sensor.build(PLAIN)(context)
        assert session.catalog.quarantine.count_deferred(backfill.tenant) == 6
        age_batches(backfill)
        skipped = embedding_batches_sensor.build(PLAIN)(context)
        assert isinstance(skipped, dg.SkipReason)
        assert session.catalog.quarantine.count_deferred(backfill.tenant) == 0
        due = source_files_sensor.build(PLAIN)(context)
    assert backfill.tenant in {request.partition_key for request in due.run_requests}
    fetched = shared_installation.command("sync", backfill.tenant, "--json")
    assert fetched.json["stages"]["embeddings"]["collected"] == 6
    assert fetched.json["waiting_for_batches"] == 0
    assert backfill.statuses() == {"READY": 6}


def test_results_that_are_gone_are_made_again(backfill: Backfill) -> None:
    finish_with(backfill, lambda lines: lines)
    backfill.server.lose_results()
    backfill.write(7)
    assert backfill.sync() == 0
    assert "the results of the batch were deleted" in (backfill.documents[0].error_message or "")
    assert backfill.driver.session.catalog.batches.open_cost(backfill.tenant) == 0
    backfill.forget_waits()
    backfill.sync()
    assert len(backfill.server.batches) == 2
    assert backfill.statuses() == {"PROCESSING": 7}


def test_results_that_cannot_be_fetched_just_now_keep_only_their_own_documents(
    backfill: Backfill,
) -> None:
    finish_with(backfill, lambda lines: lines)
    backfill.write(7)
    with backfill.server.refusing_results():
        assert backfill.sync() == 1
    assert backfill.statuses() == {"PROCESSING": 6, "READY": 1}
    waiting = [d for d in backfill.documents if d.status == "PROCESSING"]
    assert all("its last poll failed" in (d.error_message or "") for d in waiting)
    assert min(d.retry_at for d in waiting if d.retry_at) > datetime.now(UTC)
    backfill.poll()
    backfill.sync()
    assert backfill.statuses() == {"READY": 7}


def test_a_batch_is_polled_with_the_present_key(
    backfill: Backfill, shared_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    backfill.sync()
    monkeypatch.delenv("BATCH_TEST_KEY")
    assert "BATCH_TEST_KEY" in " ".join(backfill.poll())
    monkeypatch.setenv("ANOTHER_KEY", "sk-of-the-tenant-too")
    moved = embedder(backfill.server, "$ANOTHER_KEY")
    shared_installation.configure(backfill.tenant, embedder=moved)
    backfill.sync()
    backfill.server.finish()
    assert backfill.poll() == []
    backfill.sync()
    assert backfill.statuses() == {"READY": 6}


def test_a_malformed_response_is_reported_and_concerns_one_batch(backfill: Backfill) -> None:
    backfill.sync()
    age_batches(backfill)
    backfill.server.batches[0]["status"] = ["x"]
    [trouble] = backfill.poll()
    assert trouble.startswith(f"{backfill.tenant}: ")
    [batch] = backfill.driver.session.catalog.batches.list_open(backfill.tenant)
    assert datetime.now(UTC) - batch.polled_at < timedelta(minutes=1)


def test_a_late_batch_is_waited_for_and_abandoned_in_the_end(backfill: Backfill) -> None:
    backfill.sync()
    clock = backfill.driver.session.catalog.clock
    for hours, clock_jumped, statuses in (
        (30, False, {"PROCESSING": 6}),
        (49, True, {"PROCESSING": 6}),
        (49, False, {"FAILED": 6}),
    ):
        past = datetime.now(UTC) - timedelta(hours=hours)
        with backfill.driver.session.catalog.database.begin() as connection:
            connection.execute(update(embedding_batches).values(submitted_at=past))
        clock.replace(past if clock_jumped else datetime.now(UTC), None)
        backfill.forget_waits()
        backfill.poll()
        backfill.sync()
        assert backfill.statuses() == statuses
        assert all(d.retry_at and d.retry_at > datetime.now(UTC) for d in backfill.documents)
    assert "no result within 48 hours" in (backfill.documents[0].error_message or "")


def test_a_bad_vector_of_a_batch_concerns_its_text_alone(backfill: Backfill) -> None:
    def shorten_last(lines: list[dict[str, Any]]) -> list[Any]:
        lines[-1]["response"]["body"]["data"][0]["embedding"] = [1.0, 0.0]
        return lines

    finish_with(backfill, shorten_last)
    backfill.sync()
    assert backfill.statuses() == {"READY": 6}
    [row] = backfill.driver.session.catalog.usage.rows(today(), backfill.tenant)
    # The text is sent again outside of a batch, and both requests are paid for.
    assert row.used.texts == 6
    assert 0 < row.used.batch_tokens < row.used.tokens


def age_batches(backfill: Backfill) -> None:
    past = datetime.now(UTC) - timedelta(hours=1)
    with backfill.driver.session.catalog.database.begin() as connection:
        connection.execute(update(embedding_batches).values(polled_at=past))


def finish_with(backfill: Backfill, change: Callable[[list[dict[str, Any]]], list[Any]]) -> None:
    """Let the first batch end with changed results."""
    backfill.sync()
    backfill.server.finish()
    backfill.server.change_results(change)
    backfill.poll()
