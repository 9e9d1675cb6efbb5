"""The time since which the oldest record of a workspace has been waiting."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from rag_assets.ingest.sources.records import RecordsSource
from rag_assets.pipeline.listing import list_documents
from rag_assets.storage.catalog.documents.model import Failure
from rag_assets.storage.catalog.tables import documents, pages, source_records
from rag_assets.storage.catalog.tenants.settings import rag_settings
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace


class Waits:
    """A workspace with a stepwise clock, and the time since which each record waits.

    A step sets all times of the workspace back, so that tests need not sleep.
    """

    STEP = 1_000
    TIMES = (
        *(documents.c[name] for name in ("changed_at", "updated_at", "waiting_since")),
        *(source_records.c[name] for name in ("changed_at", "waiting_since")),
        *(pages.c.updated_at, rag_settings.c.updated_at),
    )

    def __init__(self, site: Site) -> None:
        self.site, self.now = site, 0
        self.since: dict[str, int] = {}

    def step(self) -> None:
        self.now += 1
        back = timedelta(seconds=self.STEP)
        with self.site.catalog.database.begin() as connection:
            for column in self.TIMES:
                connection.execute(
                    update(column.table)
                    .where(column.table.c.tenant == self.site.id)
                    .values({column.name: column - back})
                )

    def begins(self, *names: str) -> None:
        """Let records begin to wait now, unless they already wait."""
        for name in names:
            self.since.setdefault(name, self.now)
        self.is_told()

    def ends(self, *names: str) -> None:
        for name in names or [*self.since]:
            self.since.pop(name, None)
        self.is_told()

    def is_told(self) -> None:
        told = self.site.status()["oldest_wait_seconds"]
        if not self.since:
            assert told is None
            return
        oldest = (self.now - min(self.since.values())) * self.STEP
        assert oldest <= told < oldest + self.STEP / 2, (told, self.since, self.now)

    def list(self) -> None:
        """List all pushed records, without indexing."""
        driver = self.site.driver
        with driver.locked(self.site.id) as ctx:
            list_documents(ctx, driver.scanner)


@pytest.fixture(scope="module")
def site(shared_installation: Installation) -> Iterator[Site]:
    with workspace(shared_installation, "waits") as made:
        for name in ("p-1", "p-2"):
            made.grant(name)
            made.put("page", name, {"title": f"Of {name}", "blocks": [_block(name)]})
        yield made


@pytest.fixture
def waits(site: Site) -> Waits:
    site.sync()
    made = Waits(site)
    made.is_told()
    made.step()
    return made


def test_a_wait_begins_with_the_first_push_and_ends_when_it_is_found(waits: Waits) -> None:
    site = waits.site

    def pushed(name: str, words: str) -> None:
        site.put("page", name, {"title": f"Of {name}", "blocks": [_block(words)]})

    pushed("p-2", "Badgers at night")
    waits.begins("p-2")
    waits.step()
    # If pushed again, it has been waiting since the first push; so has one that was never listed.
    pushed("p-2", "Badgers by day")
    pushed("p-1", "Otters by day")
    waits.begins("p-2", "p-1")
    waits.step()
    waits.list()
    waits.is_told()
    waits.step()
    # A push after the listing waits separately, once the listed version is found.
    pushed("p-2", "Badgers in the morning")
    waits.is_told()
    waits.ends("p-1")
    waits.step()
    site.sync()
    waits.ends()
    pushed("p-2", "Badgers at noon")
    waits.begins("p-2")
    site.sync()
    waits.ends()


def test_a_record_that_is_pushed_while_it_is_listed_waits_since_that_push(
    waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = waits.site
    page = {"title": "Of p-1", "blocks": [_block("Otters at night")]}
    site.put("page", "p-1", page)
    waits.begins("p-1")
    waits.step()
    later = {"title": "Of p-1", "blocks": [_block("Otters at dawn")]}

    def listed_and_pushed(source: RecordsSource, *given: Any, **named: Any) -> Any:
        found = list(original(source, *given, **named))
        site.put("page", "p-1", later)
        return iter(found)

    original = RecordsSource.list
    monkeypatch.setattr(RecordsSource, "list", listed_and_pushed)
    waits.list()
    monkeypatch.setattr(RecordsSource, "list", original)
    waits.is_told()
    with site.catalog.database.begin() as connection:
        of_page = select(documents.c.revision, source_records.c.revision).where(
            documents.c.tenant == site.id,
            documents.c.document_id == source_records.c.document_id,
            source_records.c.source_id == "p-1",
        )
        listed, pushed = connection.execute(of_page).one()
        assert listed != pushed
        # The listed version is found.
        found = update(documents).where(documents.c.tenant == site.id).values(status="READY")
        connection.execute(found)
    waits.since = {"p-1": waits.now}
    waits.is_told()
    site.sync()
    waits.ends()


def test_a_wait_for_what_was_asked_for_again_goes_on_through_listings_and_failures(
    waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = waits.site
    everything = {"p-1", "p-2"}
    assert site.send("POST", "/rag/reindex", {"scope": "workspace"}).status_code == 202
    waits.begins(*everything)
    waits.step()
    waits.list()
    waits.is_told()
    waits.step()
    assert site.send("POST", "/rag/reindex", {"scope": "workspace"}).status_code == 202
    waits.is_told()
    # It is deferred, as for a provider's batch, and listed again.
    with site.catalog.database.begin() as connection:
        rows = connection.execute(
            select(documents.c.document_id, documents.c.document_key).where(
                documents.c.tenant == site.id, documents.c.status == "PROCESSING"
            )
        ).all()
    again = datetime.now(UTC) + timedelta(hours=1)
    failures = [Failure(id_, key, "later", "queued", again) for id_, key in rows]
    site.catalog.quarantine.defer(
        site.catalog.tenants.get(site.id).ref, failures, config_key="a key"
    )
    waits.step()
    waits.list()
    waits.is_told()
    waits.step()
    site.sync()
    waits.ends()


def test_what_leaves_and_comes_back_waits_since_then(waits: Waits) -> None:
    site = waits.site
    database = {"kind": "database"}
    for name in ("first", "second"):
        site.send("PUT", f"/rag/tree/{name}", database)
        site.put(
            "db_row", f"r-{name}", {"database_uuid": name, "values": [_value("City", f"In {name}")]}
        )
    site.sync()
    waits.is_told()
    waits.step()
    # Each of two pages has its own time.
    site.send("PUT", "/rag/tree/first", {**database, "archived": True})
    waits.begins("first")
    waits.step()
    site.send("PUT", "/rag/tree/second", {**database, "archived": True})
    waits.begins("second")
    waits.step()
    site.send("PUT", "/rag/tree/first", database)
    # It was restored before it was removed, and has been waiting since then.
    waits.since["first"] = waits.now
    waits.is_told()
    site.sync()
    waits.ends()
    waits.step()
    site.send("PUT", "/rag/tree/second", database)
    waits.begins("second")
    waits.step()
    waits.list()
    waits.is_told()
    site.sync()
    waits.ends()


def test_a_comment_waits_since_other_days_take_it_out_or_bring_it_back(waits: Waits) -> None:
    site = waits.site
    lately = datetime.now(UTC) - timedelta(days=3)
    comment = {"page_uuid": "p-1", "text": "Done so.", "resolved_at": lately.isoformat()}
    site.put("comment", "c-wait", comment)
    site.sync()
    waits.step()
    site.send("PATCH", "/rag/settings", {"resolved_comment_days": 2})
    waits.begins("c-wait")
    waits.step()
    site.send("PATCH", "/rag/settings", {"vector_backend": "elasticsearch"})
    waits.is_told()
    site.sync()
    waits.ends()
    waits.step()
    site.installation.configure(site.id, workspace={"resolved_comment_days": 40})
    site.send("PATCH", "/rag/settings", {"resolved_comment_days": None, "vector_backend": None})
    waits.begins("c-wait")
    site.sync()
    waits.ends()
    site.installation.configure(site.id, workspace=None)
    site.sync()
    # A deleted record waits to be removed.
    waits.step()
    site.send("DELETE", "/rag/records/comment/c-wait")
    waits.begins("c-wait")
    waits.step()
    waits.is_told()
    site.sync()
    waits.ends()


def test_the_nightly_comparison_queues_since_then(waits: Waits) -> None:
    site = waits.site
    body = {"title": "Of p-2", "blocks": [_block("Badgers sleep")]}
    site.put("page", "p-2", body | {"updated_at": "2026-01-01T00:00:00Z"})
    site.sync()
    waits.step()
    assert site.put("page", "p-2", body | {"updated_at": "2026-02-01T00:00:00Z"}) == "unchanged"
    waits.is_told()
    waits.step()
    ref = site.catalog.tenants.get(site.id).ref
    assert site.catalog.records.renew_stale(ref) == 1
    waits.begins("p-2")
    site.sync()
    waits.ends()


def _block(text: str) -> dict[str, str]:
    return {"block_id": "b", "type": "paragraph", "text": text}


def _value(name: str, value_text: str) -> dict[str, str]:
    return {"name": name, "value_text": value_text}
