"""The parent's handle of a worker process: start it, send it documents, stop it at a deadline.

One thread watches the deadlines of all documents of a process. One thread per document, as with
threading.Timer, would cost more than parsing a small document.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

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
from rag_assets.forkserver.client import ForkedProcess
from rag_assets.ingest.chunking.chunk_set import ChunkSet, chunk_document
from rag_assets.ingest.chunking.chunk_set import from_record as chunk_set_of
from rag_assets.ingest.chunking.chunkers import find_worker_chunker
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.parsing.model import ParsedText, from_record, to_record
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.workers.worker import read_message, write_message


class Watchdog:
    """A watchdog that calls `give_up` when a deadline passes; it watches one deadline at a time."""

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._current: Deadline | None = None
        self._wakes_at = math.inf
        self._is_closed = False

    def create_deadline(self, seconds: float) -> Deadline:
        """Return a deadline whose time starts at the beginning of its `with` block."""
        return Deadline(self, seconds)

    def watch(self, deadline: Deadline) -> None:
        """Watch this deadline, in place of any previous deadline."""
        with self._changed:
            self._current = deadline
            # The thread checks again whenever it wakes, so a later deadline need not wake it.
            if deadline.at < self._wakes_at:
                self._wakes_at = deadline.at
                self._wake()

    def release(self) -> None:
        """Stop watching the current deadline."""
        with self._changed:
            self._current = None

    def close(self) -> None:
        """Stop the watchdog's thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
            self._thread.start()
        else:
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while not self._is_closed:
                now = time.monotonic()
                current = self._current
                if current is not None and current.at <= now:
                    current.has_passed = True
                    self._current = None
                    self._give_up()
                    continue
                self._wakes_at = math.inf if current is None else current.at
                self._changed.wait(min(self._wakes_at - now, threading.TIMEOUT_MAX))


class Deadline:
    """A context manager with a time limit, which can be extended within its block."""

    def __init__(self, watchdog: Watchdog, seconds: float) -> None:
        self.seconds = seconds
        self.at = math.inf
        self.has_passed = False
        self._watchdog = watchdog

    def __enter__(self) -> Self:
        self.at = time.monotonic() + self.seconds
        self._watchdog.watch(self)
        return self

    def __exit__(self, *raised: object) -> None:
        self._watchdog.release()

    def extend(self, seconds: float) -> None:
        """Add seconds to the time limit, and restart it, so that the whole limit runs from now."""
        self.seconds += seconds
        self.at = time.monotonic() + self.seconds
        self._watchdog.watch(self)


@dataclass(frozen=True, slots=True)
class UnchunkedText:
    """A parsed text to be chunked, with its hash, its chunker and the chunker's limits."""

    parsed: ParsedText
    parsed_digest: str
    parameters: ChunkParameters

    @property
    def is_known_to_workers(self) -> bool:
        """Return whether worker processes can find the text's chunker by its name."""
        return self.parameters.kind is find_worker_chunker(self.parameters.kind.name)

    @property
    def uses_parser(self) -> bool:
        """Return whether the chunker runs a parser, which a hostile text may crash."""
        return self.parameters.kind.read is not None

    def chunk(self, *, is_confined: bool = False) -> ChunkSet:
        """Chunk the text in this process.

        Unless `is_confined`, the process has no limits for the text, so no parser reads the text.
        """
        return chunk_document(
            self.parsed, self.parameters, parsed_digest=self.parsed_digest, is_confined=is_confined
        )


