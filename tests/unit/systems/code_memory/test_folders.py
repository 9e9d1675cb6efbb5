"""Which changes of a repository the change watcher notices."""

from __future__ import annotations

from pathlib import Path

from rag_assets.runtime.watched_folders import TenantSources, find_sources
from tests.unit.runtime.test_watched_folders import record


def test_edits_of_a_worktree_are_noticed_and_commits_are_not(tmp_path: Path) -> None:
    folder = str(tmp_path / "shop")
    for ref, told in (("worktree", True), ("HEAD", False), ("main", False)):
        source = {"name": "code", "type": "git", "root": folder, "ref": ref}
        found = find_sources(record("a", sources=[source]), tmp_path)
        assert found == TenantSources((folder,), is_reported=told)
