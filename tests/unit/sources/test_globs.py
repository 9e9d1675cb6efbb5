"""The patterns mean what they mean to git, and no pattern can stall."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_assets.sources.globs import compile_gitignore, compile_globs, parse_rule
from rag_assets.sources.walk import GITIGNORE, Selection, Tally, walk_root

NAMES = st.sampled_from(
    ["a", "b", "ab", "aab", "a b", "b ", "a.md", "ab.md", "é", "[a]", "a\\", "-"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(
    [
        *("a", "b", "ab", "aab", ".md", "/", "/", "*", "*", "**", "**/", "/**", "/**/", "?", "é"),
        *("[ab]", "[!a]", "[a-b]", "[^-a]", "[]a]", "[[:alpha:]]", "[[:nope:]]", "[a", "[a/b]"),
        *("\\", "\\*", "\\/", " ", "\\ ", "!", "#", "[\\]]", "-"),
    ]
)
PATTERNS = st.tuples(
    st.sampled_from(["", "", "", "!", "/", "**/"]), st.lists(PIECES, max_size=5).map("".join)
).map("".join)
GITIGNORES = st.lists(PATTERNS, max_size=5).map("\n".join)


def _make(root: Path, paths: set[str]) -> None:
    for path in sorted(paths):
        target = root / path
        if any(parent.is_file() for parent in target.parents) or target.is_dir():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("x")


def _kept_by_git(root: Path) -> set[str]:
    """Files git would take: all but those it ignores, by themselves or with a folder."""
    found = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others"]
        + ["--exclude-per-directory=.gitignore"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    return {name.decode() for name in found.stdout.split(b"\0") if name}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trees")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    paths=st.sets(PATHS, min_size=1, max_size=12),
    ignores=st.dictionaries(
        st.sampled_from(["", "a", "b", "a/b", "ab"]), GITIGNORES, min_size=1, max_size=3
    ),
)
def test_listing_keeps_what_git_keeps(work: Path, paths: set[str], ignores: dict[str, str]) -> None:
    import shutil

    root = work / "tree"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    subprocess.run(["git", "init", "-q", "--template="], cwd=root, check=True)
    _make(root, paths)
    for folder, content in ignores.items():
        if (root / folder).is_dir():
            (root / folder / GITIGNORE).write_text(content, encoding="utf-8", newline="")
    selection = Selection.of(include=["**"], exclude=[], gitignore=True)
    listed = {path for path, _ in walk_root(root, selection, Tally())}
    assert listed == _kept_by_git(root)
