"""Sources whose folder is a link, is read-only or closed, or grows while it is listed."""

from __future__ import annotations

import os
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.disk import DOCUMENTS_AT_ONCE
from rag_assets.ingest.sources.files import FilesConfig, FilesSource
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.mounts import Mounts, with_mounts
from tests.repositories import MadeRepository


def write(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(f"# {name}\n\nThe keeper of {name} writes.\n")


def indexed(installation: Installation, tenant: str) -> set[str]:
    return {uri for uri, _, _ in installation.entries(tenant).values()}


def test_a_root_that_is_swapped_for_a_link_fails_alone_and_loses_nothing(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "swapped"
    folder = shared_installation.home.parent / "sources" / tenant
    sources = [
        {"name": name, "type": "files", "root": str(folder / name)} for name in ("one", "two")
    ]
    for name in ("one", "two", "foreign"):
        write(folder / name, f"{name}.md")
    shared_installation.add_tenant(tenant, **FAST, sources=sources)
    driver.sync(tenant)
    (folder / "one").rename(folder / "former")
    (folder / "one").symlink_to(folder / "foreign")
    write(folder / "two", "new.md")
    result = shared_installation.sync(tenant)
    assert result.error is not None
    assert f"leads to '{folder / 'foreign'}'" in result.error.message
    assert indexed(shared_installation, tenant) == {"one/one.md", "two/two.md", "two/new.md"}
    # Its operator may ask for this.
    sources[0]["follow_root_link"] = True  # type: ignore[assignment]
    shared_installation.configure(tenant, sources=sources)
    driver.sync(tenant)
    assert "one/foreign.md" in indexed(shared_installation, tenant)


def test_read_only_sources_are_synced(shared_installation: Installation, driver: Driver) -> None:
    tenant = "read-only"
    disk = shared_installation.home.parent / "sources" / tenant
    sources = [
        {"name": "files", "type": "files", "root": str(disk / "files")},
        {"name": "code", "type": "git", "root": str(disk / "code")},
        {"name": "docs", "type": "globs", "base": str(disk / "docs"), "patterns": ["*.md"]},
    ]
    shared_installation.add_tenant(tenant, **FAST, sources=sources)

    def work(mounts: Mounts) -> None:
        mounts.mount(disk)
        write(disk / "files", "a.md")
        write(disk / "docs", "c.md")
        MadeRepository(disk / "code").commit({"b.py": "def lantern(): ...\n"})
        mounts.make_read_only(disk)
        with pytest.raises(OSError, match="Read-only"):
            write(disk / "files", "b.md")
        driver.sync(tenant)
        assert indexed(shared_installation, tenant) == {"files/a.md", "code/b.py", "docs/c.md"}
        assert driver.sync(tenant)["upserted"] == 0

    with_mounts(work)


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.long
def test_files_that_appear_while_a_folder_is_listed_come_with_the_next_listing(
    tmp_path: Path, *, in_memory: bool
) -> None:
    """50,000 files appear faster than they are listed, also in nested folders."""

    def work(mounts: Mounts | None) -> None:
        root = tmp_path / "docs"
        if mounts is not None:
            mounts.mount(root)
        present = {f"{folder}/{number}.md" for folder in "abc" for number in range(100)}
        for path in present:
            write((root / path).parent, (root / path).name)
        source = FilesSource(FilesConfig(name="docs", root=root))
        made, stop = [0], threading.Event()

        def fill() -> None:
            for number in range(50_000):
                if stop.is_set():
                    return
                folder = root / "abcz"[number % 4]
                folder.mkdir(exist_ok=True)
                os.close(os.open(folder / f"new-{number}.md", os.O_CREAT | os.O_WRONLY))
                made[0] += 1

        filler = threading.Thread(target=fill)
        filler.start()
        listings = 0
        try:
            while filler.is_alive():
                while filler.is_alive() and not made[0]:
                    time.sleep(0.001)
                begun = time.monotonic()
                found = [document.path for document in source.list()]
                assert time.monotonic() - begun < 60
                assert len(found) == len(set(found)), "none is listed twice"
                assert present <= set(found), "what was there is complete"
                listings += 1
        finally:
            stop.set()
            filler.join()
        assert listings > 1
        tracemalloc.start()
        whole = sum(1 for _ in source.list())
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert whole == len(present) + made[0] == 50_300
        assert peak < 50 << 20

    if in_memory:
        with_mounts(work)
    else:
        work(None)


def test_a_listing_during_which_a_folder_is_unmounted_fails(tmp_path: Path) -> None:
    def work(mounts: Mounts) -> None:
        root = tmp_path / "docs"
        write(root, "beneath.md")
        mounts.mount(root)
        write(root, *(f"{number}.md" for number in range(DOCUMENTS_AT_ONCE + 1)))
        listing = FilesSource(FilesConfig(name="docs", root=root)).list()
        next(listing)
        mounts.move(root, tmp_path / "away")
        with pytest.raises(ListingFailed, match="replaced while it was listed"):
            list(listing)

    with_mounts(work)
