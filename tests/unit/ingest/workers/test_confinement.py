"""While a worker processes a document, its Python uses no network and starts no process."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.workers.process import WorkerProcess

ROOT = Path(__file__).resolve().parents[4]
NETWORK = "the document made its parser use the network, which is forbidden"
PROCESS = "the document made its parser start a process, which is forbidden"

# A worker as it is, but for a parser that does what its document says.
_WORKER = """
import os, socket, subprocess, urllib.request
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.ingest.parsing import text
from rag_assets.ingest.workers import worker
text.parse = lambda data, *_: eval(data)
worker.main()
"""


@pytest.fixture(scope="module")
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture
def worker(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> WorkerProcess:
    start = subprocess.Popen

    def popen(arguments: list[str], **kwargs: object) -> object:
        assert arguments[-2:] == ["-m", "rag_assets.ingest.workers.worker"]
        return start([sys.executable, "-P", "-c", _WORKER], **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", popen)
    return WorkerProcess(ParseLimits(), cache_dir)


@pytest.mark.slow
def test_a_document_reaches_nothing_beyond_its_worker(
    worker: WorkerProcess, listening: socket.socket, tmp_path: Path
) -> None:
    port = listening.getsockname()[1]
    acts = {
        f"socket.create_connection(('127.0.0.1', {port}))": NETWORK,
        f"urllib.request.urlopen('http://127.0.0.1:{port}/x')": NETWORK,
        "socket.getaddrinfo('example.org', 80)": NETWORK,
        f"socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))": NETWORK,
        "subprocess.run(['true'])": PROCESS,
        "os.system('true')": PROCESS,
        "os.fork()": PROCESS,
        "os.execv('/bin/true', ['true'])": PROCESS,
        "os.posix_spawn('/bin/true', ['true'], {})": PROCESS,
        f"open({str(tmp_path / 'large')!r}, 'wb').write(bytes(17 * 2**20))":
            "the parser of the document failed (OSError)",
        "[os.dup(0) for _ in range(300)]": "the parser of the document failed (OSError)",
    }  # fmt: skip
    try:
        for act, reason in acts.items():
            result = worker.parse(act.encode(), "text/plain", ParseOptions())
            assert isinstance(result, DocumentRejected)
            assert (act, result.message) == (act, reason)
    finally:
        worker.close()
    with pytest.raises(BlockingIOError):
        listening.accept()


@pytest.mark.slow
def test_unstorable_results_and_interrupts_fail_their_document_alone(worker: WorkerProcess) -> None:
    acts = {
        "ParsedText('x', (), title='\\ud800')":
            "the parser of the document failed (UnicodeEncodeError)",
        "ParsedText('x', (Block('row', 0, 1, sheet='\\ud800'),))":
            "the parser of the document failed (UnicodeEncodeError)",
        "(_ for _ in ()).throw(BaseException('panic'))":
            "the parser of the document failed (BaseException)",
    }  # fmt: skip
    try:
        for act, reason in acts.items():
            result = worker.parse(act.encode(), "text/plain", ParseOptions())
            assert isinstance(result, DocumentRejected)
            assert (act, result.message) == (act, reason)
            assert worker.is_alive
    finally:
        worker.close()


def test_between_documents_a_worker_is_free() -> None:
    script = """
import json, os
from rag_assets.ingest.workers.worker import Confinement
confinement, seen = Confinement(), []
def act():
    try:
        seen.append(os.system("true"))
    except Exception as error:
        seen.append(type(error).__name__)
act()
with confinement:
    act()
act()
print(json.dumps(seen))
"""
    command, environment = [sys.executable, "-c", script], {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.check_output(command, env=environment)
    assert json.loads(out) == [0, "DocumentRejected", 0]
