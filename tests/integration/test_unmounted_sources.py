"""Documents whose folder is empty, unmounted or replaced with another folder."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_assets.checks.staleness import _find_lagging_at_sources
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.mounts import Mounts, with_mounts
from tests.repositories import MadeRepository


def write(folder: Path, *names: str, of: str = "one") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n\nThe keeper of {name} writes on disk {of}.\n")


def indexed(installation: Installation, tenant: str) -> set[str]:
    return {uri.removeprefix("files/") for uri, _, _ in installation.entries(tenant).values()}


def reason(driver: Driver, tenant: str) -> str:
    """Return why deletions of a tenant's only source are held back."""
    [sync] = driver.session.catalog.syncs.all(tenant).values()
    return sync.held_reason or ""


def moved(done: Any) -> dict[str, int]:
    return {kind: done[kind] for kind in ("added", "removed", "held") if done[kind]}


@pytest.mark.parametrize("documents", [1, 2, 20])
def test_the_documents_of_a_folder_that_was_emptied_are_kept(
    shared_installation: Installation, driver: Driver, documents: int
) -> None:
    tenant = f"emptied-{documents}"
    folder = shared_installation.add_tenant(tenant, **FAST)
    names = {f"{number}.md" for number in range(documents)}
    write(folder, *names)
    driver.sync(tenant)
    for name in names:
        (folder / name).unlink()
    for _ in range(2):
        assert moved(driver.sync(tenant)) == {"held": documents}
        assert indexed(shared_installation, tenant) == names
    assert str(folder) in reason(driver, tenant)
    assert moved(driver.sync(tenant, allow_deletes=True)) == {"removed": documents}
    assert indexed(shared_installation, tenant) == set()
    assert not reason(driver, tenant)
    write(folder, "new.md")
    assert moved(driver.sync(tenant)) == {"added": 1}