_REJECTIONS: Mapping[str, type[DocumentRejected]] = {
    kind.__name__: kind
    for kind in (
        *(DocumentEmpty, DocumentEncrypted, DocumentScanned, DocumentTooCostly),
        *(DocumentTooLarge, DocumentUnsupported, ParserUnusable),
    )
}
_WORKER = "rag_assets.ingest.workers.worker"
_STARTUP_SECONDS = 120.0
_KEPT_VARIABLES = ("PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
# If native code fails to allocate memory, it aborts. If a process exhausts the machine's memory,
# the kernel kills it.
_OUT_OF_MEMORY = (-signal.SIGABRT, -signal.SIGKILL)


class WorkerUnavailable(ServiceUnavailable):
    """No worker process could be started: a fault of the installation, not of a document."""


class WorkerProcess:
    """A process that parses or chunks one document after another; its start may fail.

    Its scanner keeps compiled rules in the cache folder, if any. If a fork server of parsers runs
    next to this folder, the process is forked from it.
    """

    def __init__(self, limits: ParseLimits, cache_dir: Path | None) -> None:
        self._limits = limits
        self._is_ready = False
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
    def is_alive(self) -> bool:
        """Return whether the process can take another document."""
        return self._process.poll() is None and not self._killed.is_set()

    def parse(
        self, data: bytes, media_type: str | None, options: ParseOptions
    ) -> ParsedText | DocumentRejected:
        """Parse one document; return its masked text or the reason for its rejection."""
        self._await_ready()
        with self._watchdog.create_deadline(self._limits.seconds) as deadline:
            answer = self._exchange(
                {"media_type": media_type, "options": asdict(options)}, data, deadline
            )
        if answer is None:
            return self._find_cause_of_death(deadline)
        return self._parse_answer(*answer)

    def chunk(self, texts: Sequence[UnchunkedText]) -> list[ChunkSet] | None:
        """Return the chunk sets of parsed texts; None if the process failed."""
        self._await_ready()
        requests, encoded = [], []
        for text in texts:
            record, parameters = to_record(text.parsed), text.parameters
            encoded.append(record.pop("text").encode())
            limits = [
                parameters.limit,
                parameters.overlap,
                parameters.path_hint,
                parameters.levels,
                parameters.frameworks,
            ]
            requests.append(
                [parameters.kind.name, limits, text.parsed_digest, len(encoded[-1]), record]
            )
        with self._watchdog.create_deadline(self._limits.seconds) as deadline:
            answer = self._exchange({"chunk": requests}, b"".join(encoded), deadline)
        if answer is None or "chunk_sets" not in answer[0]:
            self.kill()
            return None
        return [
            chunk_set_of(record, text.parsed.text)
            for record, text in zip(answer[0]["chunk_sets"], texts, strict=True)
        ]

    def kill(self) -> None:
        """Stop the process immediately; may be called from any thread, and more than once."""
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
        """Wait until the process has loaded its libraries, before any time limit."""
        if self._is_ready:
            return
        with self._watchdog.create_deadline(_STARTUP_SECONDS):
            answer = self._read()
        if answer is None:
            if self._killed.is_set():
                return
            raise WorkerUnavailable(
                f"a parser process ended while it started (exit code {self._process.wait()})",
                hint=f"run `python -m {_WORKER} < /dev/null` to see the error",
            )
        self._is_ready = True

    def _parse_answer(self, answer: dict[str, Any], text: bytes) -> ParsedText | DocumentRejected:
        if "parsed" in answer:
            return from_record({**answer["parsed"], "text": text.decode()})
        if "too_costly" in answer:
            # The state of a process that ran out of memory is unknown, so a new one is started.
            self.kill()
            return _build_too_costly_error()
        if "late" in answer:
            return DocumentTimeout(str(answer["late"]))
        kind = _REJECTIONS.get(str(answer.get("as")), DocumentRejected)
        return kind(str(answer["rejected"]), hint=answer.get("hint"))

    def _find_cause_of_death(self, deadline: Deadline) -> DocumentRejected:
        if not deadline.has_passed:
            with suppress(subprocess.TimeoutExpired, TimeoutError):
                self._process.wait(timeout=5)
        code = self._process.poll()
        self.kill()
        if deadline.has_passed or code == -signal.SIGXCPU:
            return DocumentTimeout(
                f"parsing the document took longer than {deadline.seconds:g} s",
                hint="increase parser.seconds to allow more time",
            )
        if code in _OUT_OF_MEMORY:
            return _build_too_costly_error()
        return DocumentRejected(f"the parser of the document crashed (exit code {code})")

    def _exchange(
        self, header: Mapping[str, Any], data: bytes, deadline: Deadline
    ) -> tuple[dict[str, Any], bytes] | None:
        """Send one message, and return its answer; None if the process has ended."""
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


def get_fork_server_socket(cache_dir: Path) -> Path:
    """Return the path of the socket of an installation's fork server of parsers."""
    return cache_dir.parent / "forkserver" / "parsers"


def _fork_from_server(cache_dir: Path | None) -> ForkedProcess | None:
    if cache_dir is None or sys.platform != "linux":
        return None
    path = str(get_fork_server_socket(cache_dir))
    return ForkedProcess.start(path, [], scrub_environment(os.environ), tempfile.gettempdir())


def _start_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", "-m", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=scrub_environment(os.environ),
        cwd=tempfile.gettempdir(),
        start_new_session=True,
    )


def _build_too_costly_error() -> DocumentTooCostly:
    return DocumentTooCostly(
        "the document needs more memory than one document may use",
        hint="split the document, or increase parser.memory_mb",
    )


def scrub_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that a worker needs, without any that could be a key."""
    root = str(Path(__file__).resolve().parents[3])
    return {
        **{name: environ[name] for name in _KEPT_VARIABLES if name in environ},
        "PYTHONPATH": root,
        "PYTHONUTF8": "1",
        # Threads of native libraries would use much more address space without any benefit.
        "OMP_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }
