"""Parsing many documents in worker processes, each document under limits of its own."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from rag_assets.errors import (
    DocumentRejected,
    DocumentTimeout,
    DocumentTooCostly,
    RagAssetsError,
)
from rag_assets.parsing.messages import read_message, write_message
from rag_assets.parsing.model import ParsedText
from rag_assets.parsing.records import from_record

_STARTUP_SECONDS = 60.0
_OUT_OF_MEMORY = (-9, 137)


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """What one document may use.

    Attributes:
        seconds: of time.
        memory_bytes: of address space, the worker's own included.
        characters: of text.
    """

    seconds: float = 60.0
    memory_bytes: int = 2 * 1024**3
    characters: int = 20_000_000


@dataclass(frozen=True, slots=True)
class ParseTask:
    """One document to parse; its bytes are read when its turn comes."""

    key: str
    name: str
    media_type: str | None
    read: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class ParseOutcome:
    """What became of a task."""

    key: str
    result: ParsedText | RagAssetsError


class ParserPool:
    """A few worker processes, started when first needed and replaced when they fail.

    Args:
        workers: how many documents are parsed at once.
        limits: for each document.
        cache_dir: a private folder where scanners keep their compiled rules.
    """

    def __init__(self, workers: int, limits: ParseLimits, cache_dir: Path) -> None:
        self._limits = limits
        self._cache = cache_dir
        self._workers = max(1, workers)
        self._stopping = threading.Event()
        self._running: set[_Worker] = set()

    def __enter__(self) -> Self:
        self._cache.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        for worker in list(self._running):
            worker.kill()

    def parse_many(self, tasks: Iterable[ParseTask]) -> Iterator[ParseOutcome]:
        """Parse documents side by side; outcomes come as they are ready.

        At most one document per worker is read and held at a time.
        """
        source = iter(tasks)
        taking = threading.Lock()
        outcomes: queue.Queue[ParseOutcome | BaseException | None] = queue.Queue(self._workers * 2)

        def take() -> ParseTask | None:
            with taking:
                return None if self._stopping.is_set() else next(source, None)

        def serve() -> None:
            worker = _Worker(self._limits, self._cache)
            self._running.add(worker)
            try:
                while (task := take()) is not None:
                    outcomes.put(worker.parse(task))
            except BaseException as error:
                outcomes.put(error)
            finally:
                worker.kill()
                self._running.discard(worker)
                outcomes.put(None)

        for _ in range(self._workers):
            threading.Thread(target=serve, name="parse", daemon=True).start()
        left = self._workers
        while left:
            outcome = outcomes.get()
            if outcome is None:
                left -= 1
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                yield outcome


class _Worker:
    """One worker process; a new one takes its place when it dies or takes too long."""

    def __init__(self, limits: ParseLimits, cache: Path) -> None:
        self._limits = limits
        self._cache = cache
        self._process: subprocess.Popen[bytes] | None = None

    def parse(self, task: ParseTask) -> ParseOutcome:
        try:
            data = task.read()
        except RagAssetsError as error:
            return ParseOutcome(task.key, error)
        return ParseOutcome(task.key, self._parse(task.key, data))

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(OSError):
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    def _parse(self, key: str, data: bytes) -> ParsedText | DocumentRejected:
        fresh = self._process is None
        process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a worker without pipes")
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        allowed = self._limits.seconds + (_STARTUP_SECONDS if fresh else 0.0)
        timer = threading.Timer(allowed, give_up)
        timer.start()
        try:
            write_message(process.stdin, {"key": key}, data)
            answer = read_message(process.stdout)
        except OSError:
            answer = None
        finally:
            timer.cancel()
        if answer is None:
            return self._died(process, late=late.is_set())
        return self._result(answer[0])

    def _result(self, answer: dict[str, object]) -> ParsedText | DocumentRejected:
        if "parsed" in answer:
            return from_record(answer["parsed"])  # type: ignore[arg-type]
        if "too_costly" in answer:
            # What an exhausted process still holds is unknown: begin afresh.
            self.kill()
            return DocumentTooCostly(str(answer["too_costly"]))
        return DocumentRejected(str(answer["rejected"]))

    def _died(self, process: subprocess.Popen[bytes], *, late: bool) -> DocumentRejected:
        code = process.wait()
        self.kill()
        if late:
            return DocumentTimeout(f"it took longer than {self._limits.seconds:g} s to parse")
        if code in _OUT_OF_MEMORY:
            return DocumentTooCostly("it needs more memory than one document may use")
        return DocumentRejected(f"its parser crashed (exit code {code})")

    def _start(self) -> subprocess.Popen[bytes]:
        limits = self._limits
        command = [
            sys.executable,
            *("-m", "rag_assets.parsing.worker"),
            str(limits.memory_bytes),
            str(self._cache),
            str(limits.characters),
        ]
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_scrubbed_environment(),
            cwd=tempfile.gettempdir(),
            start_new_session=True,
        )
        return self._process


def _scrubbed_environment() -> dict[str, str]:
    """What Python needs, and nothing that could be a key."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    root = str(Path(__file__).resolve().parents[2])
    return {**kept, "PYTHONPATH": root, "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"}
