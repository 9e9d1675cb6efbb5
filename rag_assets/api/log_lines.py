"""Log lines of servers: JSON on standard error, written in the background.

A log is often a pipe, and the program that reads it may stop. Therefore a separate thread writes
the lines. While that thread is blocked, requests are still answered and lines wait in a queue. When
the queue is full, further lines are dropped and counted.
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

_OURS = LOGGER.name.partition(".")[0]
_FIELDS = ("request_id", "method", "route", "status", "ms", "caller", "tenant", "reason", "lines")
_MASKED = ("event", "caller", "tenant", "reason", "request_id")
_OUR_ID = re.compile("[0-9a-f]{32}")
_MAX_WAITING = 10_000
_GATHER_SECONDS = 0.02
_LAST_SECONDS = 1.0
_LONGEST_EVENT = 200


class JsonLines(logging.Formatter):
    """A formatter that writes one JSON object per line, with the extra fields of the record.

    Messages of libraries are reduced to logger, event and type of error, because their values and
    tracebacks may quote a key or a document.

    Args:
        masked: function that masks credentials in the fields of a record; must be fast for repeated
            values.
    """

    def __init__(self, masked: Callable[[str], str]) -> None:
        super().__init__()
        self._masked = masked

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        ours = record.name.partition(".")[0] == _OURS
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage() if ours else _template(record),
        }
        if record.name != LOGGER.name:
            line["logger"] = record.name
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        line |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        for name in _MASKED:
            if isinstance(value := line.get(name), str) and not _OUR_ID.fullmatch(value):
                line[name] = self._masked(value)
        return json.dumps(line, ensure_ascii=True)


def _template(record: logging.LogRecord) -> str:
    """Return the first line of a message template, without the arguments filled in."""
    return str(record.msg).strip().partition("\n")[0][:_LONGEST_EVENT]


class BackgroundLogHandler(logging.Handler):
    """A handler that writes lines in a separate thread; see the module.

    Args:
        descriptor: descriptor of an open file. It is not a stream, because Python cannot exit while
            another thread is blocked in a stream.
        max_waiting: maximum number of waiting lines.
        lock: a file to lock while lines are written, if other processes write to the same log.
    """

    def __init__(
        self, descriptor: int, max_waiting: int = _MAX_WAITING, lock: IO[bytes] | None = None
    ) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lock_file = lock
        self._waiting: Queue[str | None] = Queue(max_waiting)
        self._dropped = 0
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line and return immediately."""
        try:
            self._waiting.put_nowait(self.format(record))
        except Full:
            with self._counting:
                self._dropped += 1

    def close(self) -> None:
        """Write the waiting lines, unless that takes longer than a second."""
        try:
            self._waiting.put(None, timeout=_LAST_SECONDS)
        except Full:
            pass
        else:
            self._thread.join(_LAST_SECONDS)
        super().close()

    def _write(self) -> None:
        ending = False
        while not ending:
            lines = [self._waiting.get()]
            # All lines of a short interval are written together, because waking up the thread costs
            # more than writing a line.
            if lines[0] is not None:
                sleep(_GATHER_SECONDS)
            lines += self._rest()
            ending = None in lines
            self._put([line for line in lines if line is not None] + self._about_dropped())

    def _rest(self) -> list[str | None]:
        rest: list[str | None] = []
        try:
            while True:
                rest.append(self._waiting.get_nowait())
        except Empty:
            return rest

    def _about_dropped(self) -> list[str]:
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

    def _put(self, lines: list[str]) -> None:
        rest = "".join(f"{line}\n" for line in lines).encode()
        # The reader may have closed the pipe.
        with suppress(OSError), self._lock_writes():
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    @contextmanager
    def _lock_writes(self) -> Iterator[None]:
        """Keep other processes from writing between or within the lines."""
        if self._lock_file is None:
            yield
            return
        fcntl.lockf(self._lock_file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._lock_file, fcntl.LOCK_UN)


def write_line(event: str, reason: str, masked: Callable[[str], str]) -> None:
    """Write a warning to standard error without a thread, unless that would block.

    Args:
        event: what happened.
        reason: why.
        masked: see JsonLines.
    """
    fields = {"name": LOGGER.name, "levelname": "WARNING", "msg": event, "reason": reason}
    line = JsonLines(masked).format(logging.makeLogRecord(fields))
    descriptor = sys.stderr.fileno()
    if select([], [descriptor], [], 0)[1]:
        os.write(descriptor, f"{line}\n".encode())


@contextmanager
def logging_to_standard_error(
    masked: Callable[[str], str], lock: IO[bytes] | None = None
) -> Iterator[None]:
    """Write our log lines and the warnings of libraries to standard error until the block ends.

    Args:
        masked: see JsonLines.
        lock: see BackgroundLogHandler.
    """
    handler = BackgroundLogHandler(sys.stderr.fileno(), lock=lock)
    handler.setFormatter(JsonLines(masked))
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
