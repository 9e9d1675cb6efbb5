"""A sync of many slices lists its files once, and still indexes what changes meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_assets.cli.follow import TenantFollower
from rag_assets.cli.runs import Runner
from rag_assets.ingest.sources.files import FilesSource
from rag_assets.ingest.sources.model import ListedDocument
from rag_assets.pipeline import source_plans
from rag_assets.pipeline.context import SliceLimits
from rag_assets.pipeline.source_plans import (
    plan_sources,
)
from rag_assets.resources import workbench
from tests.installation import FAST, Installation

FILES, IN_A_SLICE = 8, 3


LONG_AGO = 1_600_000_000


def write(folder: Path, number: int, words: str) -> None:
    path = folder / f"{number}.md"
    path.write_text(f"# Page {number}\n\nPage {number} has {words}.\n")
    os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the source of each listing; slices are small, and listings are expensive."""
    seen: list[str] = []
    former = FilesSource.list

    def listing(source: FilesSource) -> Iterator[ListedDocument]:
        seen.append(source.name)
        return former(source)

    monkeypatch.setattr(FilesSource, "list", listing)
    monkeypatch.setattr(workbench, "SliceLimits", lambda *_: SliceLimits(IN_A_SLICE))
    monkeypatch.setattr(source_plans, "WORK_PER_LISTING", 1e6)
    monkeypatch.setattr(source_plans, "WORK_PER_LISTING_OF_CHANGES", 1e6)
    return seen


@pytest.fixture
def folder(installation: Installation) -> Path:
    folder = installation.add_tenant("import", **FAST)
    for number in range(FILES):
        write(folder, number, "words of yesterday")
    return folder


def before_run(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> None:
    """Call a function before the run with this number starts."""
    former, runs = Runner.run, [0]

    def run(*arguments: Any, **options: Any) -> Any:
        runs[0] += 1
        if runs[0] == number:
            act()
        return former(*arguments, **options)

    monkeypatch.setattr(Runner, "run", run)


def test_sync_of_several_slices_lists_once(
    installation: Installation, folder: Path, listings: list[str]
) -> None:
    result = installation.sync("import")
    assert result.error is None
    assert len(result.runs) == -(-FILES // IN_A_SLICE)
    counts = result.as_json()["stages"]
    assert (counts["raw_documents"]["added"], counts["raw_documents"]["documents"]) == (FILES,) * 2
    assert installation.session().catalog.documents.count_by_status("import") == {"READY": FILES}
    assert len(listings) == 1
    listings.clear()
    assert installation.sync("import").nothing_to_do
    assert len(listings) == 1


def test_runs_started_by_dagster_share_one_listing_until_no_document_waits(
    installation: Installation, folder: Path, listings: list[str]
) -> None:
    session = installation.session()
    session.reconcile()
    for _ in range(-(-FILES // IN_A_SLICE)):
        assert session.runner.run("sync_tenant", "import").failure is None
    assert session.catalog.documents.count_by_status("import") == {"READY": FILES}
    assert len(listings) == 1
    write(folder, FILES, "words of a late file")
    assert session.runner.run("sync_tenant", "import").failure is None
    assert session.catalog.documents.count_by_status("import") == {"READY": FILES + 1}
    assert len(listings) == 2


def test_files_changed_and_deleted_during_a_sync_are_indexed_by_it(
    installation: Installation,
    folder: Path,
    listings: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def change_all() -> None:
        for number in range(FILES - 1):
            write(folder, number, "other words of today")
        (folder / f"{FILES - 1}.md").unlink()

    before_run(monkeypatch, 2, change_all)
    result = installation.sync("import")
    assert result.error is None
    assert len(listings) == 2, "the first run lists, and a run that follows the changed files"
    session = installation.session()
    assert session.catalog.documents.count_by_status("import") == {"READY": FILES - 1, "DELETED": 1}
    texts = [hit.text for hit in installation.search("import", "page words", top_k=20)]
    assert len(texts) == FILES - 1
    assert all("of today" in text for text in texts)


def test_change_watcher_lists_for_its_first_slice_and_to_compare_at_the_end(
    installation: Installation, folder: Path, listings: list[str]
) -> None:
    session = installation.session()
    session.reconcile()
    follower = TenantFollower(session)
    assert follower.follow("import", is_changed=True) == 0.0
    assert len(listings) == 2, "to find the change, and to record it"
    assert follower.follow("import", is_changed=False) == 0.0
    assert follower.follow("import", is_changed=False) == 0.0
    assert len(listings) == 2
    write(folder, FILES, "words of a late file")
    assert follower.follow("import", is_changed=False) is None
    assert len(listings) == 4, "the late file is found by the comparison after the last slice"
    assert installation.session().catalog.documents.count_by_status("import") == {
        "READY": FILES + 1
    }


def test_change_of_settings_during_a_sync_lists_again(
    installation: Installation,
    folder: Path,
    listings: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before_run(monkeypatch, 2, lambda: installation.configure("import", access={"scope": "board"}))
    former = Runner.run

    def run(runner: Runner, *arguments: Any, **options: Any) -> Any:
        installation.session().reconcile()
        return former(runner, *arguments, **options)

    monkeypatch.setattr(Runner, "run", run)
    assert installation.sync("import").error is None
    assert len(listings) == 2
    documents = installation.session().catalog.documents.all("import")
    assert {document.access_scope for document in documents} == {"board"}


def test_held_deletions_are_compared_again(
    installation: Installation, folder: Path, listings: list[str]
) -> None:
    assert installation.sync("import").error is None
    for path in folder.iterdir():
        path.unlink()
    assert installation.sync("import").held == FILES
    ctx = installation.context("import")
    listings.clear()
    [plan] = plan_sources(ctx, relist=False, reuse_listings=True)
    assert (len(plan.deletions.held), len(listings)) == (FILES, 1)
