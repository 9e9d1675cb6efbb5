"""Log lines of servers: JSON on standard error, written in the background.

The log is often a pipe, whose reader may stop. A separate thread writes the lines, so that requests
are answered while it is blocked. When its queue is full, further lines are dropped and counted.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from queue import Empty, Full, Queue
from select import select
from time import sleep
from typing import IO

LOGGER = logging.getLogger("rag_assets.api")

_OWN_LOGGER = LOGGER.name.partition(".")[0]
_FIELDS = ("request_id", "method", "route", "status", "ms", "caller", "tenant", "reason", "lines")
_MASKED_FIELDS = ("event", "caller", "tenant", "reason", "request_id")
_OWN_ID = re.compile("[0-9a-f]{32}")
_MAX_WAITING_LINES = 10_000
_GATHER_SECONDS = 0.02
_LAST_SECONDS = 1.0
_MAX_EVENT_CHARACTERS = 200


class JsonLineFormatter(logging.Formatter):
    """A formatter of records as JSON, one object per line, with the extra fields of the record.

    Values and tracebacks in messages of libraries are left out, because they may quote a key or a
    document.

    Args:
        mask: masks credentials in the fields of a record; must be fast for repeated values.
    """

    def __init__(self, mask: Callable[[str], str]) -> None:
        super().__init__()
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line of JSON."""
        is_own = record.name.partition(".")[0] == _OWN_LOGGER
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            # A template of a library has no arguments filled in.
            "event": record.getMessage()
            if is_own
            else str(record.msg).strip().partition("\n")[0][:_MAX_EVENT_CHARACTERS],
        }
        if record.name != LOGGER.name:
            line["logger"] = record.name
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        line |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        for name in _MASKED_FIELDS:
            if isinstance(value := line.get(name), str) and not _OWN_ID.fullmatch(value):
                line[name] = self._mask(value)
        return json.dumps(line, ensure_ascii=True)


class BackgroundLogHandler(logging.Handler):
    """A handler that writes lines in a separate thread; see the module.

    Args:
        descriptor: file descriptor of the log. It is not a stream, because Python cannot exit while
            a thread is blocked in a stream.
        lock: file to lock while writing, if other processes write to the same log.
    """

    def __init__(
        self, descriptor: int, max_waiting: int = _MAX_WAITING_LINES, lock: IO[bytes] | None = None
    ) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lock_file = lock
        self._waiting: Queue[str | None] = Queue(max_waiting)
        self._dropped = 0
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the line of a record for the thread; drop and count it if the queue is full."""
        try:
            self._waiting.put_nowait(self.format(record))
        except Full:
            with self._counting:
                self._dropped += 1

    def close(self) -> None:
        """Write the waiting lines and end the thread, or give up after about a second."""
        try:
            self._waiting.put(None, timeout=_LAST_SECONDS)
        except Full:
            pass
        else:
            self._thread.join(_LAST_SECONDS)
        super().close()

    def _run(self) -> None:
        is_ending = False
        while not is_ending:
            lines = [self._waiting.get()]
            # Waking up the thread costs more than writing a line.
            if lines[0] is not None:
                sleep(_GATHER_SECONDS)
            lines += self._take_waiting()
            is_ending = None in lines
            self._write_lines(
                [line for line in lines if line is not None] + self._describe_dropped()
            )

    def _take_waiting(self) -> list[str | None]:
        waiting: list[str | None] = []
        try:
            while True:
                waiting.append(self._waiting.get_nowait())
        except Empty:
            return waiting

    def _describe_dropped(self) -> list[str]:
        with self._counting:
            lines, self._dropped = self._dropped, 0
        if not lines:
            return []
        about = logging.makeLogRecord(
            {
                "name": LOGGER.name,
                "msg": "log lines were dropped",
                "levelname": "WARNING",
                "lines": lines,
            }
        )
        return [self.format(about)]

    def _write_lines(self, lines: list[str]) -> None:
        data = "".join(f"{line}\n" for line in lines).encode()
        # The reader may have closed the pipe.
        with suppress(OSError), self._lock_writes():
            while data:
                data = data[os.write(self._descriptor, data) :]

    @contextmanager
    def _lock_writes(self) -> Iterator[None]:
        """Prevent other processes from writing until the block ends."""
        if self._lock_file is None:
            yield
            return
        fcntl.lockf(self._lock_file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._lock_file, fcntl.LOCK_UN)


def write_warning(event: str, reason: str, mask: Callable[[str], str]) -> None:
    """Write a warning to standard error without a thread; drop it if that would block.

    Args:
        mask: see JsonLineFormatter.
    """
    fields = {"name": LOGGER.name, "levelname": "WARNING", "msg": event, "reason": reason}
    line = JsonLineFormatter(mask).format(logging.makeLogRecord(fields))
    descriptor = sys.stderr.fileno()
    if select([], [descriptor], [], 0)[1]:
        os.write(descriptor, f"{line}\n".encode())


@contextmanager
def log_to_standard_error(
    mask: Callable[[str], str], lock: IO[bytes] | None = None
) -> Iterator[None]:
    """Write our log lines and warnings of libraries to standard error until the block ends."""
    handler = BackgroundLogHandler(sys.stderr.fileno(), lock=lock)
    handler.setFormatter(JsonLineFormatter(mask))
    root = logging.getLogger()
    before = root.level, LOGGER.level
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before[0])
        LOGGER.setLevel(before[1])
        handler.close()
