"""Uploads through /api to a service in its own process: its memory, and its end."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from tests.installation import Installation
from tests.panel_site import ENVIRONMENT, PanelSite, panel_site
from tests.security.service_process import answered, started

MIB = 1 << 20
FILES, SIZE, MOST = 16, 50 * MIB, 64 * MIB
LINE = b"A line of a long file, as people write them.\n"
PIECE = LINE * 4_000
END = b"\r\n--bound--\r\n"
SEALS = b"# Seals\n\nThe lighthouse keeper counted seventeen grey seals at dawn.\n"


@pytest.fixture(scope="module")
def site(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PanelSite]:
    log = tmp_path_factory.mktemp("service") / "log"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        with panel_site(shared_installation, log) as site:
            yield site


@contextmanager
def sending(
    site: PanelSite, project: str, length: int, *, port: int = 0
) -> Iterator[socket.socket]:
    """Open a connection for the upload of a file of so many bytes, which END must follow."""
    begin = b'--bound\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n'
    head = (
        f"POST /api/projects/{project}/guidelines/upload HTTP/1.1\r\nHost: service.example\r\n"
        f"Connection: close\r\nAuthorization: Bearer {site.token()}\r\n"
        "Content-Type: multipart/form-data; boundary=bound\r\n"
        f"Content-Length: {len(begin) + length + len(END)}\r\n\r\n"
    )
    place = ("127.0.0.1", port or int(site.origin.rpartition(":")[2]))
    with closing(socket.create_connection(place, timeout=120)) as connection:
        connection.sendall(head.encode() + begin)
        yield connection


def sent(site: PanelSite, project: str, number: int, size: int) -> int:
    """Upload a file with unique content; return the status."""
    first = b"file %d\n" % number
    pieces = (size - len(first)) // len(PIECE)
    with sending(site, project, len(first) + pieces * len(PIECE)) as connection:
        connection.sendall(first)
        for _ in range(pieces):
            connection.sendall(PIECE)
        connection.sendall(END)
        return status_of(connection)


def status_of(connection: socket.socket) -> int:
    received = b""
    while part := connection.recv(65_536):
        received += part
    return answered(received).status


def listed(site: PanelSite, project: str) -> dict[str, str]:
    """Return the status of each document, by its name."""
    answer = site.ask("GET", f"/api/projects/{project}/guidelines")
    assert answer.status_code == 200, answer.text
    return {each["fileName"]: each["status"] for each in answer.json()["documents"]}


def files_of(site: PanelSite, tenant_id: str) -> list[Path]:
    root = Path(site.driver.session.settings.blobs_url) / tenant_id
    return [path for path in root.rglob("*") if path.is_file()]


class Peak:
    """The peak of the private memory of a process, above its initial value."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._ended = threading.Event()
        self._before = self._most = process.memory_full_info().uss
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def more(self) -> int:
        return self._most - self._before

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self._most = max(self._most, self._process.memory_full_info().uss)


@pytest.mark.slow
def test_sixteen_large_files_at_once_take_little_memory(site: PanelSite) -> None:
    projects = ("one", "two")
    for project in projects:
        site.project(project, key=True)
        assert sent(site, project, -1, MIB) == 202  # lazy imports count only once
    with Peak(site.process) as peak, ThreadPoolExecutor(FILES) as pool:
        uploads = [pool.submit(sent, site, projects[n % 2], n, SIZE) for n in range(FILES)]
        statuses = [upload.result() for upload in uploads]
    assert statuses == [202] * FILES
    assert peak.more <= MOST, f"{peak.more / MIB:.0f} MiB"
    for project in projects:
        answer = site.ask("GET", f"/api/projects/{project}/guidelines").json()
        large = [each["size"] for each in answer["documents"] if each["size"] > MIB]
        assert len(large) == FILES // 2
        assert min(large) > SIZE - len(PIECE)


@pytest.mark.slow
def test_a_full_disk_keeps_nothing_and_the_next_upload_passes(site: PanelSite) -> None:
    tenant = site.project("full", key=True)
    before = site.process.rlimit(resource.RLIMIT_FSIZE)
    # A limit on file sizes has the effect of a full disk.
    site.process.rlimit(resource.RLIMIT_FSIZE, (4 * MIB, before[1]))
    try:
        assert sent(site, "full", 1, 8 * MIB) == 503
        assert listed(site, "full") == {}
        assert files_of(site, tenant) == []
    finally:
        site.process.rlimit(resource.RLIMIT_FSIZE, before)
    assert sent(site, "full", 1, 8 * MIB) == 202
    assert listed(site, "full") == {"a.md": "PROCESSING"}


@pytest.mark.slow
def test_a_service_killed_in_an_upload_leaves_no_document(site: PanelSite, tmp_path: Path) -> None:
    tenant = site.project("killed", key=True)
    installation = site.installation
    with (
        started(installation, tmp_path / "log", **ENVIRONMENT) as (process, port),
        sending(site, "killed", 8 * MIB, port=port) as connection,
    ):
        connection.sendall(b"x" * (4 * MIB))
        until = time.monotonic() + 60
        while not files_of(site, tenant):
            assert time.monotonic() < until
            time.sleep(0.02)
        process.kill()
        process.wait()
    assert listed(site, "killed") == {}
    answer = site.client.post(
        "/api/projects/killed/guidelines/upload",
        files={"file": ("seals.md", SEALS)},
        headers={"Authorization": f"Bearer {site.token()}"},
    )
    assert answer.status_code == 202, answer.text
    site.sync(tenant)
    assert listed(site, "killed") == {"seals.md": "READY"}
