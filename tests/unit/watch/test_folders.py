"""Folders to watch, and whose they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.watch.folders import outermost, tenants_of, watched_folders


def record(id_: str, *roots: Path | str, state: Any = "ACTIVE", **fields: Any) -> TenantRecord:
    sources = [
        {"name": f"s{n}", "type": "files", "root": str(root)} for n, root in enumerate(roots)
    ]
    config = {"id": id_, "profile": "documents", "sources": sources, **fields}
    return TenantRecord(id_, 1, state, "file", config)


def test_active_tenants_existing_folders_are_watched(tmp_path: Path) -> None:
    for name in ("one", "two", "shared"):
        (tmp_path / name).mkdir()
    records = [
        record("a", tmp_path / "one", tmp_path / "shared"),
        record("b", "two", tmp_path / "shared"),
        record("gone", tmp_path / "missing"),
        record("off", tmp_path / "one", state="DISABLED"),
        record("broken", tmp_path / "one", chunker={"max_tokens": "many"}),
    ]
    assert watched_folders(records, tmp_path) == {
        tmp_path / "one": frozenset("a"),
        tmp_path / "two": frozenset("b"),
        tmp_path / "shared": frozenset("ab"),
    }


def test_a_path_belongs_to_every_tenant_above_it(tmp_path: Path) -> None:
    folders = {tmp_path: frozenset({"all"}), tmp_path / "docs": frozenset({"docs"})}
    deep = str(tmp_path / "docs" / "a" / "b.md")
    assert tenants_of([deep], folders) == {"all", "docs"}
    assert tenants_of([str(tmp_path / "other.md")], folders) == {"all"}
    assert tenants_of([str(tmp_path / "docs")], folders) == {"all", "docs"}, "the folder itself"
    assert tenants_of([str(tmp_path.parent / "elsewhere.md")], folders) == set()
    assert tenants_of([str(tmp_path / "docs2" / "a.md")], folders) == {"all"}


def test_what_lies_in_a_watched_folder_is_not_watched_twice(tmp_path: Path) -> None:
    folders = [tmp_path / "b" / "c", tmp_path / "a", tmp_path / "b", tmp_path / "b2"]
    assert outermost(folders) == [tmp_path / "a", tmp_path / "b", tmp_path / "b2"]
