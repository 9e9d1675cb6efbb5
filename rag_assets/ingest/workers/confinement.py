"""Confinement of a worker process while it parses a document.

Parsers are trusted code that reads hostile bytes. Limits bound the cost of a document. The audit
hook prevents a library's Python code from connecting to a server or starting a process because a
document requests it. It is not a sandbox against compromised native code.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.options import ParseLimits

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
    """A `with` block that forbids network and processes; create it once per process."""

    def __init__(self) -> None:
        self._inside = False
        sys.addaudithook(self._audit)

    def __enter__(self) -> None:
        self._inside = True

    def __exit__(self, *raised: object) -> None:
        self._inside = False

    def _audit(self, event: str, _: object) -> None:
        if not self._inside:
            return
        if event.startswith(_NETWORK):
            raise DocumentRejected(
                "the document made its parser use the network, which is forbidden"
            )
        if event.startswith(_PROCESSES):
            raise DocumentRejected(
                "the document made its parser start a process, which is forbidden"
            )


def limit_process() -> None:
    """Limit the resources of which the process needs only little, whatever the document."""
    import resource

    _soft_limit(resource.RLIMIT_CORE, 0)
    _soft_limit(resource.RLIMIT_NOFILE, _MOST_OPEN_FILES)
    _soft_limit(resource.RLIMIT_FSIZE, _MOST_FILE_BYTES)


def limit_document(limits: ParseLimits, more_seconds: float = 0.0) -> None:
    """Limit the resources that the next document may use in addition to those already in use."""
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
    except (OSError, ValueError):  # pragma: no cover - macOS cannot limit address space
        return


def _address_space() -> int:
    """Return the bytes of address space in use; 0 without /proc."""
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[0]
    except OSError:  # pragma: no cover - not Linux
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
