"""The shipped embedding model behind OpenAI's API, for programs that need a server.

Other programs download models from a hub, which a machine without a network cannot reach. With this
server they search with exactly the project's vectors.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rag_assets.models.embedding.local import OnnxEmbedder

MODEL: Final = "all-MiniLM-L6-v2"
_BLANK: Final = "(blank)"
"""Replaces texts without words, which the model refuses."""


@contextmanager
def model_server() -> Iterator[str]:
    """Serve the model on this machine until the block ends; yield its address, with `/v1`."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._embedder, self._lock = OnnxEmbedder(), Lock()

    def vectors(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Return a unit vector for each text."""
        embeddable = [text if text.strip() else _BLANK for text in texts]
        with self._lock:  # one batch at a time takes all cores
            return asyncio.run(self._embedder.embed(embeddable)).vectors


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a request for embeddings."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = request["input"]
        vectors = self.server.vectors([texts] if isinstance(texts, str) else texts)
        packed = request.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": number,
                "embedding": base64.b64encode(vector.astype("<f4").tobytes()).decode()
                if packed
                else vector.tolist(),
            }
            for number, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        body = json.dumps({"object": "list", "data": data, "model": MODEL, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (named by its base)
        """Log nothing: a line for each request would hide the programs' own output."""
