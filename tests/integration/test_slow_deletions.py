"""An accident that removes documents so slowly that no single listing looks suspicious."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from rag_assets.checks.deletions import build_verdict
from rag_assets.common.errors import DeletionsHeld
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.storage.catalog.records.manifests import ManifestLine
from rag_assets.storage.catalog.records.model import PushedRecord
from rag_assets.storage.catalog.tables import events
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.test_unmounted_sources import indexed, moved, reason, write
from tests.records import put_record

_FILES = 80
_STEP = 10


def filled(installation: Installation, tenant: str) -> tuple[Path, list[Path]]:
    folder = installation.add_tenant(tenant, **FAST)
    names = [f"{number:02}.md" for number in range(_FILES)]
    write(folder, *names)
    return folder, [folder / name for name in names]


def remove(files: list[Path], count: int = _STEP) -> None:
    for _ in range(count):
        files.pop().unlink()


def let_pass(driver: Driver, tenant: str, hours: float) -> None:
    """Make all events of a tenant older, including the times in them."""
    by = timedelta(hours=hours)
    of_tenant = events.c.tenant == tenant
    with driver.session.catalog.database.begin() as connection:
        connection.execute(update(events).where(of_tenant).values(at=events.c.at - by))
        for id_, payload in connection.execute(select(events.c.id, events.c.payload)).all():
            if "since" in payload:
                since = datetime.fromisoformat(payload["since"]) - by
                connection.execute(
                    update(events)
                    .where(of_tenant, events.c.id == id_)
                    .values(payload={**payload, "since": since.isoformat()})
                )


def test_documents_that_leave_in_small_portions_are_kept_from_the_limit_on(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "slow"
    _, files = filled(shared_installation, tenant)
    driver.sync(tenant)
    for _ in range(2):
        remove(files)
        assert moved(driver.sync(tenant)) == {"removed": _STEP}
    remove(files)
    assert moved(driver.sync(tenant)) == {"held": _STEP}
    assert len(indexed(shared_installation, tenant)) == _FILES - 2 * _STEP
    assert reason(driver, tenant) == "30 of 80 documents disappeared within 24 hours"
    # It stays so until a decision, however much time passes.
    let_pass(driver, tenant, hours=25)
    assert moved(driver.sync(tenant)) == {"held": _STEP}
    let_pass(driver, tenant, hours=25)
    remove(files, 1)
    assert moved(driver.sync(tenant)) == {"held": _STEP + 1}

    [held] = driver.session.catalog.departures.list_held(tenant)
    assert (held.documents, build_verdict([held]).passed) == (_STEP + 1, False)
    for arguments in (("sync", tenant), ("status",)):
        output = shared_installation.command(*arguments)
        assert "11 documents of slow disappeared" in output.out + output.err, arguments
        assert "rag-assets sync slow --allow-deletes" in output.out + output.err

    assert moved(driver.sync(tenant, allow_deletes=True)) == {"removed": _STEP + 1}
    assert not driver.session.catalog.departures.list_held(tenant)
    # The operator's consent has expired.
    remove(files)
    assert moved(driver.sync(tenant)) == {"removed": _STEP}


def test_consent_before_anything_is_held_ends_the_window(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "confirmed"
    _, files = filled(shared_installation, tenant)
    driver.sync(tenant)
    remove(files, 2 * _STEP)
    driver.sync(tenant)
    driver.sync(tenant, allow_deletes=True)
    remove(files)
    assert moved(driver.sync(tenant)) == {"removed": _STEP}


def test_losses_of_another_day_are_not_counted(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "other-day"
    folder, files = filled(shared_installation, tenant)
    driver.sync(tenant)
    remove(files, 2 * _STEP)
    driver.sync(tenant)
    let_pass(driver, tenant, hours=25)
    remove(files)
    assert moved(driver.sync(tenant)) == {"removed": _STEP}
    # Restored and moved documents are not losses of this listing.
    for file in files[:_STEP]:
        file.rename(folder / f"moved-{file.name}")
    assert driver.sync(tenant)["held"] == 0


def test_documents_that_come_back_end_the_hold(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "back-again"
    folder, files = filled(shared_installation, tenant)
    driver.sync(tenant)
    remove(files, 2 * _STEP)
    driver.sync(tenant)
    remove(files)
    assert moved(driver.sync(tenant)) == {"held": _STEP}
    write(folder, *(f"{number:02}.md" for number in range(_FILES - 3 * _STEP, _FILES - 2 * _STEP)))
    assert not moved(driver.sync(tenant))
    assert not driver.session.catalog.departures.list_held(tenant)


def test_a_source_may_have_each_listing_judged_alone(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "rotating"
    folder = shared_installation.home.parent / "sources" / tenant
    names = [f"{number:02}.md" for number in range(_FILES)]
    write(folder, *names)
    source = {"name": "files", "type": "files", "root": str(folder), "deletion_window_hours": 0}
    shared_installation.add_tenant(tenant, **FAST, sources=[source])
    driver.sync(tenant)
    files = [folder / name for name in names]
    for _ in range(3):
        remove(files)
        assert moved(driver.sync(tenant)) == {"removed": _STEP}


def test_manifests_of_records_are_judged_together(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant, source = "manifests", "records"
    shared_installation.add_tenant(tenant, **FAST, sources=[{"name": source, "type": "records"}])
    driver.session.reconcile()
    catalog = driver.session.catalog
    ref = catalog.tenants.get(tenant).ref
    for number in range(_FILES):
        text = f"Record {number}."
        record = PushedRecord(source, "note", f"{number}", text, "text/markdown", SourceMetadata())
        put_record(catalog.records, ref, record, scope="public")

    def apply(count: int, *, allow_deletes: bool = False) -> int:
        lines = [ManifestLine("note", f"{number}") for number in range(count)]
        return catalog.record_manifests.compare(
            ref, source, lines, remove_extra=True, allow_deletes=allow_deletes
        ).removed

    assert apply(70) == apply(60) == _STEP
    for _ in range(2):
        with pytest.raises(
            DeletionsHeld, match="would remove 10 of 60 records, after 20 within 24"
        ):
            apply(50)
        let_pass(driver, tenant, hours=25)
    [held] = catalog.departures.list_held(tenant)
    assert (held.documents, held.is_manifest) == (_STEP, True)
    output = shared_installation.command("sync", tenant)
    assert "10 documents of manifests disappeared" in output.err
    # A later manifest contains the records again.
    assert apply(60) == 0
    assert not catalog.departures.list_held(tenant)
    assert apply(50, allow_deletes=True) == _STEP
    assert apply(40) == _STEP
