"""Watched folders, and their tenants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rag_assets.runtime.watched_folders import (
    TenantSources,
    find_sources,
    find_tenants,
    map_readers,
    select_outermost,
)
from rag_assets.storage.catalog.tenants.table import TenantRecord


def record(id_: str, *roots: Path | str, **fields: Any) -> TenantRecord:
    sources = [
        {"name": f"s{n}", "type": "files", "root": str(root)} for n, root in enumerate(roots)
    ]
    config = {"id": id_, "profile": "documents", "sources": sources, **fields}
    return TenantRecord(id_, 1, "ACTIVE", "file", config)


def test_the_folders_of_a_tenant_and_whether_all_its_changes_are_told_of(tmp_path: Path) -> None:
    both = record("a", tmp_path / "one", "two")
    expected = TenantSources((str(tmp_path / "one"), str(tmp_path / "two")), is_reported=True)
    assert find_sources(both, tmp_path) == expected
    pushed = record("b", sources=[{"name": "pages", "type": "records"}])
    assert find_sources(pushed, tmp_path) == TenantSources((), is_reported=True)
    broken = record("c", tmp_path / "one", chunker={"max_tokens": "many"})
    assert find_sources(broken, tmp_path) == TenantSources((), is_reported=False)


def test_tenants_share_folders_by_whatever_path(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shared")
    readers = map_readers(
        {
            "a": TenantSources((str(tmp_path / "shared"), str(tmp_path / "one"))),
            "b": TenantSources((str(tmp_path / "link"),)),
        }
    )
    assert readers == {
        str(tmp_path / "shared"): frozenset("ab"),
        str(tmp_path / "one"): frozenset("a"),
    }


def test_a_path_belongs_to_every_tenant_above_it() -> None:
    folders = {"/srv": frozenset({"all"}), "/srv/docs": frozenset({"docs"})}
    assert find_tenants(["/srv/docs/a/b.md"], folders) == {"all", "docs"}
    assert find_tenants(["/srv/other.md"], folders) == {"all"}
    assert find_tenants(["/srv/docs"], folders) == {"all", "docs"}, "the folder itself"
    assert find_tenants(["/elsewhere.md", "/"], folders) == set()
    assert find_tenants(["/srv/docs2/a.md"], folders) == {"all"}
    assert find_tenants(["/any"], {"/": frozenset({"root"})}) == {"root"}


def test_what_lies_in_a_watched_folder_is_not_watched_twice() -> None:
    folders = ["/r/b/c", "/r/a", "/r/b", "/r/b2", "/r/b-c", "/r/b/c/d"]
    assert sorted(select_outermost(folders)) == ["/r/a", "/r/b", "/r/b-c", "/r/b2"]
    assert select_outermost(["/r", "/"]) == ["/"]
