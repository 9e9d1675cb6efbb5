"""The connection to an Elasticsearch, from which every client is created.

A fingerprint of the server's certificate, or of an authority that signed it, can be pinned.
Elasticsearch's two clients compare a fingerprint differently: the client for an event loop compares
only the server's own certificate; the other client accepts an authority even if it did not sign the
server's certificate. Both clients can use the TLS context of this module instead.
"""

from __future__ import annotations

import _ssl
import base64
import binascii
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit, urlunsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from rag_assets.common.elasticsearch_settings import split_nodes
from rag_assets.common.errors import ConfigurationError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ElasticsearchConnection:
    """The nodes of a cluster, the account, and how to verify the server's certificate.

    Attributes:
        nodes: addresses of the nodes, without an account; a node that is down is skipped.
        ca_file: certificates for verifying the server's certificate; None: the system's.
        fingerprint: SHA-256 of the server's certificate or of an authority that signed it. If it is
            set, it replaces all other verification of the certificate.
    """

    nodes: tuple[str, ...]
    api_key: str | None = field(default=None, repr=False)
    account: tuple[str, str] | None = field(default=None, repr=False)
    ca_file: Path | None = None
    fingerprint: str | None = None

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Return the connection to comma-separated addresses, which may contain an account."""
        parts = [urlsplit(node) for node in split_nodes(url)]
        accounts = {p.netloc.rpartition("@")[0] for p in parts if "@" in p.netloc}
        if len(accounts) > 1:
            raise ConfigurationError(
                "RAG_ASSETS_ELASTICSEARCH_URL contains a different account for each node",
                hint="the nodes of a cluster have the same accounts: use one account for all nodes",
            )
        name, _, password = accounts.pop().partition(":") if accounts else ("", "", "")
        return cls(
            tuple(urlunsplit(p._replace(netloc=p.netloc.rpartition("@")[2])) for p in parts),
            account=(unquote(name), unquote(password)) if name else None,
        )

    @classmethod
    def from_cloud_id(cls, cloud_id: str) -> Self:
        """Return the connection to a deployment in Elastic Cloud."""
        try:
            decoded = base64.b64decode(cloud_id.rpartition(":")[2], validate=True).decode()
            host, elasticsearch = decoded.split("$")[:2]
        except (binascii.Error, ValueError):
            host = elasticsearch = ""
        if not (host and elasticsearch):
            raise ConfigurationError(
                "RAG_ASSETS_ELASTICSEARCH_CLOUD_ID is not the id of a deployment of Elasticsearch",
                hint="copy it from the deployment's page in Elastic Cloud",
            )
        domain, _, port = host.partition(":")
        name, _, own_port = elasticsearch.partition(":")
        return cls((f"https://{name}.{domain}:{own_port or port or 443}",))

    @property
    def shown(self) -> str:
        """Return the addresses of the nodes, without secrets."""
        return ", ".join(self.nodes)

    def client_options(self, *, is_async: bool = False) -> dict[str, Any]:
        """Return the connection arguments for a client of `elasticsearch`."""
        hosts = []
        for node in self.nodes:
            parts = urlsplit(node)
            # The client requires a port.
            port = "" if parts.port is not None else f":{_PORTS[parts.scheme]}"
            hosts.append(urlunsplit(parts._replace(netloc=f"{parts.netloc}{port}")))
        options: dict[str, Any] = {"hosts": hosts}
        if self.api_key is not None:
            options["api_key"] = self.api_key
        elif self.account is not None:
            options["basic_auth"] = self.account
        if self.ca_file is not None:
            options["ca_certs"] = str(self.ca_file)
        if self.fingerprint is not None:
            options["ssl_context"] = build_pinned_context(self.fingerprint)
            if not is_async:
                # Without this, this client would demand an authority that the system knows. With
                # it, the other client would accept only the server's own certificate.
                options["ssl_assert_fingerprint"] = self.fingerprint.replace(":", "").lower()
        return options


def to_connection(server: str | ElasticsearchConnection) -> ElasticsearchConnection:
    """Return a connection unchanged; turn an address into a connection with from_url()."""
    return ElasticsearchConnection.from_url(server) if isinstance(server, str) else server


def build_pinned_context(fingerprint: str) -> ssl.SSLContext:
    """Return a TLS context that rejects a server whose chain lacks the fingerprint."""
    context = _PinnedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.fingerprint = bytes.fromhex(fingerprint.replace(":", ""))
    return context


def require_pinned(chain: Sequence[bytes], fingerprint: bytes) -> None:
    """Require that a certificate, or an authority that signed it, has a fingerprint.

    Args:
        chain: certificates as the server sent them, in DER, the server's own first.

    Raises:
        ssl.SSLCertVerificationError: no certificate has the fingerprint, or the authority
            that has it did not sign the server's certificate.
    """
    candidates = list(chain)
    certificate = candidates.pop(0) if candidates else None
    while certificate is not None:
        if compare_digest(sha256(certificate).digest(), fingerprint):
            return
        subject = certificate
        certificate = next(
            (candidate for candidate in candidates if _is_issuer(candidate, subject)), None
        )
        candidates = [candidate for candidate in candidates if candidate != certificate]
    raise ssl.SSLCertVerificationError(
        "no certificate in the chain of the server has the fingerprint that is set"
    )


def _is_issuer(issuer: bytes, certificate: bytes) -> bool:
    """Return whether a certificate belongs to an authority that signed the other certificate."""
    try:
        authority = x509.load_der_x509_certificate(issuer)
        constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints)
        x509.load_der_x509_certificate(certificate).verify_directly_issued_by(authority)
    except (InvalidSignature, UnsupportedAlgorithm, x509.ExtensionNotFound, TypeError, ValueError):
        return False
    return constraints.value.ca


class _PinnedObject(ssl.SSLObject):
    """A TLS connection of an event loop that requires the pinned fingerprint."""

    def do_handshake(self) -> None:
        super().do_handshake()
        _require_pinned_peer(self)


class _PinnedSocket(ssl.SSLSocket):
    """A TLS connection of a thread that requires the pinned fingerprint."""

    def do_handshake(self, block: bool = False) -> None:
        super().do_handshake(block)
        _require_pinned_peer(self)


class _PinnedContext(ssl.SSLContext):
    """Opens TLS connections that require the pinned fingerprint instead of other verification."""

    sslobject_class = _PinnedObject
    sslsocket_class = _PinnedSocket
    fingerprint: bytes


def _require_pinned_peer(connection: Any) -> None:
    # SSLObject.get_unverified_chain is public from Python 3.13 on, and does the same.
    chain = connection._sslobj.get_unverified_chain() or ()  # noqa: SLF001
    certificates = [certificate.public_bytes(_ssl.ENCODING_DER) for certificate in chain]
    require_pinned(certificates, connection.context.fingerprint)
