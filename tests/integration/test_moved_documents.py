"""Moved files answer at their former path until they are found at the new one."""

from __future__ import annotations

import pytest

from rag_assets.pipeline import publishing
from rag_assets.pipeline.drift import inspect_index
from tests.driving import Driver, sync_before_verification
from tests.installation import FAST, Installation

FILES = 12


def text(number: int) -> str:
    return f"# Page {number}\n\nThe harbour master of quay {number} keeps a lantern.\n"


def found(installation: Installation, tenant: str) -> set[str]:
    hits = installation.search(tenant, "harbour master", mode="text", top_k=50)
    # Equal texts are one hit, with all paths.
    return {uri.removeprefix("files/") for hit in hits for uri in (hit.uri, *hit.also)}


def test_a_folder_that_is_renamed_answers_at_any_moment(
    shared_installation: Installation, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = "moved-folder"
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "old").mkdir()
    for number in range(FILES):
        (folder / "old" / f"{number}.md").write_text(text(number))
    (folder / "gone.md").write_text(text(99))
    driver.sync(tenant)
    old = {f"old/{number}.md" for number in range(FILES)}
    new = {f"new/{number}.md" for number in range(FILES)}
    assert found(shared_installation, tenant) == {*old, "gone.md"}
    (folder / "old").rename(folder / "new")
    (folder / "gone.md").unlink()

    before: list[set[str]] = []
    publish = publishing._publish_versions

    def watched(*given: object) -> tuple[int, int]:
        before.append(found(shared_installation, tenant))
        done = publish(*given)  # type: ignore[arg-type]
        before.append(found(shared_installation, tenant))
        return done

    monkeypatch.setattr(publishing, "_publish_versions", watched)
    done = driver.sync(tenant)
    assert (done["added"], done["removed"], done["embedded"]) == (FILES, FILES + 1, 0)
    assert before[0] == old, "what is gone for good is gone at once"
    assert before[1] >= new
    assert found(shared_installation, tenant) == new
    with driver.locked(tenant) as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))
        assert {one.uri for one in ctx.catalog.documents.all(tenant)} == {f"files/{n}" for n in new}


def test_a_search_during_which_a_move_ends_finds_the_new_location(
    shared_installation: Installation, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = "moved-meanwhile"
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "a.md").write_text(text(1))
    driver.sync(tenant)
    (folder / "a.md").rename(folder / "b.md")
    syncs = sync_before_verification(monkeypatch, driver, tenant)
    assert found(shared_installation, tenant) == {"b.md"}
    assert syncs == [tenant]


def test_a_run_that_died_before_it_ended_the_moves_makes_the_tenant_due(
    shared_installation: Installation, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = "moved-killed"
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "a.md").write_text(text(1))
    driver.sync(tenant)
    (folder / "a.md").rename(folder / "b.md")

    def killed(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("rag_assets.storage.catalog.documents.removals.MovedDocuments.end", killed)
        with pytest.raises(KeyboardInterrupt):
            driver.sync(tenant)
    assert found(shared_installation, tenant) == {"a.md", "b.md"}
    assert not shared_installation.synced(tenant)["raw_documents"]["removed"], "it was told before"
    assert found(shared_installation, tenant) == {"b.md"}


def test_what_moves_on_or_comes_back_before_it_was_found_is_followed(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "moved-on"
    folder = shared_installation.add_tenant(tenant, **FAST)
    for name in ("a", "b"):
        (folder / f"{name}.md").write_text(text(ord(name)))
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        from rag_assets.pipeline.listing import list_documents

        for name in ("a", "b"):
            (folder / f"{name}.md").rename(folder / f"{name}2.md")
        list_documents(ctx, driver.scanner)
        assert found(shared_installation, tenant) == {"a.md", "b.md"}
        (folder / "a2.md").rename(folder / "a3.md")
        (folder / "b2.md").rename(folder / "b.md")
        list_documents(ctx, driver.scanner)
        assert found(shared_installation, tenant) == {"a.md", "b.md"}
    driver.sync(tenant)
    assert found(shared_installation, tenant) == {"a3.md", "b.md"}
    with driver.locked(tenant) as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))
