"""The process in which documents are parsed, scanned and masked.

Started by the pool as `python -m rag_assets.parsing.worker`. It takes documents from standard
input and answers on standard output, one message each (see messages.py): first its settings, then
`{"ready": true}` back once the scanner is loaded, then one answer per document. It ends when
standard input closes, thus also when its parent is killed, even in the midst of a document.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from rag_assets.errors import ConfigurationError, DocumentRejected
from rag_assets.parsing.limits import ParseLimits
from rag_assets.parsing.messages import read_message, write_message
from rag_assets.parsing.options import ParseOptions
from rag_assets.parsing.records import to_record
from rag_assets.secrets.scanner import SecretScanner

TOO_COSTLY = "it needs more memory than one document may use"
_GRACE_SECONDS = 2

_Message = tuple[dict[str, Any], bytes]


def main() -> None:
    """Serve until standard input closes."""
    from rag_assets.parsing.parse import prepare_for

    # Whatever prints must not end up between two messages.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    settings = read_message(sys.stdin.buffer)
    if settings is None:
        return
    limits = ParseLimits(**settings[0]["limits"])
    cache = settings[0]["cache_dir"]
    scanner = SecretScanner(Path(cache) if cache else None, timeout=limits.seconds)
    documents: queue.SimpleQueue[_Message] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, documents), daemon=True).start()
    _prepare(scanner)
    write_message(out, {"ready": True})
    while True:
        header, data = documents.get()
        prepare_for(data, header["media_type"])
        _limit(limits)
        answer, text = _answer(header, data, scanner, limits)
        write_message(out, answer, text)


def _receive(stream: IO[bytes], documents: queue.SimpleQueue[_Message]) -> None:
    """Hand on what arrives; the end of it is the end of the process, whatever it is doing."""
    while (message := read_message(stream)) is not None:
        documents.put(message)
    os._exit(0)


def _prepare(scanner: SecretScanner) -> None:
    """Load all that documents need, so that no document pays for it, in time or in memory."""
    from rag_assets.parsing import markdown, masked, parse  # noqa: F401

    scanner.load()


def _answer(
    header: Mapping[str, Any], data: bytes, scanner: SecretScanner, limits: ParseLimits
) -> tuple[dict[str, Any], bytes]:
    """The answer to one document: its record with the text beside it, or why there is none."""
    from rag_assets.parsing.masked import masked
    from rag_assets.parsing.parse import parse

    try:
        parsed = parse(data, header["media_type"], ParseOptions(**header["options"]), limits)
        record = to_record(masked(parsed, scanner))
        text = record.pop("text").encode()
    except (DocumentRejected, ConfigurationError) as error:
        return {"rejected": error.message, "hint": error.hint}, b""
    except MemoryError:
        return {"too_costly": TOO_COSTLY}, b""
    except RecursionError:
        return {"rejected": "it is nested too deeply", "hint": None}, b""
    except TimeoutError:
        return {"late": "scanning it for credentials took too long"}, b""
    except Exception as error:
        # A parser may fail in any way, and its own message may quote the document.
        return {"rejected": f"its parser failed ({type(error).__name__})", "hint": None}, b""
    return {"parsed": record}, text


def _limit(limits: ParseLimits) -> None:
    """Bound what the next document may take on top of what the process has by now."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime + limits.seconds + _GRACE_SECONDS
    _soft_limit(resource.RLIMIT_CPU, int(seconds) + 1)
    _soft_limit(resource.RLIMIT_AS, _address_space() + limits.memory_bytes)
    _soft_limit(resource.RLIMIT_CORE, 0)


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


if __name__ == "__main__":
    main()
