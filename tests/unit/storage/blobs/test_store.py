"""Blobs in a folder and in an object store are complete or absent, even if a writer crashes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from rag_assets.common.errors import (
    BlobAltered,
    BlobMissing,
    ConfigurationError,
    ServiceUnavailable,
)
from rag_assets.storage.blobs.store import (
    BlobStore,
    FolderPlace,
    ObjectPlace,
    Place,
    ReceivedFile,
    TenantBlobs,
)

SCRIPT = Path(__file__).with_name("crash_uploader.py")
LARGE = b"0123456789abcdef" * (200 << 10)
FUTURE = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture(params=["folder", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "folder":
        yield FolderPlace(tmp_path / "blobs")
    else:
        yield ObjectPlace("memory://", tmp_path / "received", MemoryStore())


def received(blobs: TenantBlobs, content: bytes) -> ReceivedFile:
    file = blobs.receive()
    file.write(content)
    return file


def kept(blobs: TenantBlobs, content: bytes) -> str:
    with received(blobs, content) as file:
        file.stage()
        file.keep()
    return file.sha256


def content_of(blobs: TenantBlobs, name: str) -> bytes:
    return b"".join(blobs.stream(name))


def test_a_file_has_the_name_of_its_content_and_is_read_back(place: Place) -> None:
    blobs = BlobStore(place).tenant("acme", 3)
    names = {content: kept(blobs, content) for content in (b"small", LARGE)}
    assert names == {content: sha256(content).hexdigest() for content in names}
    assert kept(blobs, b"small") == names[b"small"]
    assert {blob.sha256: blob.size for blob in blobs.all()} == {
        names[content]: len(content) for content in names
    }
    assert all(content_of(blobs, names[content]) == content for content in names)
    assert blobs.discard_staged(FUTURE) == 0


def test_a_file_is_there_only_after_it_was_kept(place: Place, tmp_path: Path) -> None:
    blobs = BlobStore(place).tenant("acme", 1)
    with received(blobs, b"half of a fi") as file:
        assert list(blobs.all()) == []
    with received(blobs, b"a whole file") as file:
        file.stage()
        assert list(blobs.all()) == []
        with pytest.raises(BlobMissing):
            content_of(blobs, file.sha256)
    assert blobs.discard_staged(FUTURE) == 0
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_was_altered_or_lost_is_not_taken_for_the_file(place: Place) -> None:
    blobs = BlobStore(place).tenant("acme", 1)
    first, second = kept(blobs, b"the first file"), kept(blobs, b"the other one")
    stored = f"acme/1/blobs/{second[:2]}/{second}"
    place.move(f"acme/1/blobs/{first[:2]}/{first}", stored)
    with pytest.raises(BlobAltered):
        content_of(blobs, second)
    with pytest.raises(BlobMissing):
        content_of(blobs, first)
    assert not blobs.exists(first)
    assert kept(blobs, b"the other one") == second
    assert content_of(blobs, second) == b"the other one"


def test_tenants_and_their_incarnations_are_apart(place: Place) -> None:
    store = BlobStore(place)
    of = {key: store.tenant(*key) for key in (("acme", 1), ("acme", 2), ("umbrella", 7))}
    names = {kept(blobs, b"the same file") for blobs in of.values()}
    (name,) = names
    assert set(store.incarnations()) == set(of)
    of["acme", 1].purge()
    assert set(store.incarnations()) == {("acme", 2), ("umbrella", 7)}
    assert of["acme", 2].delete(name)
    assert not of["acme", 2].delete(name)
    assert content_of(of["umbrella", 7], name) == b"the same file"


@pytest.mark.parametrize("tenant", ["", "..", "a/b", "ACME"])
def test_no_name_leads_out_of_the_store(place: Place, tenant: str) -> None:
    store = BlobStore(place)
    with pytest.raises(ConfigurationError):
        store.tenant(tenant, 1)
    for name in ("../../etc/passwd", "0" * 63, f"{'0' * 63}/"):
        with pytest.raises(ConfigurationError):
            content_of(store.tenant("acme", 1), name)


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    blobs = BlobStore(FolderPlace(tmp_path)).tenant("acme", 1)
    secret = tmp_path / "secret"
    secret.write_bytes(b"of somebody else")
    name = sha256(b"of somebody else").hexdigest()
    link = tmp_path / "acme" / "1" / "blobs" / name[:2] / name
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)
    with pytest.raises(ServiceUnavailable):
        content_of(blobs, name)


def test_files_are_readable_by_the_service_alone(tmp_path: Path) -> None:
    kept(BlobStore(FolderPlace(tmp_path / "blobs")).tenant("acme", 1), b"a file")
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "blobs").rglob("*")}
    assert modes == {0}


def uploader(root: Path, largest: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(root), str(largest)], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_where_no_space_is_left_nothing_is_kept(tmp_path: Path) -> None:
    # A file may not become as large as the one that is received: as on a full disk.
    with uploader(tmp_path, largest=500_000) as process:
        assert process.stdout is not None
        said = process.stdout.read()
    assert said.startswith("the blob store failed: "), said
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_a_killed_writer_leaves_whole_files_and_what_upkeep_discards(tmp_path: Path) -> None:
    process = uploader(tmp_path)
    assert process.stdout is not None
    said = [process.stdout.readline().strip() for _ in range(3)]
    time.sleep(0.07)
    os.kill(process.pid, signal.SIGKILL)
    said += process.stdout.read().split()
    process.wait()
    process.stdout.close()
    blobs = BlobStore(FolderPlace(tmp_path)).tenant("acme", 1)
    found = {blob.sha256 for blob in blobs.all()}
    assert found >= {name for name in said if len(name) == 64}
    for name in found:
        content_of(blobs, name)
    assert blobs.discard_staged(datetime.now(UTC) - timedelta(days=1)) == 0
    blobs.discard_staged(FUTURE)
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left == found


def test_notes_lie_beside_blobs_and_are_none(place: Place) -> None:
    store = BlobStore(place)
    notes, name = store.notes, "acme/3/catalog_mark.json"
    assert notes.read(name) is None
    blob = kept(store.tenant("acme", 3), b"small")
    for text in ("7", "8"):
        notes.write(name, text)
        assert store.notes.read(name) == text
    notes.write("security_journal.json", "of all tenants")
    assert [found.sha256 for found in store.tenant("acme", 3).all()] == [blob]
    assert [*store.incarnations()] == [("acme", 3)]
    store.tenant("acme", 3).purge()
    assert notes.read(name) is None
    notes.delete(name)
    assert [*store.incarnations()] == []
    assert notes.read("security_journal.json") == "of all tenants"
