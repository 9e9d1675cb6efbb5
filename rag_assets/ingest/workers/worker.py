"""The process in which documents are parsed, scanned and masked, and parsed texts are chunked.

The pool starts it as `python -m rag_assets.ingest.workers.worker`. It reads documents from standard
input and answers on standard output, one message each: a JSON header, followed by bytes. First it
receives its settings, and replies `{"ready": true}` once the scanner is loaded. Then it sends one
answer for each document; before an answer, it may ask for more time (`{"more_seconds": 40}`). A
message to chunk contains parsed texts instead of a document. The process exits when standard input
closes, and so also when its parent is killed, even while it parses a document.

Parsers are trusted code that reads hostile bytes. Limits bound the cost of a document. The audit
hook prevents a library's Python code from connecting to a server or starting a process because a
document requests it. It is not a sandbox against compromised native code.
"""

from __future__ import annotations

import json
import os
import queue
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from rag_assets.common.errors import (
    ConfigurationError,
    DocumentRejected,
    DocumentTimeout,
    ParserUnusable,
)
from rag_assets.ingest.parsing.model import from_record, to_record
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions

if TYPE_CHECKING:
    from rag_assets.privacy.secrets.scanner import SecretScanner

_LENGTHS = struct.Struct(">QQ")


def pack_header(header: Mapping[str, Any]) -> bytes:
    """Return a header as JSON bytes.

    Raises:
        UnicodeEncodeError: a text in the header contains a lone surrogate, which no store
            accepts.
    """
    try:
        return orjson.dumps(header)
    except TypeError:
        # The json module names the value that it cannot encode, and accepts deeper values and
        # larger numbers.
        return json.dumps(header, ensure_ascii=False).encode()


def write_message(stream: IO[bytes], header: Mapping[str, Any], data: bytes = b"") -> None:
    """Write a header and data as one message to a stream, and flush the stream."""
    write_packed(stream, pack_header(header), data)


def write_packed(stream: IO[bytes], header: bytes, data: bytes) -> None:
    """Write a message whose header is already encoded, and flush the stream."""
    stream.write(_LENGTHS.pack(len(header), len(data)))
    stream.write(header)
    stream.write(data)
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Read the header and data of one message; None if the other side has ended."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_length, data_length = _LENGTHS.unpack(lengths)
    raw = stream.read(header_length)
    data = stream.read(data_length)
    if len(raw) < header_length or len(data) < data_length:
        return None
    return orjson.loads(raw), data


_GRACE_SECONDS = 2
_MAX_OPEN_FILES = 256
_MAX_FILE_BYTES = 16 * 1024**2
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
    """Forbids network access and new processes in its block; create it once per process."""

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
    """Set limits for core dumps, open files and file sizes that no document should exceed."""
    import resource

    _set_soft_limit(resource.RLIMIT_CORE, 0)
    _set_soft_limit(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    _set_soft_limit(resource.RLIMIT_FSIZE, _MAX_FILE_BYTES)


def limit_document(limits: ParseLimits, more_seconds: float = 0.0) -> None:
    """Limit the CPU time and memory that the next document may add to what is already used."""
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime + limits.seconds + more_seconds + _GRACE_SECONDS
    _set_soft_limit(resource.RLIMIT_CPU, int(seconds) + 1)
    _set_soft_limit(resource.RLIMIT_AS, _measure_address_space() + limits.memory_bytes)


def _set_soft_limit(kind: int, limit: int) -> None:
    import resource

    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    try:
        resource.setrlimit(kind, (limit, hard))
    except (OSError, ValueError):  # pragma: no cover - macOS cannot limit address space
        return


def _measure_address_space() -> int:
    """Return the bytes of address space in use; 0 without /proc."""
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[0]
    except OSError:  # pragma: no cover - not Linux
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


_Message = tuple[dict[str, Any], bytes]


def main() -> None:
    """Serve as a worker process with its own scanner."""
    from rag_assets.privacy.secrets.scanner import SecretScanner

    serve(lambda cache, seconds: SecretScanner(cache, timeout=seconds))


def serve(build_scanner: Callable[[Path | None, float], SecretScanner]) -> None:
    """Answer messages from standard input until it closes."""
    from rag_assets.ingest.parsing.registry import warm_up_parser

    # Printed output must not end up in the stream of messages.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    settings = read_message(sys.stdin.buffer)
    if settings is None:
        return
    limits = ParseLimits(**settings[0]["limits"])
    cache = settings[0]["cache_dir"]
    scanner = build_scanner(Path(cache) if cache else None, limits.seconds)
    documents: queue.SimpleQueue[_Message] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, documents), daemon=True).start()
    prepare(scanner)
    limit_process()
    confinement = Confinement()
    write_message(out, {"ready": True})
    while True:
        header, data = documents.get()
        if "chunk" in header:
            limit_document(limits)
            with confinement:
                answer = _chunk_texts(header["chunk"], data)
            write_packed(out, answer, b"")
            continue
        options = ParseOptions.from_record(header["options"])
        warm_up_parser(data, header["media_type"], options)
        limit_document(limits)
        if more := _compute_more_seconds(data, header["media_type"], options, limits):
            write_message(out, {"more_seconds": more})
            limit_document(limits, more)
        with confinement:
            answer, text = _parse_document(data, header["media_type"], options, scanner, limits)
        write_packed(out, answer, text)


