import base64
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from rag_assets.billing.master_key import (
    KeyFile,
    MasterKey,
    MasterKeys,
    get_key_file_path,
    read_environment_keys,
)
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.settings import Settings
from rag_assets.pipeline.source_listing import open_sources
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import Database
from rag_assets.tenants.model import Tenant

KEY = base64.b64encode(bytes(range(32))).decode()
OTHER = base64.b64encode(bytes(32)).decode()


def test_the_environment_gives_the_present_key_and_the_one_before() -> None:
    assert read_environment_keys({}) is None
    keys = read_environment_keys(
        {"RAG_ASSETS_MASTER_KEY": KEY, "RAG_ASSETS_MASTER_KEY_PREVIOUS": f"{OTHER}\n"}
    )
    assert keys is not None
    assert keys.present.secret == bytes(range(32))
    assert keys.find(keys.present.id) is keys.present
    assert keys.find(MasterKey.from_secret(bytes(32)).id) == keys.former[0]
    assert keys.find("another") is None


@pytest.mark.parametrize(
    "text", ["secret-but-not-base64", KEY[:-8], base64.b64encode(bytes(33)).decode(), "=", "\n"]
)
def test_what_is_no_key_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_environment_keys({"RAG_ASSETS_MASTER_KEY": text})
    assert "RAG_ASSETS_MASTER_KEY" in refused.value.message
    assert text.strip() == "" or text not in refused.value.advice.replace("=", "", 1)


def test_the_key_before_alone_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="is set without RAG_ASSETS_MASTER_KEY"):
        read_environment_keys({"RAG_ASSETS_MASTER_KEY_PREVIOUS": KEY})


def test_neither_bytes_nor_text_of_a_key_are_shown() -> None:
    keys = MasterKeys(MasterKey.parse(KEY, "here"), (MasterKey.random(),))
    for shown in (repr(keys), str(keys.present), f"{keys}"):
        assert repr(bytes(range(32)))[2:20] not in shown
        assert KEY not in shown
        assert keys.present.id in shown
    assert keys.present.id not in {keys.present.secret.hex()[:16], KEY[:16]}


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def refusal(file: KeyFile) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as refused:
        file.create()
    assert str(file.path) in refused.value.message
    return refused.value


def test_it_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "config" / "rag-assets" / "master.key")
    assert file.read() is None
    made = file.create()
    assert file.create() == made == file.read()
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert names_in(file.path.parent) == ["master.key"]
    assert made.former == ()


def test_many_at_once_end_up_with_one_key(tmp_path: Path) -> None:
    for attempt in range(5):
        start = Barrier(8)

        def make(path: Path, start: Barrier = start) -> MasterKeys:
            start.wait()
            return KeyFile(path).create()

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(make, [tmp_path / str(attempt) / "master.key"] * 8))
        assert len({keys.present.id for keys in made}) == 1
        assert names_in(tmp_path / str(attempt)) == ["master.key"]


def test_it_may_not_be_in_a_folder_of_data(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    (tmp_path / "link").symlink_to(documents)
    for place in (documents / "master.key", tmp_path / "link" / "deep" / "master.key"):
        refused = refusal(KeyFile(place, [tmp_path / "elsewhere", documents]))
        assert f"is in {documents}" in refused.message
        assert "RAG_ASSETS_MASTER_KEY_FILE" in (refused.hint or "")
    assert names_in(documents) == []
    KeyFile(documents / "master.key").create()
    (tmp_path / "outside.key").symlink_to(documents / "master.key")
    assert "is in" in refusal(KeyFile(tmp_path / "outside.key", [documents])).message


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o601])
def test_access_by_other_users_is_refused(tmp_path: Path, mode: int) -> None:
    file = KeyFile(tmp_path / "master.key")
    file.create()
    file.path.chmod(mode)
    refused = refusal(file)
    assert "read by other users" in refused.message
    assert refused.hint == f"chmod 600 {file.path}"


@pytest.mark.parametrize("content", [b"", b"# only a remark\n", b"c2VjcmV0\n", b"\xff\xfe\x00"])
def test_a_file_without_a_key_is_refused_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    file = KeyFile(tmp_path / "master.key")
    file.path.touch(0o600)
    file.path.write_bytes(content)
    refused = refusal(file)
    assert "c2VjcmV0" not in refused.advice
    assert file.path.read_bytes() == content


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(0o700)
    for name in ("pipe", "folder"):
        assert "is not a file" in refusal(KeyFile(tmp_path / name)).message


def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "NotADirectoryError" in refusal(KeyFile(tmp_path / "file" / "master.key")).message


def test_it_is_replaced_at_one_stroke_and_left_tidy(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "master.key")
    first = file.create().present
    abandoned = tmp_path / ".master.key-abandoned"
    abandoned.write_text(first.text())
    keys = MasterKeys(MasterKey.random(), (first,))
    file.replace(keys)
    assert file.read() == keys
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert names_in(tmp_path) == ["master.key"]


def test_the_target_of_a_link_is_replaced(tmp_path: Path) -> None:
    KeyFile(tmp_path / "real.key").create()
    (tmp_path / "link.key").symlink_to(tmp_path / "real.key")
    keys = MasterKeys(MasterKey.random())
    KeyFile(tmp_path / "link.key").replace(keys)
    assert (tmp_path / "link.key").is_symlink()
    assert KeyFile(tmp_path / "real.key").read() == keys


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser can give files away")
def test_the_owner_keeps_the_file(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "master.key")
    first = file.create().present
    os.chown(file.path, 12, 34)
    file.replace(MasterKeys(MasterKey.random(), (first,)))
    found = file.path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12, 34, 0o600)


def test_each_installation_has_a_file_below_the_users_configuration(tmp_path: Path) -> None:
    one, other = (Settings(home=tmp_path / name) for name in ("one", "other"))
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    paths = {get_key_file_path(settings, environ) for settings in (one, other)}
    assert len(paths) == 2
    assert {path.parent for path in paths} == {tmp_path / "config" / "rag-assets"}
    unset = get_key_file_path(one, {"XDG_CONFIG_HOME": "not/absolute"})
    assert unset.parent == Path.home() / ".config" / "rag-assets"
    named = Settings.from_environment(
        {"RAG_ASSETS_HOME": str(tmp_path), "RAG_ASSETS_MASTER_KEY_FILE": str(tmp_path / "k")}
    )
    assert get_key_file_path(named, environ) == tmp_path / "k"


def test_no_source_may_hold_the_key(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "notes" / "private").mkdir(parents=True)
    key_file = tmp_path / "notes" / "private" / "master.key"
    settings = Settings(home=tmp_path / "home", master_key_file=key_file)
    source = {"type": "files", "name": "files", "root": str(tmp_path / "notes")}
    tenant = Tenant.from_config({"id": "acme", "sources": [source]})
    catalog = Catalog(Database("postgresql://nobody@127.0.0.1:9/none"))
    assert len(open_sources(tenant, settings, catalog)) == 1
    KeyFile(key_file).create()
    with pytest.raises(ConfigurationError, match="where rag-assets stores its own data"):
        open_sources(tenant, settings, catalog)
