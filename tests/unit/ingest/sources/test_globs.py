"""Patterns have the same meaning as in Git, and no pattern can stall a listing."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag_assets.ingest.sources.globs import (
    MAX_GITIGNORE_BYTES,
    MAX_WILDCARDS,
    compile_gitignore,
    compile_globs,
)
from rag_assets.ingest.sources.walk import GITIGNORE, Selection, walk_root

NAMES = st.sampled_from(
    ["a", "b", "ab", "aab", "a b", "b ", "a.md", "ab.md", "é", "[a]", "a\\", "-", "#a", "!a"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(
    [
        *("a", "b", "ab", "aab", ".md", "/", "/", "*", "*", "**", "**/", "/**", "/**/", "?", "é"),
        *("[ab]", "[!a]", "[a-b]", "[^-a]", "[]a]", "[[:alpha:]]", "[[:nope:]]", "[a", "[a/b]"),
        *("\\", "\\*", "\\/", " ", "\\ ", "!", "#", "[\\]]", "-", "[b-a]", "[a-]", "[[a]"),
    ]
)
PATTERNS = st.tuples(
    st.sampled_from(["", "", "", "!", "!", "/", "**/"]),
    st.lists(PIECES, max_size=5).map("".join),
    st.sampled_from(["", "", "/", " ", "\r"]),
).map("".join)
GITIGNORES = st.lists(PATTERNS, max_size=6).map("\n".join)
FOLDERS = st.sampled_from(["", "a", "b", "a/b", "ab"])


def make(root: Path, paths: set[str]) -> None:
    for path in sorted(paths):
        target = root / path
        if target.exists() or any(parent.is_file() for parent in target.parents):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()


def kept_by_git(root: Path) -> set[str]:
    """Return the files that Git would not ignore."""
    everything = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }
    ignored = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "check-ignore", "-z", "--stdin"],
        cwd=root,
        input="\0".join(sorted(everything)).encode(),
        capture_output=True,
        check=False,  # 1 says that nothing is ignored
    )
    assert ignored.returncode in (0, 1), ignored.stderr
    return everything - set(ignored.stdout.decode().split("\0"))


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trees")
    subprocess.run(["git", "init", "-q", "--template="], cwd=root, check=True)
    return root


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    paths=st.sets(PATHS, min_size=1, max_size=12),
    ignores=st.dictionaries(FOLDERS, GITIGNORES, min_size=1, max_size=3),
)
@example(paths={"a/a.md", "b/a.md"}, ignores={"": "*.md\n!a/"})
@example(paths={"a/b/a.md", "a/ab.md"}, ignores={"": "*.md", "a": "!a.md", "a/b": "a.md"})
@example(paths={"a/b/a.md", "ab"}, ignores={"": "a**/b\n!ab"})
def test_listings_keep_what_git_does(trees: Path, paths: set[str], ignores: dict[str, str]) -> None:
    for left in trees.iterdir():
        if left.is_dir() and left.name != ".git":
            shutil.rmtree(left)
        elif left.is_file():
            left.unlink()
    make(trees, paths)
    for folder, content in ignores.items():
        if (trees / folder).is_dir():
            (trees / folder / GITIGNORE).write_text(content, encoding="utf-8", newline="")
    selection = Selection.from_globs(include=["**"], exclude=[], gitignore=True)
    listed = [path for path, _ in walk_root(trees, selection)]
    assert len(listed) == len(set(listed))
    assert set(listed) == kept_by_git(trees)


def test_a_byte_order_mark_is_no_part_of_the_first_pattern() -> None:
    rules = compile_gitignore(b"\xef\xbb\xbf*.tmp\n")
    assert rules.decide(b"", b"a.tmp", is_folder=False) is True


@pytest.mark.parametrize(
    "pattern",
    [
        b"*a*a*a*a*a*a*a*a*a*a*a*a*b",
        b"**/*a*a/**/*a*b/**/*a*a*c",
        b"/*a*a*a*a*/*a*a*a*a*/*a*a*a*b",
        b"**/?*[ab]*?*[ab]*?*c/**/d",
    ],
)
def test_no_pattern_takes_long(pattern: bytes) -> None:
    rules = compile_gitignore(pattern)
    deep = (b"a" * 250 + b"/") * 15
    start = time.thread_time()
    assert rules.decide(deep, b"a" * 250, is_folder=False) is None
    assert rules.decide(b"a/" * 2000, b"a", is_folder=False) is None
    assert time.thread_time() - start < 0.5


def test_a_gitignore_that_would_make_every_file_slow_is_refused() -> None:
    literals = b"".join(b"name%d\n*.x%d\n" % (n, n) for n in range(MAX_WILDCARDS))
    assert compile_gitignore(literals).decide(b"", b"name7", is_folder=False) is True
    with pytest.raises(ValueError, match="wildcards"):
        compile_gitignore(b"".join(b"n?%d\n" % n for n in range(MAX_WILDCARDS + 1)))
    with pytest.raises(ValueError, match="bytes"):
        compile_gitignore(b"#" * (MAX_GITIGNORE_BYTES + 1))


def test_the_last_rule_wins_whatever_its_kind() -> None:
    rules = compile_gitignore(b"*.md\n!keep.md\nk?ep.md\n!/docs/keep.md\n")
    assert rules.decide(b"", b"other.md", is_folder=False) is True
    assert rules.decide(b"", b"keep.md", is_folder=False) is True
    assert rules.decide(b"docs/", b"keep.md", is_folder=False) is False
    assert rules.decide(b"docs/", b"keep.txt", is_folder=False) is None
    later_literal = compile_gitignore(b"k?ep.md\n!keep.md\n")
    assert later_literal.decide(b"", b"keep.md", is_folder=False) is False
    assert later_literal.decide(b"", b"kelp.md", is_folder=False) is None
    assert later_literal.decide(b"", b"kxep.md", is_folder=False) is True


def test_configured_globs_ignore_case_and_must_be_usable() -> None:
    rules = compile_globs(["**/*.pdf", "Docs/?nnex.txt"], ignore_case=True)
    assert rules.decide(b"in/", b"SCAN.PDF", is_folder=False) is True
    assert rules.decide(b"docs/", b"ANNEX.TXT", is_folder=False) is True
    assert rules.decide(b"other/", b"ANNEX.TXT", is_folder=False) is None
    for unusable in ("", "/", "docs/[a", "docs\\", "!"):
        with pytest.raises(ValueError, match="is empty or malformed"):
            compile_globs([unusable], ignore_case=True)
