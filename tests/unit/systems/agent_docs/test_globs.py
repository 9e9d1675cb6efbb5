"""Globs as in shells."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs import globs
from rag_assets.systems.agent_docs.globs import expand_patterns

FILES = (
    *("a.md", "B.md", ".hidden.md", "[x].md", "docs/a.md", "docs/deep/b.md", "docs/deep/er/c.md"),
    *("docs/.git/d.md", "docs/c.txt", "x/y.md/z.md", "ä.md", "docs/a-1.md", "docs/a-2.md"),
)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name in FILES:
        path = tmp_path / "base" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "base"


def paths(base: Path, *patterns: str) -> list[str]:
    return [file.path for file in expand_patterns(patterns, base).files]


@pytest.mark.skipif(shutil.which("bash") is None, reason="what bash finds is compared")
@pytest.mark.parametrize(
    "pattern",
    [
        *("*.md", "docs/*.md", "**/*.md", "docs/**/*.md", "docs/**", "?.md", "[ab].md", "[!a].md"),
        *("[^a].md", "[A-Z].md", "docs/a-[12].md", "[[]x].md", "*/*.md", "**/deep/*.md", "a.md"),
        *("docs/../a.md", "./docs/*.md", "docs//a.md", "nothing*", "ä.md", "**/**/c.md", "[x.md"),
    ],
)
def test_the_same_files_as_a_shell(base: Path, pattern: str) -> None:
    script = f'shopt -s globstar dotglob nullglob; for f in {pattern}; do echo "$f"; done'
    listed = subprocess.run(
        ["bash", "-c", script], cwd=base, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    wanted = {os.path.normpath(one) for one in listed if (base / one).is_file()}
    found = paths(base, pattern)
    assert set(found) == wanted
    assert found == sorted(found)


def test_each_file_once_in_the_order_of_the_patterns(base: Path) -> None:
    found = expand_patterns(["docs/a.md", "*.md", "docs/*.md", "no/*.md"], base)
    assert found.files[0].path == "docs/a.md"
    assert len(found.files) == len({file.path for file in found.files})
    assert found.empty == ("no/*.md",)


def test_absolute_patterns_and_those_of_the_home(base: Path, tmp_path: Path) -> None:
    assert paths(base, f"{base}/docs/*.txt") == ["docs/c.txt"]
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    (elsewhere / "o.md").write_text("o")
    found = expand_patterns([f"{elsewhere}/*.md", "~/other/*.md"], base, home=tmp_path)
    assert [file.path for file in found.files] == [f"{elsewhere}/o.md"]


def test_no_link_is_followed_out_of_the_base(base: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("s")
    (base / "docs" / "out").symlink_to(outside)
    (base / "docs" / "out.md").symlink_to(outside / "secret.md")
    (base / "docs" / "in.md").symlink_to(base / "a.md")
    (base / "docs" / "loop").symlink_to(base / "docs")
    (base / "docs" / "gone.md").symlink_to(base / "nothing")
    found = paths(base, "docs/**/*.md", "docs/out/*.md", "docs/out.md", "docs/*/*.md")
    assert "docs/in.md" in found
    assert not [one for one in found if "out" in one or "gone" in one]


def test_what_is_no_regular_file_is_left_out(base: Path) -> None:
    os.mkfifo(base / "pipe.md")
    assert "pipe.md" not in paths(base, "*.md")


def test_patterns_that_visit_too_much_are_refused(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(globs, "MAX_ENTRIES", 10)
    with pytest.raises(ConfigurationError, match="visit more than"):
        expand_patterns(["/**"], base)


def test_a_hostile_pattern_ends(base: Path) -> None:
    (base / ("a" * 200)).write_text("x")
    assert paths(base, "*a" * 60 + "b") == []
    assert "B.md" in paths(base, "**/" * 40 + "*.md")


def test_names_that_are_no_utf8_are_shown_escaped(base: Path) -> None:
    (base / os.fsdecode(b"caf\xe9.md")).write_text("text")
    (found,) = expand_patterns(["caf*.md"], base).files
    assert found.path == "caf\\udce9.md"
    assert Path(found.location).read_bytes() == b"text"
