"""Worker processes that do the same work, and their supervisor, which replaces dead workers."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn, TypeAlias

import uvicorn

from rag_assets.common.errors import RagAssetsError

Work: TypeAlias = Callable[[int, socket.socket], None]
"""The work of a worker, called with its number, from 0, and its socket to the supervisor.

The function sends a byte once the worker is ready. It ends when the socket is closed, because then
the supervisor has died.
"""

_STABLE_SECONDS = 10.0
_LONGEST_PAUSE = 30.0
_STOPPING = (signal.SIGTERM, signal.SIGINT)


@dataclass
class _Worker:
    pid: int
    line: socket.socket
    began: float


@dataclass
class _Place:
    """The slot of a worker, which stays when the worker dies.

    Attributes:
        worker: the current worker; None after it has died.
        deaths: number of successive workers that died soon after their start.
        due: time when the next worker starts in this slot.
    """

    worker: _Worker | None = None
    deaths: int = 0
    due: float = 0.0


class Supervisor:
    """A supervisor that keeps a number of workers alive, as forks of this process.

    It runs without threads and opens no connections, so that it can fork a worker at any time.

    Args:
        workers: number of workers.
        work: the work of each worker.
        stop_seconds: time that a stopping worker has before it is killed.
        report: called when a worker dies, with its number and the cause.
        stopping: called before the supervisor waits for workers to stop.
    """

    def __init__(
        self,
        workers: int,
        work: Work,
        *,
        stop_seconds: float,
        report: Callable[[int, str], None],
        stopping: Callable[[], None] = lambda: None,
    ) -> None:
        self._work = work
        self._stop_seconds = stop_seconds
        self._report = report
        self._stopping = stopping
        self._places = [_Place() for _ in range(workers)]
        self._wakeup, self._waker = socket.socketpair()
        self._told: list[int] = []
        self._failed = False
        self._kill_at: float | None = None
        self._ready = False

    def run(self) -> None:
        """Keep workers alive until SIGTERM or SIGINT, then wait until the last worker has ended.

        Raises:
            KeyboardInterrupt: the signal was SIGINT.
            RagAssetsError: no worker could start.
        """
        with self._taking_signals():
            while not self._ending:
                self._begin_due()
                self._wait()
            self._stopping()
            while self._lines():
                self._wait()
                self._kill_late()
        if self._failed:
            raise RagAssetsError("no worker could start", hint="see the cause in the lines above")
        if signal.SIGINT in self._told:
            raise KeyboardInterrupt

    @property
    def _ending(self) -> bool:
        return self._failed or bool(self._told)

    def _lines(self) -> dict[socket.socket, int]:
        return {p.worker.line: number for number, p in enumerate(self._places) if p.worker}

    def _begin_due(self) -> None:
        now = time.monotonic()
        for number, place in enumerate(self._places):
            if place.worker is None and place.due <= now and not self._ending:
                self._begin(number, place)

    def _begin(self, number: int, place: _Place) -> None:
        ours, its = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal that reaches the new worker must not run the supervisor's handlers in the worker.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._become(number, its)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        its.close()
        place.worker = _Worker(pid, ours, time.monotonic())

    def _become(self, number: int, line: socket.socket) -> NoReturn:
        """Do the work in a fork and exit, without returning to the supervisor's code."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            # Uvicorn raises the signal again once it has stopped; at that time, connections are
            # closed.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
            for other in (self._wakeup, self._waker, *self._lines()):
                other.close()
            self._work(number, line)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        except KeyboardInterrupt:
            code = 130
        except RagAssetsError as error:
            sys.stderr.write(f"error: {error.message}\n")
        except BaseException as error:
            sys.stderr.write(f"error: unexpected {type(error).__name__}\n")
        finally:
            with suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _wait(self) -> None:
        """Wait for a signal, for a worker's socket, or until a worker is due."""
        lines = self._lines()
        ready, _, _ = select.select([self._wakeup, *lines], [], [], self._patience())
        for one in ready:
            if one is self._wakeup:
                with suppress(BlockingIOError):
                    one.recv(4_096)
            else:
                self._hear(lines[one], one)

    def _patience(self) -> float | None:
        now = time.monotonic()
        if self._kill_at is not None:
            return max(0.0, self._kill_at - now)
        due = [place.due - now for place in self._places if place.worker is None]
        return max(0.0, min(due)) if due else None

    def _hear(self, number: int, line: socket.socket) -> None:
        try:
            said = line.recv(1)
        except ConnectionError:
            said = b""
        if said:
            self._ready = True
        else:
            self._bury(number)

    def _bury(self, number: int) -> None:
        place = self._places[number]
        worker, place.worker = place.worker, None
        if worker is None:
            return
        worker.line.close()
        _, status = os.waitpid(worker.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if self._ending:
            return
        if not self._ready:
            # The next worker would fail the same way.
            self._failed = True
            self._stop(signal.SIGTERM)
            return
        lived = time.monotonic() - worker.began
        place.deaths = 0 if lived > _STABLE_SECONDS else place.deaths + 1
        pause = min(_LONGEST_PAUSE, 2.0 ** (place.deaths - 2)) if place.deaths > 1 else 0.0
        place.due = time.monotonic() + pause
        self._report(number, f"signal {-code}" if code < 0 else f"exit code {code}")

    def _take(self, number: int, _frame: FrameType | None) -> None:
        # On the second Ctrl-C, workers stop without waiting for their requests.
        again = bool(self._told) and number == signal.SIGINT
        self._told.append(number)
        self._stop(signal.SIGINT if again else signal.SIGTERM)

    def _stop(self, number: signal.Signals) -> None:
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._stop_seconds
        self._send(number)

    def _kill_late(self) -> None:
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = time.monotonic() + 1.0
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        for place in self._places:
            if place.worker is not None:
                with suppress(ProcessLookupError):
                    os.kill(place.worker.pid, number)

    @contextmanager
    def _taking_signals(self) -> Iterator[None]:
        self._wakeup.setblocking(False)
        self._waker.setblocking(False)
        before = {number: signal.signal(number, self._take) for number in _STOPPING}
        wakeup = signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._wakeup.close()
            self._waker.close()


class WorkerServer(uvicorn.Server):
    """A server that notifies its supervisor when it is ready, and ends with the supervisor.

    Args:
        config: see server.build_config.
        line: socket to the supervisor; see supervisor.Work.
    """

    def __init__(self, config: uvicorn.Config, line: socket.socket) -> None:
        super().__init__(config)
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server and notify the supervisor."""
        await super().startup(sockets)
        self._line.setblocking(False)
        self._line.send(b".")
        asyncio.get_running_loop().add_reader(self._line, self._end)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._line)
        self.should_exit = True
