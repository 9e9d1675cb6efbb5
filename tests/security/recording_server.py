"""A provider of embeddings, answers and rankings that records all requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.embedding_server import _openai_answer, _vectors

DIMENSIONS = 16


@dataclass
class RecordingServer:
    """The state of a recording server.

    Attributes:
        received: bodies of requests, by the last part of their path.
    """

    port: int = 0
    received: dict[str, list[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Return the server's base URL."""
        return f"http://127.0.0.1:{self.port}/v1"


@contextmanager
def recording_server() -> Iterator[RecordingServer]:
    """Run a server until the block ends."""
    state = RecordingServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            kind = self.path.rpartition("/")[2]
            state.received.setdefault(kind, []).append(raw)
            body = json.dumps(_answer(kind, json.loads(raw))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def _answer(kind: str, asked: dict[str, Any]) -> dict[str, Any]:
    if kind == "embeddings":
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        return _openai_answer(asked, texts, _vectors(texts, DIMENSIONS))
    if kind == "rerank":
        count = len(asked.get("documents") or asked.get("texts") or [])
        return {"results": [{"index": n, "relevance_score": 1 / (n + 1)} for n in range(count)]}
    message = {"role": "assistant", "content": "The valve opens at 4 bar [1]."}
    return {
        "id": "a",
        "object": "chat.completion",
        "created": 0,
        "model": asked["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


__all__ = ["DIMENSIONS", "RecordingServer", "recording_server"]
