"""TLS to a server with a pinned fingerprint in its chain of certificates.

Elasticsearch's two clients differ. The client for an event loop compares only the server's own
certificate. The other client accepts an authority even if it did not sign the server's certificate.
This context works for both clients.
"""

from __future__ import annotations

import _ssl
import ssl
from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm


def pinned_context(fingerprint: str) -> ssl.SSLContext:
    """Return a context that rejects a server without the fingerprint in its chain.

    Args:
        fingerprint: SHA-256 of the server's certificate, or of an authority that signed it.
    """
    context = _PinnedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.fingerprint = bytes.fromhex(fingerprint.replace(":", ""))
    return context


def require_pinned(chain: Sequence[bytes], fingerprint: bytes) -> None:
    """Require that a certificate, or an authority that signed it, has a fingerprint.

    Args:
        chain: certificates as the server sent them, in DER, the server's own first.
        fingerprint: SHA-256 of one of them.

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
        certificate = next((each for each in candidates if _is_issuer(each, subject)), None)
        candidates = [each for each in candidates if each != certificate]
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
    """A connection of an event loop."""

    def do_handshake(self) -> None:
        super().do_handshake()
        _require_pinned_peer(self)


class _PinnedSocket(ssl.SSLSocket):
    """A connection of a thread."""

    def do_handshake(self, block: bool = False) -> None:
        super().do_handshake(block)
        _require_pinned_peer(self)


class _PinnedContext(ssl.SSLContext):
    """Opens connections that are verified this way."""

    sslobject_class = _PinnedObject
    sslsocket_class = _PinnedSocket
    fingerprint: bytes


def _require_pinned_peer(connection: Any) -> None:
    # SSLObject.get_unverified_chain is public from Python 3.13 on, and does the same.
    chain = connection._sslobj.get_unverified_chain() or ()  # noqa: SLF001
    certificates = [each.public_bytes(_ssl.ENCODING_DER) for each in chain]
    require_pinned(certificates, connection.context.fingerprint)
