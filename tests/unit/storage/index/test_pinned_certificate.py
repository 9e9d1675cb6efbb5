"""Both Elasticsearch clients accept exactly the servers that a fingerprint names."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeAlias

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from elastic_transport import ConnectionError as NotConnected
from elasticsearch import AsyncElasticsearch, Elasticsearch

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.index.connection import ElasticsearchConnection
from rag_assets.storage.index.elasticsearch import server
from tests.tls_gateway import certificate, fingerprint_of, server_context

Key: TypeAlias = ec.EllipticCurvePrivateKey

AUTHORITY_KEY, SERVER_KEY, OTHER_KEY = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
AUTHORITY = certificate("an authority", AUTHORITY_KEY, None, AUTHORITY_KEY)
SERVER = certificate("127.0.0.1", SERVER_KEY, AUTHORITY, AUTHORITY_KEY)
FORGED = certificate("127.0.0.1", OTHER_KEY, AUTHORITY, OTHER_KEY)
"""It names the authority as its issuer, and was signed by another key."""


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("X-Elastic-Product", "Elasticsearch")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


@contextmanager
def served(folder: Path, chain: Sequence[x509.Certificate], key: Key) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    context = server_context(folder, chain, key)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def accepted(connection: ElasticsearchConnection) -> tuple[bool, bool]:
    """Return whether the blocking client, and the asynchronous one, accept a server."""

    async def connect() -> None:
        async with AsyncElasticsearch(
            **connection.client_options(is_async=True), max_retries=0
        ) as client:
            await client.info()

    def connects() -> bool:
        try:
            asyncio.run(connect())
        except NotConnected:
            return False
        return True

    try:
        with Elasticsearch(**connection.client_options(), max_retries=0) as client:
            client.info()
    except NotConnected:
        return False, connects()
    return True, connects()


@pytest.mark.parametrize(
    ("chain", "key", "pinned", "expected"),
    [
        ([SERVER], SERVER_KEY, SERVER, True),
        ([SERVER, AUTHORITY], SERVER_KEY, AUTHORITY, True),
        ([SERVER], SERVER_KEY, AUTHORITY, False),
        ([SERVER, AUTHORITY], SERVER_KEY, FORGED, False),
        ([FORGED, AUTHORITY], OTHER_KEY, AUTHORITY, False),
        ([FORGED, SERVER], OTHER_KEY, SERVER, False),
    ],
)
def test_clients_accept_a_server_only_if_its_chain_leads_to_the_fingerprint(
    tmp_path: Path,
    chain: list[x509.Certificate],
    key: Key,
    pinned: x509.Certificate,
    expected: bool,
) -> None:
    with served(tmp_path, chain, key) as url:
        fingerprint = fingerprint_of(pinned).upper()
        connection = ElasticsearchConnection((url,), fingerprint=fingerprint)
        assert accepted(connection) == (expected, expected)


def test_the_check_connects_as_searches_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path, [SERVER], SERVER_KEY) as url:
        connection = ElasticsearchConnection((url,), fingerprint=fingerprint_of(SERVER))
        monkeypatch.setattr(server._Checker, "check", lambda _: None)
        server.check_elasticsearch(connection, "rag")
        other = ElasticsearchConnection((url,), fingerprint=fingerprint_of(FORGED))
        with pytest.raises(ServiceUnavailable, match="does not answer"):
            server.check_elasticsearch(other, "rag")
