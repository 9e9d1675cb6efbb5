"""Worker processes of the service, and their supervisor, which replaces dead workers."""

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

It sends a byte when the worker is ready, and ends when the supervisor closes the socket or dies.
"""

_STABLE_SECONDS = 10.0
_MAX_PAUSE_SECONDS = 30.0
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass
class _WorkerProcess:
    pid: int
    channel: socket.socket
    started: float


@dataclass
class _Slot:
    """A slot for a worker and its replacements.

    Attributes:
        deaths: number of successive workers that died soon after their start.
        due: when the next worker starts.
    """

    worker: _WorkerProcess | None = None
    deaths: int = 0
    due: float = 0.0


class WorkerSupervisor:
    """A supervisor that keeps a number of workers alive, as forks of this process.

    It has no threads and connections, so that it can fork a worker at any time.

    Args:
        stop_seconds: seconds after which a stopping worker is killed.
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
        self._slots = [_Slot() for _ in range(workers)]
        self._wakeup, self._waker = socket.socketpair()
        self._signals: list[int] = []
        self._has_failed = False
        self._kill_at: float | None = None
        self._is_ready = False

    def run(self) -> None:
        """Keep workers alive until SIGTERM or SIGINT, then wait until the last worker has ended.

        Raises:
            KeyboardInterrupt: the signal was SIGINT.
            RagAssetsError: no worker could start.
        """
        with self._handle_signals():
            while not self._is_ending:
                self._start_due()
                self._wait()
            self._stopping()
            while self._map_channels_to_numbers():
                self._wait()
                if self._kill_at is not None and time.monotonic() >= self._kill_at:
                    self._kill_at = time.monotonic() + 1.0
                    self._send_signal(signal.SIGKILL)
        if self._has_failed:
            raise RagAssetsError("no worker could start", hint="the lines above show the cause")
        if signal.SIGINT in self._signals:
            raise KeyboardInterrupt

    @property
    def _is_ending(self) -> bool:
        return self._has_failed or bool(self._signals)

    def _map_channels_to_numbers(self) -> dict[socket.socket, int]:
        return {p.worker.channel: number for number, p in enumerate(self._slots) if p.worker}

    def _start_due(self) -> None:
        now = time.monotonic()
        for number, slot in enumerate(self._slots):
            if slot.worker is None and slot.due <= now and not self._is_ending:
                self._start(number, slot)

    def _start(self, number: int, slot: _Slot) -> None:
        own, worker_end = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal must not run the supervisor's handlers in the new worker.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        pid = os.fork()
        if pid == 0:
            own.close()
            self._run_worker(number, worker_end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
        worker_end.close()
        slot.worker = _WorkerProcess(pid, own, time.monotonic())

    def _run_worker(self, number: int, channel: socket.socket) -> NoReturn:
        """Do the work of a worker in its forked process, and end the process."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            # Uvicorn raises the signal again after it has stopped and closed its connections.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
            for other in (self._wakeup, self._waker, *self._map_channels_to_numbers()):
                other.close()
            self._work(number, channel)
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
        """Wait until a signal or a worker's message arrives, a worker ends, or a start is due."""
        numbers = self._map_channels_to_numbers()
        ready, _, _ = select.select([self._wakeup, *numbers], [], [], self._get_timeout())
        for readable in ready:
            if readable is self._wakeup:
                with suppress(BlockingIOError):
                    readable.recv(4_096)
            else:
                self._receive(numbers[readable], readable)

    def _get_timeout(self) -> float | None:
        now = time.monotonic()
        if self._kill_at is not None:
            return max(0.0, self._kill_at - now)
        due = [slot.due - now for slot in self._slots if slot.worker is None]
        return max(0.0, min(due)) if due else None

    def _receive(self, number: int, channel: socket.socket) -> None:
        try:
            data = channel.recv(1)
        except ConnectionError:
            data = b""
        if data:
            self._is_ready = True
        else:
            self._reap(number)

    def _reap(self, number: int) -> None:
        slot = self._slots[number]
        worker, slot.worker = slot.worker, None
        if worker is None:
            return
        worker.channel.close()
        _, status = os.waitpid(worker.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if self._is_ending:
            return
        if not self._is_ready:
            # The next worker would fail the same way.
            self._has_failed = True
            self._stop_workers(signal.SIGTERM)
            return
        lifetime = time.monotonic() - worker.started
        slot.deaths = 0 if lifetime > _STABLE_SECONDS else slot.deaths + 1
        pause = min(_MAX_PAUSE_SECONDS, 2.0 ** (slot.deaths - 2)) if slot.deaths > 1 else 0.0
        slot.due = time.monotonic() + pause
        self._report(number, f"signal {-code}" if code < 0 else f"exit code {code}")

    def _handle_signal(self, number: int, _frame: FrameType | None) -> None:
        # On the second Ctrl-C, workers stop without waiting for their requests.
        again = bool(self._signals) and number == signal.SIGINT
        self._signals.append(number)
        self._stop_workers(signal.SIGINT if again else signal.SIGTERM)

    def _stop_workers(self, number: signal.Signals) -> None:
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._stop_seconds
        self._send_signal(number)

    def _send_signal(self, number: signal.Signals) -> None:
        for slot in self._slots:
            if slot.worker is not None:
                with suppress(ProcessLookupError):
                    os.kill(slot.worker.pid, number)

    @contextmanager
    def _handle_signals(self) -> Iterator[None]:
        self._wakeup.setblocking(False)
        self._waker.setblocking(False)
        previous = {number: signal.signal(number, self._handle_signal) for number in _STOP_SIGNALS}
        wakeup = signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in previous.items():
                signal.signal(number, handler)
            self._wakeup.close()
            self._waker.close()


class WorkerServer(uvicorn.Server):
    """A uvicorn server that tells its supervisor when it is ready, and ends with the supervisor.

    Args:
        channel: socket to the supervisor; see Work.
    """

    def __init__(self, config: uvicorn.Config, channel: socket.socket) -> None:
        super().__init__(config)
        self._channel = channel

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server and notify the supervisor."""
        await super().startup(sockets)
        self._channel.setblocking(False)
        self._channel.send(b".")
        asyncio.get_running_loop().add_reader(self._channel, self._end)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._channel)
        self.should_exit = True
