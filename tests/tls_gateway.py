"""A TLS gateway in front of Elasticsearch, like that of a secured cluster or of Serverless.

It requires an API key, and forwards requests with the account of the key. As Serverless, it refuses
requests and settings that Elasticsearch's own annotations do not mark as public
(`@ServerlessScope` of REST handlers, `Property.ServerlessPublic` of settings).
"""

from __future__ import annotations

import datetime
import http.client
import ipaddress
import json
import re
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from elasticsearch import Elasticsearch

Kind = Literal["default", "serverless", "opensearch"]

_INTERNAL = re.compile(
    r"/_cluster/(health|state|settings|stats|reroute|allocation|pending_tasks)|/_nodes|/_stats"
    r"|/_flush|/_forcemerge|/_close|/_open|/_segments|/_recovery|/_cache|/_template|/_tasks"
    r"|/_shard_stores|/_cat/(allocation|health|master|nodes|plugins|segments|shards|templates)"
)
_SHORT_REFRESH = re.compile(r'"refresh_interval": "([0-4]s|[0-9]+ms)"')
_PUBLIC_SETTINGS = re.compile(
    r"index\.(refresh_interval|mapping\.total_fields\.limit|analysis\..*|default_pipeline"
    r"|final_pipeline|blocks\..*|lifecycle\.name|max_.*|query\..*|sort\..*)"
)


@dataclass
class Gateway:
    """A running gateway.

    Attributes:
        url: its address.
        ca_file: certificate of the authority that signed its certificate.
        fingerprint: SHA-256 of its certificate.
        authority_fingerprint: SHA-256 of the authority's certificate, which it also sends.
        keys: the Authorization header for the server behind it, by API key.
        cluster_id: of the server behind it.
        refused: requests that were refused as Serverless refuses them.
    """

    url: str
    ca_file: Path
    fingerprint: str
    authority_fingerprint: str
    keys: dict[str, str] = field(repr=False)
    cluster_id: str
    refused: list[str] = field(default_factory=list)

    def environment(self, key: str) -> dict[str, str]:
        """Return the settings of an installation that connects through the gateway."""
        return {
            "RAG_ASSETS_ELASTICSEARCH_URL": self.url,
            "RAG_ASSETS_ELASTICSEARCH_API_KEY": key,
            "RAG_ASSETS_ELASTICSEARCH_CA_FILE": str(self.ca_file),
        }


