import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.files import FilesSource
from rag_assets.ingest.sources.model import ListedDocument
from rag_assets.pipeline import source_plans
from rag_assets.pipeline.source_listing import compute_settings_key
from rag_assets.pipeline.source_plans import SourcePlan, plan_sources
from rag_assets.tenants.model import Tenant
from tests.installation import FAST
from tests.unit.sensors.test_due import sync


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the source of each listing."""
    seen: list[str] = []
    former = FilesSource.list

    def list_files(source: FilesSource) -> Iterator[ListedDocument]:
        seen.append(source.name)
        return former(source)

    monkeypatch.setattr(FilesSource, "list", list_files)
    return seen


def plan_source(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    age_seconds: float,
    pending: bool = True,
    changed: bool = False,
    reuse_listings: bool | None = None,
) -> SourcePlan:
    """Plan a source whose last listing took one second and started this long ago."""
    monkeypatch.setattr(source_plans, "is_any_document_pending", lambda _: pending)
    (folder / "files").mkdir()
    source = {"name": "files", "type": "files", "root": str(folder / "files")}
    ctx = MagicMock(tenant=Tenant.from_config({"id": "acme", **FAST, "sources": [source]}))
    ctx.settings = Settings(folder)
    ctx.has_changed.return_value = changed
    settings = compute_settings_key(ctx.tenant, ctx.tenant.sources[0])
    last = sync(
        listing_digest=f"0-{settings[:8]}",
        listed_at_ns=time.time_ns() - int(age_seconds * 1e9),
        listing_seconds=1.0,
    )
    ctx.catalog.syncs.all.return_value = {"files": last}
    ctx.catalog.documents.stream.return_value = []
    [plan] = plan_sources(ctx, relist=False, reuse_listings=reuse_listings)
    return plan


@pytest.mark.parametrize(("age_seconds", "changed"), [(45.0, False), (8.0, True)])
def test_plan_sources_while_documents_wait_reuses_recent_listing(
    tmp_path: Path,
    listings: list[str],
    monkeypatch: pytest.MonkeyPatch,
    age_seconds: float,
    changed: bool,
) -> None:
    plan = plan_source(tmp_path, monkeypatch, age_seconds=age_seconds, changed=changed)
    assert not listings
    assert plan.seconds is None, "the recorded duration stays"


@pytest.mark.parametrize(
    ("age_seconds", "changed", "pending"),
    [(55.0, False, True), (15.0, True, True), (5.0, False, False), (-5.0, False, True)],
)
def test_plan_sources_with_old_listing_or_no_waiting_document_lists(
    tmp_path: Path,
    listings: list[str],
    monkeypatch: pytest.MonkeyPatch,
    age_seconds: float,
    changed: bool,
    pending: bool,
) -> None:
    plan = plan_source(
        tmp_path, monkeypatch, age_seconds=age_seconds, changed=changed, pending=pending
    )
    assert listings == ["files"]
    assert plan.seconds is not None


@pytest.mark.parametrize("reuse_listings", [False, True])
def test_plan_sources_lists_as_its_caller_decides(
    tmp_path: Path, listings: list[str], monkeypatch: pytest.MonkeyPatch, reuse_listings: bool
) -> None:
    age_seconds = 500.0 if reuse_listings else 5.0
    plan_source(tmp_path, monkeypatch, age_seconds=age_seconds, reuse_listings=reuse_listings)
    assert bool(listings) is not reuse_listings
