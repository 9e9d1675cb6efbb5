"""Parsers as forks: the same limits and confinement, without imports."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_assets.common.errors import DocumentTimeout, DocumentTooCostly
from rag_assets.forkserver.client import ForkedProcess
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.workers.process import (
    WorkerProcess,
    get_fork_server_socket,
    scrub_environment,
)
from tests.rules import with_rules

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses pidfd and SO_PEERCRED")

DOCUMENT = b"# Hello\n\npassword: hunter2hunter22\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.Popen]]:
    """Start a fork server of parsers; yield the cache folder next to which it is found."""
    cache = with_rules(tmp_path_factory.mktemp("parsers") / "cache")
    socket = get_fork_server_socket(cache)
    process = subprocess.Popen(
        [*(sys.executable, "-P", "-m", "rag_assets.ingest.workers.fork_server"), *(socket, cache)],
        stdin=subprocess.PIPE,
        env=scrub_environment(os.environ),
        cwd=tempfile.gettempdir(),
    )
    deadline = time.monotonic() + 120
    while not socket.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    yield cache, process
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(20) == 0, "it ends with its input"
    assert not socket.exists()


def worker_of(cache: Path, **limits: float) -> WorkerProcess:
    worker = WorkerProcess(ParseLimits(**limits), cache)  # type: ignore[arg-type]
    assert isinstance(worker._process, ForkedProcess)
    return worker


def parse(worker: WorkerProcess, document: bytes) -> object:
    return worker.parse(document, "text/markdown", ParseOptions())


@pytest.mark.slow
def test_a_fork_parses_and_masks(server: tuple[Path, subprocess.Popen]) -> None:
    worker = worker_of(server[0])
    parsed = parse(worker, DOCUMENT)
    assert isinstance(parsed, ParsedText)
    assert parsed.text == "# Hello\n\npassword: " + "*" * 15 + "\n"
    assert isinstance(parse(worker, b"# Again\n"), ParsedText)
    pid = worker.pid
    worker.close()
    assert not Path(f"/proc/{pid}").exists()


def test_no_variable_of_ours_reaches_a_parser(
    server: tuple[Path, subprocess.Popen], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_PROVIDER_KEY", "of the parent alone")
    worker = worker_of(server[0])
    for pid in (worker.pid, server[1].pid):
        assert b"SOME_PROVIDER_KEY" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert os.getsid(worker.pid) == worker.pid
    worker.close()


def test_time_and_memory_are_limited(server: tuple[Path, subprocess.Popen]) -> None:
    slow = worker_of(server[0], seconds=0.2)
    assert isinstance(parse(slow, b"- an item\n" * 400_000), DocumentTimeout)
    slow.close()
    small = worker_of(server[0], seconds=60, memory_bytes=48 * 1024**2)
    assert isinstance(parse(small, b"- an item\n" * 400_000), DocumentTooCostly)
    small.close()
    usual = worker_of(server[0])
    assert isinstance(parse(usual, DOCUMENT), ParsedText)
    usual.close()


def test_a_killed_parser_is_noticed(server: tuple[Path, subprocess.Popen]) -> None:
    worker = worker_of(server[0])
    os.kill(worker.pid, 9)
    deadline = time.monotonic() + 10
    while worker.is_alive:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert worker._process.poll() == -9
    worker.close()