@contextmanager
def tls_gateway(
    server_url: str, folder: Path, kind: Kind = "default", keys: Mapping[str, str] | None = None
) -> Iterator[Gateway]:
    """Start a gateway to a server.

    Args:
        server_url: with the account of the default key.
        folder: for certificates.
        kind: the product that the gateway imitates.
        keys: see Gateway; by default one key for the account of the URL.
    """
    parts = urlsplit(server_url)
    account = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    ca_file, fingerprints, context = _certificates(folder)
    served = dict(keys or {"key-of-the-test": f"Basic {b64encode(account.encode()).decode()}"})

    class Handler(_Handler):
        target = (str(parts.hostname), int(parts.port or 80))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    with Elasticsearch(server_url) as client:
        state = client.cluster.state(metric="version", filter_path="cluster_uuid")
    url = f"https://127.0.0.1:{server.server_port}"
    gateway = Gateway(url, ca_file, *fingerprints, served, state["cluster_uuid"])
    Handler.gateway, Handler.kind = gateway, kind
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield gateway
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    gateway: Gateway
    kind: Kind
    target: tuple[str, int]

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("Authorization", "").removeprefix("ApiKey ")
        if key not in self.gateway.keys:
            self._answer(401, _error("security_exception", "missing or wrong API key"))
        elif self.path == "/" and self.command == "GET":
            self._answer(200, _info(self.kind, self.gateway.cluster_id))
        elif self.kind == "opensearch":
            # A real server refuses a body with Elasticsearch's media type in this way.
            self._answer(406, {"error": "Content-Type header [application/vnd…] is not supported"})
        elif self.kind == "serverless" and (refusal := self._refusal(body)) is not None:
            self.gateway.refused.append(f"{self.command} {self.path}")
            self._answer(*refusal)
        else:
            self._forward(body, self.gateway.keys[key])

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815

    def _refusal(self, body: bytes) -> tuple[int, Mapping[str, Any]] | None:
        path = urlsplit(self.path).path
        if _INTERNAL.search(path):
            reason = f"Request for uri [{path}] with method [{self.command}] exists but is not"
            reason += " available when running in serverless mode"
            return 410, _error("api_not_available_exception", reason)
        if self.command == "PUT" and body and ("/_" not in path or path.endswith("/_settings")):
            sent = json.loads(body)
            settings = sent.get("settings", sent if path.endswith("/_settings") else {})
            if short := _SHORT_REFRESH.search(json.dumps(settings)):
                reason = f"index setting [index.refresh_interval={short[1]}] should be either -1 or"
                return 400, _error("illegal_argument_exception", f"{reason} at least 5s")
            private = sorted(n for n in _flat(settings) if not _PUBLIC_SETTINGS.fullmatch(n))
            if private:
                reason = f"Settings [{','.join(private)}] are not available when running in"
                return 400, _error("illegal_argument_exception", f"{reason} serverless mode")
        return None

    def _forward(self, body: bytes, authorization: str) -> None:
        dropped = {"host", "authorization", "content-length", "connection"}
        headers = {n: v for n, v in self.headers.items() if n.lower() not in dropped}
        connection = http.client.HTTPConnection(*self.target, timeout=120)
        try:
            headers["Authorization"] = authorization
            connection.request(self.command, self.path, body or None, headers)
            response = connection.getresponse()
            self._send(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def _answer(self, status: int, answer: Mapping[str, Any]) -> None:
        product = {} if self.kind == "opensearch" else {"X-Elastic-Product": "Elasticsearch"}
        headers = {"content-type": "application/json", **product}
        self._send(status, headers, json.dumps(answer).encode())

    def _send(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _info(kind: Kind, cluster_id: str) -> dict[str, Any]:
    version: dict[str, str] = {"number": "9.5.3", "build_flavor": kind}
    if kind == "opensearch":
        version = {"distribution": "opensearch", "number": "3.3.2"}
    return {"name": "n", "cluster_name": "c", "cluster_uuid": cluster_id, "version": version}


def _error(kind: str, reason: str) -> dict[str, Any]:
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}}


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        else:
            yield name if name.startswith("index.") else f"index.{name}"


def _certificates(folder: Path) -> tuple[Path, tuple[str, str], ssl.SSLContext]:
    """Create an authority; return its file, the two fingerprints, and the server's TLS context."""
    folder.mkdir(parents=True, exist_ok=True)
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = certificate("a test's authority", authority_key, None, authority_key)
    server = certificate("127.0.0.1", server_key, authority, authority_key)
    ca_file = folder / "ca.pem"
    ca_file.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    context = server_context(folder, [server, authority], server_key)
    return ca_file, (fingerprint_of(server), fingerprint_of(authority)), context


def server_context(
    folder: Path, certificates: Sequence[x509.Certificate], key: ec.EllipticCurvePrivateKey
) -> ssl.SSLContext:
    """Return the TLS context of a server that sends these certificates, its own first."""
    pem = serialization.Encoding.PEM
    chain, key_file = folder / "server.pem", folder / "server.key"
    chain.write_bytes(b"".join(each.public_bytes(pem) for each in certificates))
    key_file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key_file)
    return context


def fingerprint_of(subject: x509.Certificate) -> str:
    """Return the SHA-256 of a certificate."""
    return sha256(subject.public_bytes(serialization.Encoding.DER)).hexdigest()


def certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    """Return the certificate of a server, or of an authority if there is no issuer."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
