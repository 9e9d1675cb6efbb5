"""The parent's handle of a worker process: start it, send it a document, stop it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag_assets.common.errors import (
    DocumentEmpty,
    DocumentEncrypted,
    DocumentRejected,
    DocumentScanned,
    DocumentTimeout,
    DocumentTooCostly,
    DocumentTooLarge,
    DocumentUnsupported,
    ParserUnusable,
    ServiceUnavailable,
)
from rag_assets.forkserver.process import ForkedProcess
from rag_assets.ingest.chunking.chunk_set import ChunkSet
from rag_assets.ingest.chunking.records import from_record as chunk_set_of
from rag_assets.ingest.parsing.model import ParsedText, from_record, to_record
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.workers.deadline import Deadline, Watchdog
from rag_assets.ingest.workers.messages import read_message, write_message
from rag_assets.ingest.workers.unchunked_text import UnchunkedText

_REJECTIONS: Mapping[str, type[DocumentRejected]] = {
    kind.__name__: kind
    for kind in (
        *(DocumentEmpty, DocumentEncrypted, DocumentScanned, DocumentTooCostly),
        *(DocumentTooLarge, DocumentUnsupported, ParserUnusable),
    )
}
_WORKER = "rag_assets.ingest.workers.worker"
_STARTUP_SECONDS = 120.0
_KEPT = ("PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
# If native code fails to allocate memory, it aborts. If a process exhausts the machine's memory,
# the kernel kills it.
_OUT_OF_MEMORY = (-signal.SIGABRT, -signal.SIGKILL)


class WorkerUnavailable(ServiceUnavailable):
    """No worker process could be started: a fault of the installation, not of a document."""


class WorkerProcess:
    """A process that parses or chunks one document after another.

    Args:
        limits: limits for each document.
        cache_dir: the folder where the process's scanner keeps compiled rules, if any. If a
            fork server of parsers runs next to this folder, the process is forked from it.
    """

    def __init__(self, limits: ParseLimits, cache_dir: Path | None) -> None:
        self._limits = limits
        self._ready = False
        self._killed = threading.Event()
        self._watchdog = Watchdog(self.kill)
        self._process = _fork_from_server(cache_dir) or _start_process()
        settings = {"limits": asdict(limits), "cache_dir": str(cache_dir) if cache_dir else None}
        with suppress(OSError):
            self._write(settings)

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the process can take another document."""
        return self._process.poll() is None and not self._killed.is_set()

    def parse(
        self, data: bytes, media_type: str | None, options: ParseOptions
    ) -> ParsedText | DocumentRejected:
        """Parse one document; the process may have ended afterwards.

        Raises:
            WorkerUnavailable: the process did not start.
        """
        self._await_ready()
        with self._watchdog.deadline(self._limits.seconds) as deadline:
            answer = self._answer(
                {"media_type": media_type, "options": asdict(options)}, data, deadline
            )
        if answer is None:
            return self._cause_of_death(deadline)
        return self._result(*answer)

    def chunk(self, texts: Sequence[UnchunkedText]) -> list[ChunkSet] | None:
        """Chunk parsed texts with built-in chunkers; return None if the process failed to.

        Raises:
            WorkerUnavailable: the process did not start.
        """
        self._await_ready()
        wanted, encoded = [], []
        for text in texts:
            record, chosen = to_record(text.parsed), text.parameters
            encoded.append(record.pop("text").encode())
            limits = [chosen.limit, chosen.overlap, chosen.place, chosen.levels, chosen.frameworks]
            wanted.append([chosen.kind.name, limits, text.parsed_digest, len(encoded[-1]), record])
        with self._watchdog.deadline(self._limits.seconds) as deadline:
            answer = self._answer({"chunk": wanted}, b"".join(encoded), deadline)
        if answer is None or "chunk_sets" not in answer[0]:
            self.kill()
            return None
        return [
            chunk_set_of(record, text.parsed.text)
            for record, text in zip(answer[0]["chunk_sets"], texts, strict=True)
        ]

    def kill(self) -> None:
        """Stop the process at once; may be called from any thread, and more than once."""
        self._killed.set()
        with suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        """Stop the process and release its resources."""
        self.kill()
        self._watchdog.close()
        self._process.wait()
        if isinstance(self._process, ForkedProcess):
            self._process.close()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _await_ready(self) -> None:
        """Wait until the process has loaded its libraries, outside of any document's time limit."""
        if self._ready:
            return
        with self._watchdog.deadline(_STARTUP_SECONDS):
            answer = self._read()
        if answer is None:
            if self._killed.is_set():
                return
            raise WorkerUnavailable(
                f"a parser process ended while it started (exit code {self._process.wait()})",
                hint=f"run `python -m {_WORKER} < /dev/null` to see the error",
            )
        self._ready = True

    def _result(self, answer: dict[str, Any], text: bytes) -> ParsedText | DocumentRejected:
        if "parsed" in answer:
            return from_record({**answer["parsed"], "text": text.decode()})
        if "too_costly" in answer:
            # The state of a process that ran out of memory is unknown, so a new one is started.
            self.kill()
            return _too_costly()
        if "late" in answer:
            return DocumentTimeout(str(answer["late"]))
        kind = _REJECTIONS.get(str(answer.get("as")), DocumentRejected)
        return kind(str(answer["rejected"]), hint=answer.get("hint"))

    def _cause_of_death(self, deadline: Deadline) -> DocumentRejected:
        if not deadline.passed:
            with suppress(subprocess.TimeoutExpired, TimeoutError):
                self._process.wait(timeout=5)
        code = self._process.poll()
        self.kill()
        if deadline.passed or code == -signal.SIGXCPU:
            return DocumentTimeout(
                f"parsing the document took longer than {deadline.seconds:g} s",
                hint="increase parser.seconds to allow more time",
            )
        if code in _OUT_OF_MEMORY:
            return _too_costly()
        return DocumentRejected(f"the parser of the document crashed (exit code {code})")

    def _answer(
        self, header: Mapping[str, Any], data: bytes, deadline: Deadline
    ) -> tuple[dict[str, Any], bytes] | None:
        """Return the answer to one message; None if the process has ended."""
        try:
            self._write(header, data)
            answer = self._read()
            if answer is not None and "more_seconds" in answer[0]:
                deadline.extend(float(answer[0]["more_seconds"]))
                answer = self._read()
        except OSError:
            return None
        return answer

    def _write(self, header: Mapping[str, Any], data: bytes = b"") -> None:
        if self._process.stdin is not None:
            write_message(self._process.stdin, header, data)

    def _read(self) -> tuple[dict[str, Any], bytes] | None:
        return None if self._process.stdout is None else read_message(self._process.stdout)


def fork_server_socket(cache_dir: Path) -> Path:
    """Return the socket of an installation's fork server of parsers."""
    return cache_dir.parent / "forkserver" / "parsers"


def _fork_from_server(cache_dir: Path | None) -> ForkedProcess | None:
    if cache_dir is None or sys.platform != "linux":
        return None
    path = str(fork_server_socket(cache_dir))
    return ForkedProcess.start(path, [], scrubbed_environment(os.environ), tempfile.gettempdir())


def _start_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", "-m", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=scrubbed_environment(os.environ),
        cwd=tempfile.gettempdir(),
        start_new_session=True,
    )


def _too_costly() -> DocumentTooCostly:
    return DocumentTooCostly(
        "the document needs more memory than one document may use",
        hint="split the document, or increase parser.memory_mb",
    )


def scrubbed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that a worker needs, without any that could be a key."""
    root = str(Path(__file__).resolve().parents[3])
    return {
        **{name: environ[name] for name in _KEPT if name in environ},
        "PYTHONPATH": root,
        "PYTHONUTF8": "1",
        # Threads of native libraries would use much more address space without any benefit.
        "OMP_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }
