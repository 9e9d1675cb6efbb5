"""A provider on loopback that repeats the received key in every field of its responses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSIONS = 8
REFUSALS = ("401", "403", "404", "400", "quota", "redirect")
FAULTS = (*REFUSALS, "429", "500", "malformed", "count", "cut")
_CODES = {"quota": 429, "redirect": 302, "malformed": 200, "count": 200}


class _Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Authorization"]
        fault = self.path.split("/")[1]
        if fault == "cut":
            self.wfile.write(f"HTTP/1.1 200 {key}\r\nX-Key: {key}\r\n".encode())
            self.close_connection = True
        elif fault == "ok":
            self._answer(200, key, json.dumps(_vectors(asked["input"])))
        elif fault == "count":
            self._answer(200, key, json.dumps(_vectors([])))
        elif fault == "malformed":
            self._answer(200, key, f'{{"data": {key}')
        else:
            self._answer(_CODES.get(fault) or int(fault), key, json.dumps(_error(fault, key)))

    def _answer(self, code: int, key: str, body: str) -> None:
        content = body.encode()
        # A provider also controls the reason phrase and the headers.
        self.send_response(code, f"Refused {key}")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Key", key)
        self.send_header("x-request-id", key)
        if code == _CODES["redirect"]:
            self.send_header("Location", f"http://127.0.0.1:9/{key}")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def _vectors(texts: list[Any]) -> dict[str, Any]:
    rows = [
        {"object": "embedding", "index": n, "embedding": [1.0, *[0.1 * n] * (DIMENSIONS - 1)]}
        for n in range(len(texts))
    ]
    usage = {"prompt_tokens": 5 * len(texts), "total_tokens": 5 * len(texts)}
    return {"object": "list", "model": "echo", "data": rows, "usage": usage}


def _error(fault: str, key: str) -> dict[str, Any]:
    code = "insufficient_quota" if fault == "quota" else f"refused {key}"
    return {"error": {"message": f"Incorrect API key: {key}", "type": key, "code": code}}


@contextmanager
def echoing_provider() -> Iterator[str]:
    """Yield its address; the first part of the path selects the response: /ok/v1, /401/v1, …"""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
