import os
import pwd
import stat
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.errors import ConfigurationError, UnknownTenant
from rag_assets.tenants.file import TenantsFile, format_path, resolve_path
from tests.mounts import Mounts, with_mounts

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


@pytest.mark.parametrize(
    ("text", "is_blank"),
    [(None, True), ("", True), ("# no entry\n", True), ("tenants: []\n", False)],
)
def test_a_missing_or_empty_file_is_blank(tmp_path: Path, text: str | None, is_blank: bool) -> None:
    path = tmp_path / "tenants.yaml"
    if text is not None:
        path.write_text(text)
    for _ in range(2):  # The second time, the content comes from the cache.
        file = TenantsFile(path, cache=tmp_path / "cache")
        assert file.load() == {}
        assert file.is_blank is is_blank


@pytest.mark.parametrize("escape", [r"\0", r"\x00", r"\uD800"])
@pytest.mark.parametrize("text", ["{id: x, organization: 'VALUE'}", "{id: x, 'VALUE': 1}"])
def test_text_that_postgres_cannot_store_fails(tmp_path: Path, text: str, escape: str) -> None:
    quoted = text.replace("'VALUE'", f'"secret{escape}"')
    (tmp_path / "tenants.yaml").write_text(f"tenants: [{quoted}]\n")
    with pytest.raises(ConfigurationError, match="U\\+0000, or half of a surrogate") as refused:
        TenantsFile(tmp_path / "tenants.yaml").load()
    assert "secret" not in refused.value.advice


def test_load_deeply_nested_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tenants.yaml").write_text(f"tenants: {'[' * 3_000}{']' * 3_000}\n")
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        TenantsFile(tmp_path / "tenants.yaml").load()


def test_roots_are_relative_to_the_file(file: TenantsFile, tmp_path: Path) -> None:
    loaded = file.load()
    assert list(loaded) == ["one", "two"]
    assert loaded["one"]["sources"][0]["root"] == str(tmp_path / "notes")
    # plain values, fit for JSON and for comparison with the catalog's
    assert type(loaded["one"]["id"]) is str
    assert type(loaded["one"]["sources"]) is list


def source(root: str) -> dict[str, Any]:
    return {"id": "x", "sources": [{"name": "f", "type": "files", "root": root}]}


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("~/b", "{home}/b"),
        ("~", "{home}"),
        ("~root/b", "{root}/b"),
        ("cash$$flow", "{folder}/cash$flow"),
        ("/srv/$5/a$", "/srv/$5/a$"),
        ("/srv/$$5", "/srv/$5"),
        ("a/~/b", "{folder}/a/~/b"),
        ("./~b", "{folder}/~b"),
    ],
)
def test_roots_are_the_same_in_every_process(
    file: TenantsFile, monkeypatch: pytest.MonkeyPatch, written: str, place: str
) -> None:
    """A service has another environment than the shell in which it is configured."""
    user, root = pwd.getpwuid(os.getuid()), pwd.getpwnam("root")
    monkeypatch.setenv("HOME", "/home/pat")
    file.add(source(written))
    expected = place.format(home=user.pw_dir, root=root.pw_dir, folder=file.path.parent)
    assert file.load()["x"]["sources"][0]["root"] == expected
    assert written in file.path.read_text(), "as it was written"
    for folder in (file.path.parent, file.path.parent.parent):
        shown = format_path(Path(expected), folder)
        assert resolve_path(shown, folder, "root") == Path(expected)


