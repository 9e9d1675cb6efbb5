"""Put load from many callers on the service; each sends its next question after its last answer.

    RAG_ASSETS_TOKEN=… python -m benchmarks.serving.service_load URL FILE --callers 50

Requests are built beforehand and answers parsed afterwards, over bare sockets, so that two cores
are left to the servers: a request takes about 0.1 ms of this process.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from urllib.parse import urlsplit

from benchmarks.serving.load import LoadOptions, LoadTimer, build_parser
from benchmarks.serving.questions import read_questions


async def send_requests(
    host: str, port: int, requests: Iterator[bytes], callers: int
) -> tuple[LoadTimer, list[bytes]]:
    """Send every request; return times and the bodies of the answers."""
    timed, bodies = LoadTimer(), []
    streams = [await asyncio.open_connection(host, port) for _ in range(callers)]

    async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for request in requests:
            with timed.time_request():
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                bodies.append(await reader.readexactly(_parse_content_length(head)))
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"the service answered {bodies[-1][:500]!r}")

    with timed.time_load():
        await asyncio.gather(*(call(*stream) for stream in streams))
    for _, writer in streams:
        writer.close()
    return timed, bodies


def build_requests(options: LoadOptions, token: str) -> Iterator[bytes]:
    """Yield the requests as bytes."""
    parts = urlsplit(options.url)
    texts = read_questions(options.questions).queries
    for number in options.choose_questions(len(texts)):
        query = {"query": texts[number], "top_k": options.top_k, "mode": options.mode}
        body = json.dumps(query).encode()
        yield (
            f"POST /rag/query HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body


def _parse_content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    raise SystemExit("an answer has no Content-Length")


def main() -> None:
    """Send the requests, and report their times."""
    options = build_parser(__doc__).parse_args(namespace=LoadOptions())
    parts = urlsplit(options.url)
    requests = list(build_requests(options, os.environ["RAG_ASSETS_TOKEN"]))
    timed, bodies = asyncio.run(
        send_requests(str(parts.hostname), int(parts.port or 80), iter(requests), options.callers)
    )
    timed.print_report([len(json.loads(body)["hits"]) for body in bodies])


if __name__ == "__main__":
    main()
