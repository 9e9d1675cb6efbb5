"""A server with the embedding APIs of OpenAI and Gemini, which counts requests and injects faults.

    with embedding_server() as server:
        server.faults += [Status(429, retry_after="1"), Cut()]

The first requests meet these faults in their order; later requests succeed. A vector is derived
from a hash of the text, so searches find nothing by meaning.
"""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from rag_assets.common.hashing import sha256_hex
from rag_assets.models.providers.local import DeterministicEmbedder


@dataclass(frozen=True)
class Status:
    """An error response in OpenAI's format."""

    code: int
    retry_after: str | None = None
    reason: str = "told_to"


@dataclass(frozen=True)
class Cut:
    """A connection that ends before the response, or halfway through it."""

    halfway: bool = False


@dataclass(frozen=True)
class Slow:
    """A response that takes so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Spoilt:
    """A response whose JSON is changed before it is sent, or replaced with other bytes."""

    change: Callable[[dict[str, Any]], dict[str, Any] | bytes]


Fault = Status | Cut | Slow | Spoilt


@dataclass
class EmbeddingServer:
    """The state of a server, with the faults that it injects.

    Attributes:
        faults: the faults of the next requests; None for a good response.
        always: the fault of all further requests.
        rejects: whether a text makes its request fail with the status `rejection`.
        spoils: whether the vector of a text is `spoilt`, which may be any JSON.
        seconds: duration of a response.
        cosine: the cosine of a text with each text for which this returns None; without it, vectors
            are derived from hashes.
        requests: the texts of each request, in order of arrival.
        answered: how often each text was answered, and thus charged.
        keys: the keys of the requests.
    """

    dimensions: int = 16
    seconds: float = 0.0
    faults: deque[Fault | None] = field(default_factory=deque)
    always: Fault | None = None
    rejects: Callable[[str], bool] = lambda text: False
    rejection: int = 400
    spoils: Callable[[str], bool] = lambda text: False
    spoilt: Any = None
    cosine: Callable[[str], float | None] | None = None
    requests: list[list[str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    keys: set[str] = field(default_factory=set)
    most_under_way: int = 0
    port: int = 0
    _under_way: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """Return the base_url for a tenant."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def origin(self) -> str:
        """Return the URL without a path, which Gemini's SDK requires."""
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def received(self, texts: list[str], key: str) -> Iterator[Fault | None]:
        """Record a request; yield its fault."""
        with self._lock:
            self.requests.append(texts)
            self.times.append(time.monotonic())
            self.keys.add(key)
            self._under_way += 1
            self.most_under_way = max(self.most_under_way, self._under_way)
            fault = self.faults.popleft() if self.faults else self.always
        try:
            time.sleep(fault.seconds if isinstance(fault, Slow) else self.seconds)
            yield fault
        finally:
            with self._lock:
                self._under_way -= 1

    def charge(self, texts: Sequence[str]) -> None:
        """Record that texts were answered."""
        with self._lock:
            self.answered.update(texts)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: EmbeddingServer

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        gemini = "requests" in asked
        texts = _gemini_texts(asked) if gemini else list(asked["input"])
        key = self.headers.get("x-goog-api-key") or self.headers.get("authorization") or ""
        with self.state.received(texts, key.removeprefix("Bearer ")) as fault:
            if isinstance(fault, Status):
                self._refuse(fault)
            elif isinstance(fault, Cut) and not fault.halfway:
                self._cut()
            elif any(map(self.state.rejects, texts)):
                self._refuse(Status(self.state.rejection, reason="invalid_request_error"))
            else:
                self._embed(asked, texts, gemini=gemini, fault=fault)

    def _embed(
        self, asked: dict[str, Any], texts: list[str], *, gemini: bool, fault: Fault | None
    ) -> None:
        vectors = _vectors(texts, self.state.dimensions, self.state.cosine)
        answer = _gemini_answer(vectors) if gemini else _openai_answer(asked, texts, vectors)
        rows = answer["embeddings"] if gemini else answer["data"][::-1]
        for row, text in zip(rows, texts, strict=True):
            if self.state.spoils(text):
                row["values" if gemini else "embedding"] = self.state.spoilt
        body = fault.change(answer) if isinstance(fault, Spoilt) else answer
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        halfway = isinstance(fault, Cut)
        if not halfway:
            self.state.charge(texts)
        self._send(200, raw, cut_at=len(raw) // 2 if halfway else None)

    def _refuse(self, status: Status) -> None:
        headers = {} if status.retry_after is None else {"retry-after": status.retry_after}
        words = {"message": "as told", "type": status.reason, "code": status.reason}
        self._send(status.code, json.dumps({"error": words}).encode(), headers=headers)

    def _send(
        self,
        code: int,
        raw: bytes,
        *,
        headers: dict[str, str] | None = None,
        cut_at: int | None = None,
    ) -> None:
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        with suppress(ConnectionError):  # the client may have been killed
            self.end_headers()
            self.wfile.write(raw[:cut_at])
        if cut_at is not None:
            self._cut()

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


def _vectors(
    texts: Sequence[str],
    dimensions: int,
    cosine: Callable[[str], float | None] | None = None,
) -> np.ndarray:
    maker = DeterministicEmbedder(dimensions)
    vectors = np.stack([maker._compute_vector(text) for text in texts])
    if cosine is None:
        return vectors
    # The first axis is shared by all texts without a cosine; the others distinguish texts.
    chosen = [cosine(text) for text in texts]
    about = np.array([1.0 if one is None else one for one in chosen])
    vectors[:, 0] = 0.0
    vectors *= (np.sqrt(1.0 - about**2) / np.linalg.norm(vectors, axis=1))[:, None]
    vectors[:, 0] = about
    return vectors


def _openai_answer(asked: dict[str, Any], texts: list[str], vectors: np.ndarray) -> dict[str, Any]:
    as_bytes = asked.get("encoding_format") == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector.tobytes()).decode()
            if as_bytes
            else vector.tolist(),
        }
        for index, vector in enumerate(vectors)
    ]
    tokens = tokens_of(texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    # OpenAI promises no order.
    return {"object": "list", "data": data[::-1], "model": asked["model"], "usage": usage}


def _gemini_texts(asked: dict[str, Any]) -> list[str]:
    return [
        "".join(part["text"] for part in request["content"]["parts"])
        for request in asked["requests"]
    ]


def _gemini_answer(vectors: np.ndarray) -> dict[str, Any]:
    return {"embeddings": [{"values": vector.tolist()} for vector in vectors]}


def tokens_of(texts: Sequence[str]) -> int:
    """Return the number of tokens that the server charges, which no tokenizer would count."""
    return sum(1000 + int(sha256_hex(text)[:2], 16) for text in texts)


@contextmanager
def embedding_server(**options: Any) -> Iterator[EmbeddingServer]:
    """A server for the time of the block."""
    state = EmbeddingServer(**options)
    handler = type("Handler", (_Handler,), {"state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