@pytest.mark.parametrize("written", ["$NOTES/a", "/srv/${NOTES}", "$$$NOTES", "a/$UNDEFINED"])
def test_variables_in_roots_are_refused(
    file: TenantsFile, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("NOTES", "/srv/notes")
    before = file.path.read_text()
    with pytest.raises(ConfigurationError, match="contains a variable") as refused:
        file.add(source(written))
    assert "root of source 'f' of tenant 'x' contains a variable" in refused.value.message
    assert "$$" in (refused.value.hint or "")
    assert "/srv/notes" not in refused.value.message
    assert file.path.read_text() == before
    file.path.write_text(before.replace("notes}", f'"{written}"}}'))
    with pytest.raises(ConfigurationError, match="of tenant 'one' contains a variable"):
        file.load()


def test_a_user_that_does_not_exist_is_refused(file: TenantsFile) -> None:
    with pytest.raises(ConfigurationError, match="begins with the name of an unknown user"):
        file.add(source("~nobody-of-that-name/docs"))


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
        ("tenants: [\x07]\n", "not valid YAML"),
        ("tenants:\n  - id: a\n   bad: indent\n", "line 3"),
        ("tenants: [a\n", "line 2"),
        ("tenants: {a: 1}\n", "a list named tenants"),
        ("- id: a\n", "a list named tenants"),
        ("tenant:\n  - {id: a}\n", "unknown field 'tenant'"),
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


@pytest.fixture
def managed(tmp_path: Path) -> tuple[TenantsFile, Path]:
    """Create a file that is a link to a link to a file in another folder."""
    (tmp_path / "managed").mkdir()
    target = tmp_path / "managed/list.yaml"
    target.write_text(WITH_COMMENTS)
    (tmp_path / "link.yaml").symlink_to(target)
    (tmp_path / "home").mkdir()
    (tmp_path / "home/tenants.yaml").symlink_to("../link.yaml")
    return TenantsFile(tmp_path / "home/tenants.yaml"), target


def test_a_file_that_is_a_link_is_changed_where_it_leads(managed: tuple[TenantsFile, Path]) -> None:
    file, target = managed
    target.chmod(0o640)
    if os.getuid() == 0:
        os.chown(target, 12, 34)
    before = target.stat()
    file.add({"id": "three"})
    file.set_enabled("three", enabled=False)
    assert file.path.readlink() == Path("../link.yaml")
    assert "id: three" in target.read_text()
    after = target.stat()
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert stat.S_IMODE(after.st_mode) == 0o640
    # Relative roots stay relative to the folder of the link.
    assert file.load()["one"]["sources"][0]["root"] == str(file.path.parent / "notes")
    names = {path.name for folder in (file.path, target) for path in folder.parent.iterdir()}
    assert names == {".list.yaml.lock", "list.yaml", "tenants.yaml"}


def test_a_link_to_a_folder_that_is_read_only_is_refused(managed: tuple[TenantsFile, Path]) -> None:
    file, target = managed

    def work(mounts: Mounts) -> None:
        mounts.mount(target.parent)
        target.write_text(WITH_COMMENTS)
        mounts.make_read_only(target.parent)
        for change in (
            lambda: file.add({"id": "three"}),
            lambda: file.set_enabled("one", enabled=False),
            lambda: file.remove("one"),
        ):
            with pytest.raises(ConfigurationError, match="nothing was written") as refused:
                change()
            assert str(target) in refused.value.message
            assert str(file.path) in refused.value.message
        file.remove("unlisted")
        assert target.read_text() == WITH_COMMENTS
        assert file.path.is_symlink()

    with_mounts(work)


def test_a_file_that_is_mounted_by_itself_is_refused(file: TenantsFile, tmp_path: Path) -> None:
    """Containers mount single files, which can be written but not replaced."""
    original = tmp_path / "original.yaml"
    original.write_text(WITH_COMMENTS)

    def work(mounts: Mounts) -> None:
        mounts.bind(original, file.path)
        with pytest.raises(ConfigurationError, match="busy; nothing was written"):
            file.add({"id": "three"})
        assert original.read_text() == WITH_COMMENTS
        assert not list(tmp_path.glob(".tenants.yaml-*"))

    with_mounts(work)


def test_a_link_that_leads_nowhere_yet_is_kept(tmp_path: Path) -> None:
    (tmp_path / "tenants.yaml").symlink_to("list.yaml")
    TenantsFile(tmp_path / "tenants.yaml").add({"id": "first"})
    assert (tmp_path / "tenants.yaml").is_symlink()
    assert "id: first" in (tmp_path / "list.yaml").read_text()
    (tmp_path / "tenants.yaml").unlink()
    (tmp_path / "tenants.yaml").symlink_to("missing/list.yaml")
    with pytest.raises(ConfigurationError, match="cannot be changed: No such file"):
        TenantsFile(tmp_path / "tenants.yaml").add({"id": "first"})


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