def _chunk_texts(requests: list[list[Any]], texts: bytes) -> bytes:
    """Return the encoded chunk sets of texts whose bytes follow each other; empty on failure."""
    from rag_assets.ingest.chunking.chunk_set import chunk_document
    from rag_assets.ingest.chunking.chunk_set import to_record as chunk_set_record
    from rag_assets.ingest.chunking.chunkers import find_worker_chunker
    from rag_assets.ingest.chunking.kinds import ChunkParameters

    records, at = [], 0
    try:
        for chunker, limits, digest, length, record in requests:
            parsed = from_record({**record, "text": texts[at : at + length].decode()})
            kind = find_worker_chunker(chunker)
            if kind is None:
                return pack_header({})
            parameters = ChunkParameters(kind, *limits)
            chunk_set = chunk_document(parsed, parameters, parsed_digest=digest)
            records.append(chunk_set_record(chunk_set))
            at += length
        return pack_header({"chunk_sets": records})
    except Exception:  # the caller tries again in its own process, and gets the error there
        return pack_header({})


def _receive(stream: IO[bytes], documents: queue.SimpleQueue[_Message]) -> None:
    """Put messages from the parent into the queue; end the process when the stream ends."""
    while (message := read_message(stream)) is not None:
        documents.put(message)
    os._exit(0)


def prepare(scanner: SecretScanner) -> None:
    """Load all parsing libraries, so that loading does not count towards any document's limits."""
    from rag_assets.ingest.parsing import markdown, masking, registry  # noqa: F401

    scanner.load()


def prepare_chunking() -> None:
    """Load the libraries for chunking."""
    from rag_assets.common.tokens import count_text
    from rag_assets.ingest.chunking.chunkers import import_fact_readers
    from rag_assets.ingest.parsing.languages import load_detector

    import_fact_readers()
    count_text("word")
    load_detector()


def _compute_more_seconds(
    data: bytes, media_type: str | None, options: ParseOptions, limits: ParseLimits
) -> float:
    from rag_assets.ingest.parsing.registry import more_seconds

    try:
        return more_seconds(data, media_type, options, limits)
    except Exception:
        return 0.0  # parsing raises the same error


def _parse_document(
    data: bytes,
    media_type: str | None,
    options: ParseOptions,
    scanner: SecretScanner,
    limits: ParseLimits,
) -> tuple[bytes, bytes]:
    """Return the encoded header and the data of the answer to one document."""
    from rag_assets.ingest.parsing.masking import mask_document
    from rag_assets.ingest.parsing.registry import parse
    from rag_assets.privacy.described import StrictScanner

    try:
        parsed = parse(data, media_type, options, limits)
        finder = StrictScanner(scanner) if options.strict_secrets else scanner
        record = to_record(mask_document(parsed, finder))
        text = record.pop("text").encode()
        return pack_header({"parsed": record}), text
    except BaseException as error:  # a panic of a library written in Rust is not an Exception
        return pack_header(_describe_failure(error)), b""


def _describe_failure(error: BaseException) -> dict[str, Any]:
    match error:
        case DocumentTimeout():
            return {"late": error.message}
        case DocumentRejected():
            return {"rejected": error.message, "hint": error.hint, "as": type(error).__name__}
        case ConfigurationError():
            return {"rejected": error.message, "hint": error.hint, "as": ParserUnusable.__name__}
        case MemoryError():
            return {"too_costly": True}
        case TimeoutError():
            return {"late": "scanning the document for credentials took too long"}
        case RecursionError():
            reason = "the document is nested too deeply"
        case _:
            # A parser may fail in any way, and the error's own message may quote the document.
            reason = f"the parser of the document failed ({type(error).__name__})"
    return {"rejected": reason, "hint": None}


if __name__ == "__main__":
    main()
