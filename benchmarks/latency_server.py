"""An embedding server with OpenAI's API that takes the same time for every request.

    python -m benchmarks.latency_server --milliseconds 200 --dimensions 1536

Prints its port, and serves until its input is closed. It does as little as possible, so that two
cores are left to the measured client: it parses no request, and answers are made beforehand.
With --counting it counts the texts of each request, which may then be any number up to 100.
GET /arrivals returns the time of arrival of each request.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time

import numpy as np

from benchmarks.measure import create_parser

TEXTS = 100
"""Number of texts that every request must hold."""


def build_answer(dimensions: int, texts: int = TEXTS) -> bytes:
    """Return a complete HTTP response with random vectors."""
    vectors = np.random.default_rng(texts).normal(size=(texts, dimensions)).astype("<f4")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    data = [
        {"object": "embedding", "index": n, "embedding": base64.b64encode(vector).decode()}
        for n, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 25_000, "total_tokens": 25_000}
    return _build_response({"object": "list", "data": data, "model": "any", "usage": usage})


def _build_response(body: object) -> bytes:
    raw = json.dumps(body).encode()
    head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw


class LatencyServer:
    """An embedding server with a fixed latency.

    Args:
        seconds: time from a request's last byte to its answer's first.
        dimensions: length of the vectors.
        counting: whether requests may hold other numbers of texts than TEXTS.
    """

    def __init__(self, seconds: float, dimensions: int, *, counting: bool = False) -> None:
        self._seconds = seconds
        self._answer = build_answer(dimensions)
        self._answers = {TEXTS: self._answer}
        self._counted = (lambda texts: build_answer(dimensions, texts)) if counting else None
        self._arrivals: list[float] = []

    async def serve(self) -> None:
        """Serve until the input is closed."""
        server = await asyncio.start_server(self._serve_client, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)
        server.close()

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(_parse_content_length(head))
                if head.startswith(b"GET"):
                    writer.write(_build_response(self._arrivals))
                else:
                    self._arrivals.append(time.monotonic())
                    await asyncio.sleep(self._seconds)
                    writer.write(self._choose_answer(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            writer.close()

    def _choose_answer(self, body: bytes) -> bytes:
        if self._counted is None:
            return self._answer
        texts = len(json.loads(body)["input"])
        if texts not in self._answers:
            self._answers[texts] = self._counted(texts)
        return self._answers[texts]


def _parse_content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def main() -> None:
    """Serve until the input is closed."""
    parser = create_parser(__doc__)
    parser.add_argument("--milliseconds", type=float, default=200)
    parser.add_argument("--dimensions", type=int, default=1536)
    parser.add_argument("--counting", action="store_true")
    arguments = parser.parse_args()
    server = LatencyServer(
        arguments.milliseconds / 1000, arguments.dimensions, counting=arguments.counting
    )
    asyncio.run(server.serve())


if __name__ == "__main__":
    main()