def test_the_documents_of_a_disk_that_is_not_mounted_are_kept(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "unmounted"
    folder = shared_installation.add_tenant(tenant, **FAST)
    # This file in the folder beneath keeps the listing from being empty.
    write(folder, "beneath.md")

    def work(mounts: Mounts) -> None:
        mounts.mount(folder)
        write(folder, "a.md", "b.md", "c/d.md")
        assert moved(driver.sync(tenant)) == {"added": 3}
        away = folder.with_name("away")
        mounts.move(folder, away)
        for _ in range(2):
            driver.sync(tenant)
            assert indexed(shared_installation, tenant) == {"a.md", "b.md", "c/d.md", "beneath.md"}
            assert "not the same folder as at the last listing" in reason(driver, tenant)
        mounts.move(away, folder)
        assert moved(driver.sync(tenant)) == {"removed": 1}
        assert indexed(shared_installation, tenant) == {"a.md", "b.md", "c/d.md"}
        assert not reason(driver, tenant)
        # On the same disk, deleted files are deleted documents.
        (folder / "a.md").unlink()
        assert moved(driver.sync(tenant)) == {"removed": 1}

    with_mounts(work)


def test_the_documents_of_a_disk_below_the_root_are_kept_alone(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "unmounted-below"
    folder = shared_installation.add_tenant(tenant, **FAST)
    write(folder, "a.md", "b.md", "disk-2/f.md")

    def work(mounts: Mounts) -> None:
        mounts.mount(folder / "disk")
        write(folder / "disk", "c.md", "d/e.md")
        driver.sync(tenant)
        mounts.unmount(folder / "disk")
        for name in ("a.md", "disk-2/f.md"):
            (folder / name).unlink()
        assert moved(driver.sync(tenant)) == {"removed": 2, "held": 2}
        assert indexed(shared_installation, tenant) == {"b.md", "disk/c.md", "disk/d/e.md"}
        assert str(folder / "disk") in reason(driver, tenant)
        assert moved(driver.sync(tenant)) == {"held": 2}
        # Its folder may be missing as well.
        (folder / "disk").rmdir()
        assert moved(driver.sync(tenant)) == {"held": 2}
        assert moved(driver.sync(tenant, allow_deletes=True)) == {"removed": 2}

    with_mounts(work)


def test_documents_are_kept_if_another_folder_is_at_the_place_of_theirs(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "replaced"
    folder = shared_installation.add_tenant(tenant, **FAST)
    write(folder, "a.md", "b.md", "c.md")
    driver.sync(tenant)
    other = folder.with_name("other")
    write(other, "a.md", "new.md", of="two")
    folder.rename(folder.with_name("former"))
    other.rename(folder)
    assert moved(driver.sync(tenant)) == {"added": 1, "held": 2}
    assert indexed(shared_installation, tenant) == {"a.md", "b.md", "c.md", "new.md"}
    assert moved(driver.sync(tenant, allow_deletes=True)) == {"removed": 2}
    # That folder is the source's own by now.
    (folder / "a.md").unlink()
    assert moved(driver.sync(tenant)) == {"removed": 1}


def test_repositories_and_patterns_are_held_back_as_well(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "other-kinds"
    folder = shared_installation.home.parent / "sources" / tenant
    write(folder / "docs", "a.md", "b.md")
    made = MadeRepository(folder / "code")
    made.commit({"c.py": "C = 1\n", "d.py": "D = 1\n"})
    sources = [
        {"name": "docs", "type": "globs", "base": str(folder / "docs"), "patterns": ["*.md"]},
        {"name": "code", "type": "git", "root": str(folder / "code")},
    ]
    shared_installation.add_tenant(tenant, **FAST, sources=sources)
    driver.sync(tenant)
    for name in ("a.md", "b.md"):
        (folder / "docs" / name).unlink()
    (folder / "code").rename(folder / "former")
    MadeRepository(folder / "code").commit({"c.py": "C = 1\n", "e.py": "E = 1\n"})
    for added in (1, 0):
        done = driver.sync(tenant)
        assert (done["added"], done["removed"], done["held"]) == (added, 0, 3)
    reasons = {
        sync.source: sync.held_reason for sync in driver.session.catalog.syncs.list_held(tenant)
    }
    assert str(folder / "docs") in (reasons["docs"] or "")
    assert f"{folder / 'code'} is not the same folder" in (reasons["code"] or "")
    (folder / "code").rename(folder / "other")
    (folder / "former").rename(folder / "code")
    # The repository is back, and its replacement is gone.
    assert moved(driver.sync(tenant)) == {"removed": 1, "held": 2}
    assert moved(driver.sync(tenant, allow_deletes=True)) == {"removed": 2}


def test_a_copy_of_a_folder_at_its_place_is_remembered(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "copied"
    folder = shared_installation.add_tenant(tenant, **FAST)
    write(folder, "a.md", "b.md", "c.md")
    driver.sync(tenant)
    shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)
    folder.with_name("copy").rename(folder)
    assert not moved(driver.sync(tenant))
    (folder / "a.md").unlink()
    assert moved(driver.sync(tenant)) == {"removed": 1}


def test_a_person_may_delete_all_files_but_the_last(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "one-by-one"
    folder = shared_installation.add_tenant(tenant, **FAST)
    write(folder, "a.md", "b.md", "c.md")
    driver.sync(tenant)
    for name in ("a.md", "b.md"):
        (folder / name).unlink()
        assert moved(driver.sync(tenant)) == {"removed": 1}
    (folder / "c.md").unlink()
    assert moved(driver.sync(tenant)) == {"held": 1}
    assert moved(driver.sync(tenant, allow_deletes=True)) == {"removed": 1}


def test_a_deletion_that_is_held_back_is_shown_by_every_command(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "shown"
    folder = shared_installation.add_tenant(tenant, **FAST)
    write(folder, "a.md")
    driver.sync(tenant)
    (folder / "a.md").unlink()
    command = shared_installation.command
    reason = f"no document is left in {folder}"
    plan = command("plan", tenant, "--json").json
    assert (plan["removed"], plan["held"]) == (0, 1)
    assert reason in plan["held_reasons"][0]
    assert reason in command("plan", tenant).out
    # The second sync has nothing to do, and reports it all the same.
    for number, nothing_to_do in enumerate((False, True)):
        synced = command("sync", tenant, *(("--json",) if number else ()))
        assert synced.code == 0
        assert reason in synced.err
        assert f"rag-assets sync {tenant} --allow-deletes" in synced.err
        if nothing_to_do:
            shown = synced.json
            assert (shown["nothing_to_do"], shown["held_deletions"]) == (True, 1)
    [held] = command("documents", tenant, "--json").json["held"]
    assert (held["source"], held["documents"]) == ("files", 1)
    assert reason in held["reason"]
    assert reason in command("documents", tenant).err
    [event] = driver.session.catalog.events.latest(tenant, kind="deletions_held", limit=1)
    assert reason in event.payload["reason"]
    with driver.locked(tenant) as ctx:
        rows = ctx.catalog.documents.all(tenant)
        behind = list(_find_lagging_at_sources(ctx, driver.scanner, rows, datetime.now(UTC)))
    assert [one.reason for one in behind] == ["held"]
    assert reason in behind[0].uri
    deleted = command("sync", tenant, "--allow-deletes", "--json")
    assert (deleted.json["held_deletions"], deleted.err) == (0, "")
    assert command("documents", tenant, "--json").json == {"documents": [], "held": []}
