"""Globs of files, and the source that lists them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.errors import (
    ConfigurationError,
    DocumentRejected,
    DocumentTooLarge,
    DocumentVanished,
    ListingFailed,
)
from rag_assets.ingest.parsing.media_types import MARKDOWN, PLAIN
from rag_assets.ingest.sources.disk import Roots
from rag_assets.ingest.sources.kinds import SourceContext
from rag_assets.ingest.sources.model import DocumentSource
from rag_assets.runtime.watched_folders import TenantSources, find_sources
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.agent_docs import globs
from rag_assets.systems.agent_docs.globs import GLOBS, GlobsConfig, GlobsSource, expand_patterns
from rag_assets.tenants.model import Tenant

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


def test_absolute_patterns_and_those_of_the_home(base: Path, tmp_path: Path) -> None:
    assert paths(base, f"{base}/docs/*.txt") == ["docs/c.txt"]
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    (elsewhere / "o.md").write_text("o")
    found = expand_patterns([f"{elsewhere}/*.md", "~/other/*.md"], base, home=tmp_path)
    assert [file.path for file in found.files] == [f"{elsewhere}/o.md"]


def test_patterns_of_too_many_files_are_refused(
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


def source(base: Path, *patterns: str, **context: Any) -> DocumentSource:
    config = GlobsConfig(name="docs", base=base, patterns=patterns, agent="guide")
    return GLOBS.build(config, SourceContext(Path("/"), **context))


def listed_paths(of: DocumentSource) -> list[str]:
    return [document.path for document in of.list()]


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The text of {name}.\n")


def test_files_are_listed_once_in_the_order_of_patterns(tmp_path: Path) -> None:
    write(tmp_path, "b.md", "a.md", ".hidden.md", "deep/er/c.md", "README", "A.MD")
    write(tmp_path.parent / "elsewhere", "far.md")
    found = source(tmp_path, "b*", "*.md", "**/c.md", "README", f"{tmp_path.parent}/elsewhere/*")
    listed = list(found.list())
    far = str(tmp_path.parent / "elsewhere/far.md")
    assert [one.path for one in listed] == [
        *("b.md", ".hidden.md", "a.md", "deep/er/c.md", "README"),
        far,
    ]
    assert [one.media_type for one in listed[-3:]] == [MARKDOWN, PLAIN, MARKDOWN]
    facts = (tmp_path / "b.md").stat()
    assert listed[0].facts.inode == facts.st_ino
    assert (listed[0].mtime_ns, listed[0].ctime_ns) == (facts.st_mtime_ns, facts.st_ctime_ns)
    for one in listed:
        assert found.read(one.path, max_bytes=100).startswith(b"The text of")


def test_no_link_leads_out_of_the_base(tmp_path: Path) -> None:
    base, outside = tmp_path / "base", tmp_path / "outside"
    write(base, "in/a.md")
    write(outside, "secret.md")
    (base / "out.md").symlink_to(outside / "secret.md")
    (base / "folder").symlink_to(outside)
    (base / "same.md").symlink_to(base / "in/a.md")
    (base / "loop").symlink_to(base / "in")
    (base / "gone.md").symlink_to(base / "nothing")
    found = source(base, "**/*.md", "folder/*.md", "folder/secret.md", "out.md", "*/*.md")
    assert listed_paths(found) == ["in/a.md", "same.md", "loop/a.md"]
    assert found.read("same.md", max_bytes=100) == b"The text of in/a.md.\n"
    for path in ("out.md", "folder/secret.md", "../outside/secret.md", str(outside / "secret.md")):
        with pytest.raises(DocumentVanished):
            found.read(path, max_bytes=100)


def test_a_file_that_is_replaced_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md")
    found = source(tmp_path, "*.md")
    with pytest.raises(DocumentTooLarge):
        found.read("a.md", max_bytes=3)
    (tmp_path / "a.md").unlink()
    with pytest.raises(DocumentVanished):
        found.read("a.md", max_bytes=100)
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(DocumentRejected):
        found.read("a.md", max_bytes=100)
    assert listed_paths(found) == ["b.md"]


def test_a_source_of_a_project_stays_within_its_folders(tmp_path: Path) -> None:
    base, outside = tmp_path / "base", tmp_path / "outside"
    write(base, "docs/a.md")
    write(outside, "secret.md")
    (base / "linked").symlink_to(outside)
    for pattern in (f"{outside}/*", "../outside/*", "linked/*", "~/*"):
        config = GlobsConfig(name="docs", base=base, patterns=("docs/*", pattern), within=(base,))
        with pytest.raises(ConfigurationError, match="is outside"):
            GlobsSource(config, Roots())
        allowed = config.model_copy(update={"within": (base, outside, Path.home())})
        assert "docs/a.md" in listed_paths(GlobsSource(allowed, Roots()))


def test_data_of_rag_assets_is_no_documentation(tmp_path: Path) -> None:
    state = tmp_path / ".local"
    write(tmp_path, "a.md", ".local/key.md")
    context = {"forbidden_roots": (state,)}
    assert listed_paths(source(tmp_path, "**", **context)) == ["a.md"]
    with pytest.raises(DocumentVanished):
        source(tmp_path, "**", **context).read(".local/key.md", max_bytes=100)
    with pytest.raises(ConfigurationError, match="where rag-assets stores its own data"):
        source(tmp_path, ".local/*.md", **context)
    with pytest.raises(ConfigurationError, match="none of the allowed roots"):
        source(tmp_path, "/etc/*", allowed_roots=(tmp_path,))


def test_an_incomplete_listing_fails(
    open_folder: Path, unprivileged: Callable[[], AbstractContextManager[None]]
) -> None:
    with pytest.raises(ListingFailed, match=r"the base .* is missing"):
        listed_paths(source(open_folder / "gone", "*.md"))
    write(open_folder, "docs/a.md", "closed/b.md")
    assert listed_paths(source(open_folder, "not there/*.md", "docs/*")) == ["docs/a.md"]
    (open_folder / "closed").chmod(0)
    with unprivileged(), pytest.raises(ListingFailed, match="closed' cannot be listed"):
        listed_paths(source(open_folder, "**/*.md"))
    with pytest.raises(ConfigurationError, match="a pattern must not be blank"):
        Tenant.from_config(tenant(open_folder, " "))


def tenant(base: Path, *patterns: str) -> dict[str, Any]:
    declared = {"name": "docs", "type": "globs", "base": str(base), "patterns": list(patterns)}
    return {"id": "guide", "profile": "agent-docs", "sources": [declared]}


@pytest.mark.parametrize(
    ("patterns", "folders"),
    [
        (["docs/*.md", "docs/*.txt", "src/**/*.py"], ["docs", "src"]),
        (["README.md"], [""]),
        (["docs/*.md", "/*.md"], None),
        (["~/*.md"], None),
    ],
)
def test_the_folders_that_patterns_begin_in_are_watched(
    tmp_path: Path, patterns: list[str], folders: list[str] | None
) -> None:
    record = TenantRecord("guide", 1, "ACTIVE", "agents", tenant(tmp_path, *patterns))
    watched = tuple(str(tmp_path / folder) for folder in folders or ())
    assert find_sources(record, tmp_path) == TenantSources(watched, is_reported=folders is not None)


def test_names_that_are_no_utf8_are_listed_escaped(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9 100%.md")
    (tmp_path / name).write_text("x")
    [document] = source(tmp_path, "*").list()
    assert document.path == name
    config = GlobsConfig(name="docs", base=tmp_path, patterns=("*",), agent="a:b")
    assert GLOBS.passage_source is not None
    assert GLOBS.passage_source(config, name) == "a%3Ab:caf\\udce9 100%.md"
