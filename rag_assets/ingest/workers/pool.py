"""A pool of worker processes that parse or chunk documents, each with its own limits."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from rag_assets.common.errors import RagAssetsError
from rag_assets.ingest.chunking.chunk_set import ChunkSet
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.workers.process import UnchunkedText, WorkerProcess, WorkerUnavailable


@dataclass(frozen=True, slots=True)
class ParseOutcome:
    """The outcome of a ParseTask, and the seconds that it took, including reading."""

    key: str
    result: ParsedText | RagAssetsError
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ParseTask:
    """One document to parse.

    Attributes:
        read: returns the document's bytes. If it raises a RagAssetsError, that becomes the
            outcome.
    """

    key: str
    name: str
    media_type: str | None
    read: Callable[[], bytes]
    options: ParseOptions = field(default_factory=ParseOptions)

    def execute(self, worker: WorkerProcess) -> ParseOutcome:
        """Read and parse the document."""
        started = time.monotonic()
        result: ParsedText | RagAssetsError
        try:
            result = worker.parse(self.read(), self.media_type, self.options)
        except WorkerUnavailable:
            raise
        except RagAssetsError as error:
            result = error
        return ParseOutcome(self.key, result, time.monotonic() - started)


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """The outcome of a ChunkTask.

    Attributes:
        chunk_sets: a chunk set for each text; empty if `left` has the texts.
        left: all texts of the task, if one of them crashed the worker: chunk each separately.
    """

    chunk_sets: Sequence[ChunkSet]
    left: Sequence[UnchunkedText] = ()


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """A few parsed texts to chunk together, since a message costs as much as a small text."""

    texts: Sequence[UnchunkedText]

    def execute(self, worker: WorkerProcess) -> ChunkOutcome:
        """Chunk the texts on the worker or, if the worker fails, in this process.

        If the worker fails on several texts that a parser reads, return them in `left` instead.
        """
        if all(text.is_known_to_workers for text in self.texts):
            chunk_sets = worker.chunk(self.texts)
            if chunk_sets is not None:
                return ChunkOutcome(chunk_sets)
            if len(self.texts) > 1 and any(text.uses_parser for text in self.texts):
                return ChunkOutcome((), self.texts)
        return ChunkOutcome([text.chunk() for text in self.texts])


_Outcome_co = TypeVar("_Outcome_co", covariant=True)
_Outcome = TypeVar("_Outcome")


def count_usable_cores() -> int:
    """Return the number of cores that this process may use; it is a good number of workers."""
    return len(os.sched_getaffinity(0))


class WorkerTask(Protocol[_Outcome_co]):
    """A task that a worker process executes, such as parsing one document."""

    def execute(self, worker: WorkerProcess) -> _Outcome_co:
        """Execute the task on a worker, and return its outcome; called in a thread of the pool."""


class WorkerPool:
    """A few worker processes; they are started when first needed and replaced when they fail."""

    def __init__(self, workers: int, limits: ParseLimits, cache_dir: Path | None) -> None:
        self._limits = limits
        self._cache_dir = cache_dir
        self.workers = max(1, workers)
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._is_closed = False

    def __enter__(self) -> Self:
        if self._cache_dir is not None:
            self._cache_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all workers, including those that are processing a document."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            busy = list(self._busy)
        for worker in busy:
            worker.kill()
        for worker in idle:
            worker.close()

    def map(
        self, tasks: Iterable[WorkerTask[_Outcome]], *, workers: int | None = None
    ) -> Iterator[_Outcome]:
        """Execute tasks in parallel, and yield each outcome as soon as it is ready.

        At most one document per worker is in memory at a time. Workers keep running for the next
        call. An error of a task, or of the iterable `tasks` itself, is raised here.

        Raises:
            WorkerUnavailable: worker processes do not start.
        """
        run = _MapRun(self, tasks)
        threads = [
            threading.Thread(target=run.serve, name=f"worker-{number}", daemon=True)
            for number in range(min(self.workers, workers or self.workers))
        ]
        for thread in threads:
            thread.start()
        try:
            yield from run.iter_outcomes(len(threads))
        finally:
            run.stop()
            for thread in threads:
                thread.join()

    def take(self) -> WorkerProcess:
        """Return a worker for one document: an idle worker if there is one, else a new worker."""
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the pool of workers is closed")
            worker = self._idle.pop() if self._idle else None
            if worker is None:
                worker = WorkerProcess(self._limits, self._cache_dir)
            self._busy.add(worker)
        return worker

    def give_back(self, worker: WorkerProcess) -> None:
        """Keep a worker for the next document; close it if it has died or the pool is closed."""
        with self._lock:
            self._busy.discard(worker)
            if worker.is_alive and not self._is_closed:
                self._idle.append(worker)
                return
        worker.close()


class PersistentPool:
    """A pool whose workers keep running between the stages of a run; starting them is slow."""

    def __init__(self, workers: int, cache_dir: Path) -> None:
        self._workers = workers
        self._cache_dir = cache_dir
        self._limits: ParseLimits | None = None
        self._pool: WorkerPool | None = None

    @contextmanager
    def open(self, limits: ParseLimits) -> Iterator[WorkerPool]:
        """Yield a pool with these limits, open for the next call unless the block raises."""
        if self._pool is None or self._limits != limits:
            self.close()
            self._limits = limits
            self._pool = WorkerPool(self._workers, limits, self._cache_dir).__enter__()
        try:
            yield self._pool
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop the pool's workers."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


class _MapRun(Generic[_Outcome]):
    """One call of map: its tasks, the threads that execute them, their outcomes."""

    def __init__(self, pool: WorkerPool, tasks: Iterable[WorkerTask[_Outcome]]) -> None:
        self._pool = pool
        self._tasks = iter(tasks)
        self._taking = threading.Lock()
        self._stopped = threading.Event()
        self._outcomes: queue.SimpleQueue[tuple[_Outcome] | BaseException | None]
        self._outcomes = queue.SimpleQueue()
        # An outcome that was not read yet takes up room, so a slow reader slows down the workers.
        self._room = threading.Semaphore(2 * pool.workers)
        self._current: set[WorkerProcess] = set()

    def serve(self) -> None:
        """Execute tasks until none remains, and queue their outcomes; then queue None."""
        try:
            while (task := self._take_task()) is not None:
                self._outcomes.put((self._execute_task(task),))
        except BaseException as error:  # iter_outcomes() raises it again
            self._outcomes.put(error)
        finally:
            self._outcomes.put(None)

    def iter_outcomes(self, threads: int) -> Iterator[_Outcome]:
        """Yield outcomes from the queue until each of the threads has queued None."""
        while threads:
            outcome = self._outcomes.get()
            if outcome is None:
                threads -= 1
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._room.release()
                yield outcome[0]

    def stop(self) -> None:
        """Let the threads end: kill their workers, and start no further task."""
        self._stopped.set()
        self._room.release(2 * self._pool.workers)
        for worker in list(self._current):
            worker.kill()

    def _take_task(self) -> WorkerTask[_Outcome] | None:
        self._room.acquire()
        with self._taking:
            return None if self._stopped.is_set() else next(self._tasks, None)

    def _execute_task(self, task: WorkerTask[_Outcome]) -> _Outcome:
        # Take a worker before the document is read, so that the worker starts meanwhile.
        worker = self._pool.take()
        self._current.add(worker)
        try:
            if self._stopped.is_set():
                worker.kill()
            return task.execute(worker)
        finally:
            self._current.discard(worker)
            self._pool.give_back(worker)
