"""tenants.yaml is parsed once for each content, and read as if it were parsed every time."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.tenants.file import TenantsFile

TENANTS = """\
tenants:
  - &first
    id: one
    enabled: &yes true
    retention_days: 0x10
    retrieval: {min_score: 5e-1}
    sources: [{name: files, type: files, root: notes/a}]
  - <<: *first
    id: two
    enabled: *yes
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tenants.yaml"
    path.write_text(TENANTS)
    return path


def load(path: Path) -> dict[str, Any]:
    return TenantsFile(path, cache=path.parent / "cache").load()


def refuse(*_: object, **__: object) -> Any:
    raise AssertionError("the file was parsed")


def test_an_unchanged_file_is_not_parsed_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = TenantsFile(path).load()
    assert load(path) == parsed
    monkeypatch.setattr("rag_assets.tenants.file._build_yaml", refuse)
    read = load(path)
    assert read == parsed
    assert read["two"]["enabled"] is True
    assert read["two"]["retention_days"] == 16
    with pytest.raises(AssertionError):
        TenantsFile(path).load()


def test_roots_are_relative_to_the_folder_of_each_reading(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "tenants.yaml").write_text(TENANTS)
        loaded = TenantsFile(folder / "tenants.yaml", cache=tmp_path / "cache").load()
        assert loaded["one"]["sources"][0]["root"] == str(folder / "notes/a")


def test_a_changed_file_is_parsed_again(path: Path) -> None:
    load(path)
    path.write_text(TENANTS.replace("id: two", "id: three"))
    assert list(load(path)) == ["one", "three"]
    path.unlink()
    assert load(path) == {}


def test_a_file_that_cannot_be_parsed_says_so_every_time(path: Path) -> None:
    load(path)
    path.write_text("tenants: [")
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="line 1"):
            load(path)
    path.write_text(TENANTS)
    assert list(load(path)) == ["one", "two"]


@pytest.mark.parametrize("kept", ["", "{", "[]", '{"sha256": 1}', "\x00"])
def test_what_was_kept_and_cannot_be_read_is_parsed_again(path: Path, kept: str) -> None:
    load(path)
    [file] = (path.parent / "cache").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text(kept)
    assert list(load(path)) == ["one", "two"]


def test_a_folder_that_cannot_be_written_keeps_nobody_from_reading(path: Path) -> None:
    (path.parent / "cache").write_text("a file in its place")
    assert list(load(path)) == ["one", "two"]
