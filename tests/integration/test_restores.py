"""A dump of Postgres is put back: what happened after it is neither deleted nor allowed again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from rag_assets.definitions import build_defs
from rag_assets.pipeline.erasure import purge
from tests.driving import Driver
from tests.dumps import dump, restore
from tests.installation import FAST, Installation
from tests.integration.test_uploads import BOATS, GULLS, SEALS, UploadTenant


@contextmanager
def put_back(installation: Installation, tmp_path: Path) -> Iterator[None]:
    """Dump the catalog before the block, and put the dump back after it."""
    url = installation.environment["DATABASE_URL"]
    file = dump(url, tmp_path / "catalog.dump")
    yield
    restore(url, file)


def compact(installation: Installation, driver: Driver) -> None:
    """Run the weekly job, two days after all uploads were made."""
    of_tenants = Path(driver.session.settings.blobs_url)
    before = time.time() - timedelta(days=2).total_seconds()
    for file in of_tenants.rglob("blobs/*/*"):
        os.utime(file, (before, before))
    job = build_defs().resolve_job_def("compact")
    assert job.execute_in_process(instance=driver.session.instance).success


def uploads_tenant(installation: Installation, driver: Driver, name: str) -> UploadTenant:
    sources = [{"name": "uploads", "type": "uploads"}]
    installation.add_tenant(name, **{**FAST, "sources": sources})
    tenant = UploadTenant(driver, installation, name)
    with tenant.within():
        return tenant


@pytest.fixture
def driver(installation: Installation) -> Driver:
    return Driver(installation)


def test_an_upload_after_the_dump_outlives_the_weekly_compaction(
    installation: Installation, driver: Driver, tmp_path: Path
) -> None:
    tenant = uploads_tenant(installation, driver, "acme")
    purged = tenant.add("seals.md", SEALS).upload
    tenant.add("boats.md", BOATS)
    tenant.sync()
    with put_back(installation, tmp_path):
        with tenant.within() as ctx:
            purge(ctx, [purged.id], by="a test")
        late = tenant.add("gulls.md", GULLS).upload
    compact(installation, driver)
    assert late.content_sha256 in tenant.blobs()
