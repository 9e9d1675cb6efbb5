"""What a worker process may not do while it has a document in hand.

Parsers are trusted code that reads hostile bytes. Limits bound what a document can cost; the audit
hook makes sure that Python code of a library fetches nothing and starts nothing because a document
says so. It is no sandbox against native code that was taken over.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.limits import ParseLimits

_GRACE_SECONDS = 2
_MOST_OPEN_FILES = 256
_MOST_FILE_BYTES = 16 * 1024**2
_NETWORK = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostby",
    "socket.bind",
    "socket.send",
)
_PROCESSES = (
    "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
    "pty.spawn", "os.startfile",
)  # fmt: skip


class Confinement:
    """Forbids network and processes between `with` and its end; made once per process."""

    def __init__(self) -> None:
        self._inside = False
        sys.addaudithook(self._audit)

    def __enter__(self) -> None:
        self._inside = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inside = False

    def _audit(self, event: str, _: object) -> None:
        if not self._inside:
            return
        if event.startswith(_NETWORK):
            raise DocumentRejected("it made its parser reach for the network, which is forbidden")
        if event.startswith(_PROCESSES):
            raise DocumentRejected("it made its parser start a process, which is forbidden")


def limit_process() -> None:
    """Bound what the process needs little of, whatever the document."""
    import resource

    _soft_limit(resource.RLIMIT_CORE, 0)
    _soft_limit(resource.RLIMIT_NOFILE, _MOST_OPEN_FILES)
    _soft_limit(resource.RLIMIT_FSIZE, _MOST_FILE_BYTES)


def limit_document(limits: ParseLimits, more_seconds: float = 0.0) -> None:
    """Bound what the next document may take on top of what the process has by now."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime + limits.seconds + more_seconds + _GRACE_SECONDS
    _soft_limit(resource.RLIMIT_CPU, int(seconds) + 1)
    _soft_limit(resource.RLIMIT_AS, _address_space() + limits.memory_bytes)


def _soft_limit(kind: int, wanted: int) -> None:
    import resource

    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    try:
        resource.setrlimit(kind, (wanted, hard))
    except (OSError, ValueError):  # pragma: no cover - macOS knows no bound on address space
        return


def _address_space() -> int:
    """Bytes of address space in use; zero where there is no /proc to ask."""
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[0]
    except OSError:  # pragma: no cover - not Linux
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
