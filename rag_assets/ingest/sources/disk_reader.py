"""Time limits for reads from a disk or a share.

If the server of a share is unreachable, a reader is blocked in the kernel, where neither an
exception nor a signal reaches it. So a source reads its folder in threads that the process can
abandon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from rag_assets.common.errors import DocumentUnreachable, ListingFailed
from rag_assets.ingest.sources.roots import Roots

LOCATE_SECONDS: Final = 20.0
"""Time limit for the folder itself to respond, which shows whether the share is available."""
READ_SECONDS: Final = 180.0
"""Time limit for a few hundred files of a listing, or for a few pieces of a file."""
DOCUMENTS_AT_ONCE = 256
"""Number of files of a listing that are read together under one time limit."""

_Result = TypeVar("_Result")


class DiskReader:
    """Reads one source's folder, and gives up when the folder does not respond.

    Args:
        source: the source's given name.
        folder: the folder, for error messages.
    """

    def __init__(self, source: str, folder: Path) -> None:
        self._source = source
        self._folder = folder
        self._hung_seconds = 0.0
        self._idle: list[_Worker] = []

    def locate(self, roots: Roots, *, follow_link: bool) -> Path:
        """Return the folder that the source's root stands for, as Roots.locate does.

        If the folder does not respond, return the configured root; every later read then fails.

        Raises:
            ConfigurationError: the root must not be used.
        """
        locate = partial(roots.locate, self._source, self._folder, follow_link=follow_link)
        try:
            return self.call(locate, LOCATE_SECONDS)
        except ListingFailed:
            return self._folder

    def call(self, read: Callable[[], _Result], seconds: float | None = None) -> _Result:
        """Call a function that reads the folder; nested calls count towards its time limit.

        Args:
            read: the function.
            seconds: time limit; READ_SECONDS by default.

        Raises:
            ListingFailed: the folder does not respond, or did not respond to an earlier call.
        """
        seconds = seconds or READ_SECONDS
        if self._hung_seconds:
            raise self._failure()
        if isinstance(threading.current_thread(), _DiskThread):
            return read()
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker()
        try:
            result = worker.call(read, seconds)
        except Empty:
            self._hung_seconds = seconds
            raise self._failure() from None
        self._idle.append(worker)
        if isinstance(result, _Raised):
            raise result.error
        return result

    def items(self, items: Iterator[_Result], at_once: int | None = None) -> Iterator[_Result]:
        """Yield the items of an iterator that reads the folder.

        Raises:
            ListingFailed: as in call().
        """
        at_once = at_once or DOCUMENTS_AT_ONCE
        while batch := self.call(lambda: list(islice(items, at_once))):
            yield from batch
            if len(batch) < at_once:
                return

    def content(self, pieces: Iterator[bytes], path: str) -> Iterator[bytes]:
        """Yield the pieces of a file.

        Raises:
            DocumentUnreachable: the folder does not respond.
        """
        try:
            yield from self.items(pieces, at_once=1)
        except ListingFailed as error:
            raise DocumentUnreachable(
                f"the document {path!r} cannot be read now ({error.message})",
                hint="the document is read again later; check the disk or share that contains it",
            ) from error

    def _failure(self) -> ListingFailed:
        return ListingFailed(
            f"the folder {str(self._folder)!r} did not answer for {self._hung_seconds:.0f} s",
            hint="mount the disk or share of the folder again; until then its documents are kept",
        )


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _DiskThread(threading.Thread):
    pass


class _Worker:
    """A thread that calls functions; it ends with the process, or with the reader that owns it."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._results: SimpleQueue[object] = SimpleQueue()
        _DiskThread(
            target=_work, args=(self._calls, self._results), name="disk", daemon=True
        ).start()

    def __del__(self) -> None:
        self._calls.put(None)

    def call(self, read: Callable[[], _Result], seconds: float) -> _Result | _Raised:
        """Call a function, and wait for its result.

        Raises:
            Empty: the function does not return in time.
        """
        self._calls.put(read)
        return self._results.get(timeout=seconds)  # type: ignore[return-value]


def _work(calls: SimpleQueue[Callable[[], object] | None], results: SimpleQueue[object]) -> None:
    while (read := calls.get()) is not None:
        try:
            results.put(read())
        except BaseException as error:  # the caller raises it
            results.put(_Raised(error))
        del read
