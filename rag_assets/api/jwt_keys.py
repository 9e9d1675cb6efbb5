"""Verification keys of JWTs, each with the single algorithm that it may be used with."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from rag_assets.api.log_lines import LOGGER
from rag_assets.api.settings import JwtSettings
from rag_assets.common.errors import ConfigurationError, ServiceUnavailable

_RSA_BITS = 2_048
_FRESH_SECONDS = 300.0
_KEPT_SECONDS = 3_600.0
_PAUSE_SECONDS = 10.0
_FETCH_SECONDS = 5


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key and the algorithm that tokens signed with it must name."""

    key: Any = field(repr=False)
    algorithm: str


class Keys(Protocol):
    """A source of verification keys."""

    def key(self, header: Mapping[str, Any]) -> VerificationKey:
        """Return the key for a token with this header, which is untrusted.

        Raises:
            ValueError: the header does not name a known key.
            ServiceUnavailable: keys cannot be fetched now.
        """
        ...


@dataclass(frozen=True, slots=True)
class OneKey:
    """A source with a single key for all tokens (see Keys)."""

    only: VerificationKey

    def key(self, header: Mapping[str, Any]) -> VerificationKey:  # noqa: D102
        return self.only


class KeySet:
    """A source with the keys of a JWKS document, fetched again if old or if a key is unknown.

    If the document cannot be fetched, the previous keys stay valid for an hour. So callers are not
    locked out while the signer is unavailable, but a withdrawn key still becomes invalid. One
    thread fetches the document; tokens with a known key do not wait for it.

    Args:
        source: a file, or an https URL.
        clock: returns monotonic seconds.
    """

    def __init__(self, source: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._fetching = threading.Lock()
        self._keys: Mapping[str, VerificationKey] = {}
        self._tried = self._fetched = float("-inf")

    def key(self, header: Mapping[str, Any]) -> VerificationKey:  # noqa: D102
        kid = header.get("kid")
        if not isinstance(kid, str):
            raise ValueError("the header of the token contains no key id")  # noqa: TRY004
        if kid not in self._keys or self._clock() - self._fetched > _FRESH_SECONDS:
            self._renew()
        if self._clock() - self._fetched > _KEPT_SECONDS:
            raise self._unreadable()
        is_behind = self._fetching.locked() or self._tried > self._fetched
        if (key := self._keys.get(kid)) is not None:
            return key
        # The key may be new, and not yet fetched.
        raise (
            self._unreadable()
            if is_behind
            else ValueError("no key has the id from the header of the token")
        )

    def _renew(self) -> None:
        """Fetch the keys, unless they were requested just before or another thread fetches them."""
        # Until the keys have been fetched once, all threads must wait for them.
        if not self._fetching.acquire(blocking=not self._keys):
            return
        try:
            now = self._clock()
            # Tokens with invented key ids must not each cause a request to the issuer.
            if now - self._tried > _PAUSE_SECONDS:
                self._tried = now
                self._keys = self._read()
                self._fetched = now
        except (OSError, jwt.PyJWTError, ValueError, AttributeError, TypeError):
            LOGGER.warning("the key set (JWKS) that verifies tokens could not be read")
        finally:
            self._fetching.release()

    def _read(self) -> Mapping[str, VerificationKey]:
        found = jwt.PyJWKSet.from_dict(_document(self._source)).keys
        return {jwk.key_id: good for jwk in found if jwk.key_id and (good := _of_jwk(jwk))}

    def _unreadable(self) -> ServiceUnavailable:
        return ServiceUnavailable(
            "the key set (JWKS) that verifies tokens cannot be read",
            hint="check RAG_ASSETS_JWT_JWKS",
        )


def keys_of(settings: JwtSettings) -> Keys:
    """Return the configured keys.

    Raises:
        ConfigurationError: the key cannot be read, is too weak, or has an unsupported type.
    """
    if settings.secret is not None:
        return OneKey(VerificationKey(settings.secret.encode(), "HS256"))
    if settings.public_key is not None:
        return OneKey(_from_pem(settings.public_key))
    source = str(settings.jwks)
    parts = urlsplit(source)
    if parts.scheme == "https" or "://" not in source:
        return KeySet(source)
    raise ConfigurationError(
        "RAG_ASSETS_JWT_JWKS is neither a file nor an https URL",
        hint=(
            "set it to a file or an https URL; over http, others on the network could replace "
            "the keys"
        ),
    )


def _document(source: str) -> Any:
    if source.startswith("https://"):
        return jwt.PyJWKClient(source, cache_jwk_set=False, timeout=_FETCH_SECONDS).fetch_data()
    return json.loads(Path(source).expanduser().read_text(encoding="utf-8"))


def _from_pem(path: Path) -> VerificationKey:
    try:
        key = load_pem_public_key(path.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm):
        raise ConfigurationError(
            f"RAG_ASSETS_JWT_PUBLIC_KEY is not a readable public key: {path}",
            hint="set it to a PEM file that begins with BEGIN PUBLIC KEY",
        ) from None
    algorithm = _algorithm(key)
    if algorithm is None:
        raise ConfigurationError(
            f"RAG_ASSETS_JWT_PUBLIC_KEY has an unsupported type of key: {path}",
            hint="use RSA with 2048 bits or more, the elliptic curve P-256, or Ed25519",
        )
    return VerificationKey(key, algorithm)


def _of_jwk(jwk: jwt.PyJWK) -> VerificationKey | None:
    """Return the key of a JWK; None for unusable keys: secrets, weak keys, encryption keys."""
    algorithm = _algorithm(jwk.key)
    if algorithm is None or jwk.public_key_use not in {None, "sig"}:
        return None
    return VerificationKey(jwk.key, algorithm)


def _algorithm(key: object) -> str | None:
    match key:
        case rsa.RSAPublicKey() if key.key_size >= _RSA_BITS:
            return "RS256"
        case ec.EllipticCurvePublicKey() if isinstance(key.curve, ec.SECP256R1):
            return "ES256"
        case ed25519.Ed25519PublicKey():
            return "EdDSA"
    return None
