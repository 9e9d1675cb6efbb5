"""A disk or share that does not respond delays only its own source, for a limited time."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from rag_assets.ingest.sources import disk
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.aging import write_old
from tests.mounts import can_mount, hung_mount


@pytest.fixture
def tenant(shared_installation: Installation, tmp_path: Path, tenant: str) -> str:
    """Create a tenant with two folders, `share` and `disk`, with one page in each."""
    sources = []
    for name in ("share", "disk"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "page.md").write_text(f"# Page\n\nThe {name} holds it.\n")
        sources.append({"name": name, "type": "files", "root": str(folder)})
    shared_installation.add_tenant(tenant, **FAST, sources=sources)
    shared_installation.synced(tenant)
    return tenant


@pytest.mark.long
@pytest.mark.skipif(not can_mount(), reason="needs the right to mount")
def test_a_share_that_hangs_holds_up_no_other_source(
    shared_installation: Installation,
    tenant: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(disk, "LOCATE_SECONDS", 1.0)
    (tmp_path / "disk" / "new.md").write_text("# New\n\nA heron stands in the reeds.\n")
    with hung_mount(tmp_path / "share"):
        began = time.monotonic()
        done = shared_installation.command("sync", tenant)
        took_seconds = time.monotonic() - began
    assert took_seconds < 30
    assert shared_installation.search(tenant, "heron")[0].uri == "disk/new.md"
    assert "share/page.md" in {hit.uri for hit in shared_installation.search(tenant, "share holds")}
    assert (
        f"source share: the folder {str(tmp_path / 'share')!r} did not answer for 1 s" in done.err
    )


@pytest.mark.long
@pytest.mark.skipif(not can_mount(), reason="needs the right to mount")
def test_a_signal_ends_a_sync_that_waits_for_a_share(
    shared_installation: Installation, tenant: str, tmp_path: Path
) -> None:
    with hung_mount(tmp_path / "share"):
        sync = shared_installation.start("sync", tenant, RAG_ASSETS_FORK_SERVER="0")
        with pytest.raises(subprocess.TimeoutExpired):
            sync.wait(8)  # it is waiting by then
        sync.send_signal(signal.SIGTERM)
        began = time.monotonic()
        sync.communicate(timeout=15)
        assert time.monotonic() - began < 5
        assert sync.returncode != 0
    shared_installation.synced(tenant)


def test_a_file_that_cannot_be_read_to_its_end_is_tried_again(
    tenant: str, tmp_path: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_old(tmp_path / "share" / "late.md", "# Page\n\nA heron stands in the reeds.\n")
    reads, may_end = 0, threading.Event()
    opened = disk.open_regular

    def open_late(name: str, folder: int | None) -> int | None:
        nonlocal reads
        reads += name == "late.md"
        if name == "late.md" and reads == 2:  # the listing has read it once
            may_end.wait()
        return opened(name, folder)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "open_regular", open_late)
        patched.setattr(disk, "READ_SECONDS", 5.0)
        driver.run_once(tenant)
    may_end.set()
    catalog = driver.session.catalog
    assert reads == 2
    [document] = [d for d in catalog.documents.all(tenant) if d.status == "FAILED"]
    assert document.uri == "share/late.md"
    assert document.error_kind == "source-unavailable"
    assert "did not answer" in (document.error_message or "")
    assert document.retry_at is not None
