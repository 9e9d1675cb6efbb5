from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError, UnknownTenant
from rag_assets.tenants.file import TenantsFile

WITH_COMMENTS = """\
# The list of the harbour office.
tenants:
  # the first one
  - id: one  # beside it
    profile: documents
    sources:
      - {name: files, type: files, root: notes}  # relative
  - id: two
    enabled: false
"""


@pytest.fixture
def file(tmp_path: Path) -> TenantsFile:
    (tmp_path / "tenants.yaml").write_text(WITH_COMMENTS)
    return TenantsFile(tmp_path / "tenants.yaml")


def test_a_missing_file_lists_no_tenant(tmp_path: Path) -> None:
    assert TenantsFile(tmp_path / "tenants.yaml").load() == {}


def test_an_empty_file_lists_no_tenant(tmp_path: Path) -> None:
    (tmp_path / "tenants.yaml").write_text("")
    assert TenantsFile(tmp_path / "tenants.yaml").load() == {}


def test_roots_are_relative_to_the_file(file: TenantsFile, tmp_path: Path) -> None:
    loaded = file.load()
    assert list(loaded) == ["one", "two"]
    assert loaded["one"]["sources"][0]["root"] == str(tmp_path / "notes")
    # plain values, fit for JSON and for comparison with the catalog's
    assert type(loaded["one"]["id"]) is str
    assert type(loaded["one"]["sources"]) is list


def test_roots_may_name_a_variable_and_the_home(
    file: TenantsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTES", "/srv/notes")
    monkeypatch.setenv("HOME", "/home/pat")
    for root, expected in (("$NOTES/a", "/srv/notes/a"), ("~/b", "/home/pat/b")):
        file.add({"id": "x", "sources": [{"name": "f", "type": "files", "root": root}]})
        assert file.load()["x"]["sources"][0]["root"] == expected
        assert root in file.path.read_text()  # as it was written
        file.remove("x")


def test_editing_keeps_comments_and_everything_else(file: TenantsFile) -> None:
    file.add({"id": "three", "profile": "documents"})
    file.set_enabled("one", enabled=False)
    file.remove("three")
    text = file.path.read_text()
    for comment in ("# The list of the harbour office.", "# the first one", "# beside it"):
        assert comment in text
    assert "{name: files, type: files, root: notes}  # relative" in text
    assert file.load()["one"]["enabled"] is False
    file.set_enabled("one", enabled=True)
    assert file.load()["one"]["enabled"] is True
    assert list(file.load()) == ["one", "two"]


def test_removing_an_unlisted_tenant_changes_nothing(file: TenantsFile) -> None:
    before = file.path.read_text()
    file.remove("nobody")
    assert file.load().keys() == {"one", "two"}
    assert file.path.read_text().count("#") == before.count("#")


def test_a_listed_or_invalid_tenant_cannot_be_added(file: TenantsFile) -> None:
    before = file.path.read_text()
    with pytest.raises(ConfigurationError, match="exists already"):
        file.add({"id": "one"})
    with pytest.raises(ConfigurationError, match="id"):
        file.add({"id": "Not Good"})
    with pytest.raises(UnknownTenant, match="nobody"):
        file.set_enabled("nobody", enabled=True)
    assert file.path.read_text() == before
    assert not list(file.path.parent.glob(".tenants-*"))  # nothing half-written is left


def test_a_new_file_has_a_header_and_keeps_its_mode(tmp_path: Path) -> None:
    file = TenantsFile(tmp_path / "tenants.yaml")
    file.add({"id": "first"})
    assert file.path.read_text().startswith("# Tenants, their sources")
    assert file.path.stat().st_mode & 0o777 == 0o644
    file.path.chmod(0o600)
    file.set_enabled("first", enabled=False)
    assert file.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tenants:\n  - id: a\n   bad: indent\n", "line 3"),
        ("tenants: [a\n", "line 2"),
        ("tenants: {a: 1}\n", "a list named tenants"),
        ("- id: a\n", "a list named tenants"),
        ("tenant:\n  - {id: a}\n", "no field 'tenant'"),
        ("tenants:\n  - a\n", "number 1 has no id"),
        ("tenants:\n  - {id: a}\n  - {id: 7}\n", "number 2 has no id"),
        ("tenants:\n  - {id: a}\n  - {id: a}\n", "listed twice"),
        ("tenants:\n  - {id: a, id: b}\n", "line 2"),
        ("tenants: !!python/object:os.system {}\n", "a list named tenants|not valid|could not"),
    ],
)
def test_invalid_yaml_is_reported_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "tenants.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=message) as raised:
        TenantsFile(path).load()
    assert raised.value.hint
    assert "tenants.yaml" in raised.value.message


def test_a_binary_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "tenants.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        TenantsFile(tmp_path / "tenants.yaml").load()
    (tmp_path / "tenants.yaml").write_bytes(b"tenants: [\x07]\n")
    with pytest.raises(ConfigurationError, match=r"tenants\.yaml"):
        TenantsFile(tmp_path / "tenants.yaml").load()
