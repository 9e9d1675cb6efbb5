"""Parsing many documents in worker processes, each document under limits of its own."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from rag_assets.common.errors import RagAssetsError
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.workers.process import WorkerProcess, WorkerUnavailable

__all__ = ["ParseLimits", "ParseOutcome", "ParseTask", "ParserPool"]


@dataclass(frozen=True, slots=True)
class ParseTask:
    """One document to parse.

    Attributes:
        key: comes back with the outcome.
        name: its name for people; not used for parsing.
        media_type: the type that its source declares.
        read: gives its bytes, called from another thread when its turn comes.
        options: its tenant's options.
    """

    key: str
    name: str
    media_type: str | None
    read: Callable[[], bytes]
    options: ParseOptions = field(default_factory=ParseOptions)


@dataclass(frozen=True, slots=True)
class ParseOutcome:
    """The outcome of a task.

    Attributes:
        result: the masked text, or the reason of its quarantine.
        seconds: that it took one worker, reading included.
    """

    key: str
    result: ParsedText | RagAssetsError
    seconds: float = 0.0


class ParserPool:
    """A few worker processes, started when first needed and replaced when they fail.

    Args:
        workers: how many documents are parsed at once.
        limits: for each document.
        cache_dir: a private folder where scanners keep their compiled rules.
    """

    def __init__(self, workers: int, limits: ParseLimits, cache_dir: Path | None) -> None:
        self._limits = limits
        self._cache_dir = cache_dir
        self.workers = max(1, workers)
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._closed = False

    def __enter__(self) -> Self:
        if self._cache_dir is not None:
            self._cache_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for worker in busy:
            worker.kill()
        for worker in idle:
            worker.close()

    def parse_many(self, tasks: Iterable[ParseTask]) -> Iterator[ParseOutcome]:
        """Parse documents in parallel; outcomes are yielded as they are ready.

        At most one document per worker is read and held at a time. Workers stay for the next
        call. An error of `read` that is a RagAssetsError becomes the task's outcome; any other
        is raised here, as is one of `tasks` itself.

        Raises:
            WorkerUnavailable: worker processes do not start.
        """
        run = _Run(self, tasks)
        threads = [
            threading.Thread(target=run.serve, name=f"parse-{number}", daemon=True)
            for number in range(self.workers)
        ]
        for thread in threads:
            thread.start()
        try:
            yield from run.outcomes(len(threads))
        finally:
            run.stop()
            for thread in threads:
                thread.join()

    def take(self) -> WorkerProcess:
        """Take a worker for one document, an idle one if there is any."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool of parsers is closed")
            worker = self._idle.pop() if self._idle else None
            if worker is None:
                worker = WorkerProcess(self._limits, self._cache_dir)
            self._busy.add(worker)
        return worker

    def give_back(self, worker: WorkerProcess) -> None:
        """Keep a worker for the next document, if it can take one."""
        with self._lock:
            self._busy.discard(worker)
            if worker.alive and not self._closed:
                self._idle.append(worker)
                return
        worker.close()


class _Run:
    """One call of parse_many: its tasks, the threads that serve them, their outcomes."""

    def __init__(self, pool: ParserPool, tasks: Iterable[ParseTask]) -> None:
        self._pool = pool
        self._tasks = iter(tasks)
        self._taking = threading.Lock()
        self._stopped = threading.Event()
        self._outcomes: queue.SimpleQueue[ParseOutcome | BaseException | None]
        self._outcomes = queue.SimpleQueue()
        # An unread outcome counts as held: a slow reader slows the workers.
        self._room = threading.Semaphore(2 * pool.workers)
        self._current: set[WorkerProcess] = set()

    def serve(self) -> None:
        """Process tasks until none is left; the last item is None."""
        try:
            while (task := self._next()) is not None:
                self._outcomes.put(self._outcome(task))
        except BaseException as error:  # raised again where outcomes are read
            self._outcomes.put(error)
        finally:
            self._outcomes.put(None)

    def outcomes(self, threads: int) -> Iterator[ParseOutcome]:
        """Yield outcomes until every thread has sent None."""
        while threads:
            outcome = self._outcomes.get()
            if outcome is None:
                threads -= 1
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._room.release()
                yield outcome

    def stop(self) -> None:
        """Let threads end: no further task, and nothing to wait for."""
        self._stopped.set()
        self._room.release(2 * self._pool.workers)
        for worker in list(self._current):
            worker.kill()

    def _next(self) -> ParseTask | None:
        self._room.acquire()
        with self._taking:
            return None if self._stopped.is_set() else next(self._tasks, None)

    def _outcome(self, task: ParseTask) -> ParseOutcome:
        # Taken before the bytes are read, so that it starts up meanwhile.
        worker = self._pool.take()
        self._current.add(worker)
        started = time.monotonic()
        try:
            if self._stopped.is_set():
                worker.kill()
            result = worker.parse(task.read(), task.media_type, task.options)
            return ParseOutcome(task.key, result, time.monotonic() - started)
        except WorkerUnavailable:
            raise
        except RagAssetsError as error:
            return ParseOutcome(task.key, error, time.monotonic() - started)
        finally:
            self._current.discard(worker)
            self._pool.give_back(worker)
