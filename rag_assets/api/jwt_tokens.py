"""JSON Web Tokens: the keys of their issuer, and their verification.

The configured key determines the algorithm, never the header of a token. So `alg: none`, and a
public key misused as an HMAC secret, are refused before a signature is computed. See RFC 8725.
"""

from __future__ import annotations

import json
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from rag_assets.api.identity import ROLES, Identity, Unauthenticated
from rag_assets.api.log_lines import LOGGER
from rag_assets.api.settings import JwtSettings
from rag_assets.common.errors import ConfigurationError, ServiceUnavailable
from rag_assets.common.principals import RESERVED
from rag_assets.search.model import MAX_PRINCIPALS

if TYPE_CHECKING:
    from rag_assets.search.model import Role

_RSA_BITS = 2_048
_REFRESH_SECONDS = 300.0
_MAX_AGE_SECONDS = 3_600.0
_MIN_INTERVAL_SECONDS = 10.0
_TIMEOUT_SECONDS = 5


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key, and the algorithm of tokens signed with it."""

    key: Any = field(repr=False)
    algorithm: str


FindKey: TypeAlias = Callable[[Mapping[str, Any]], VerificationKey]
"""Returns the key for a token with an untrusted header.

Raises ValueError if the header does not name a known key, and ServiceUnavailable if keys cannot be
fetched now.
"""


class KeySet:
    """The keys of a JWKS document, which is fetched again if it is old or lacks a key.

    If the document cannot be fetched, the previous keys stay valid for an hour, so that callers are
    not locked out while the signer is unavailable. One thread fetches the document; tokens with a
    known key do not wait for it.

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

    def find_key(self, header: Mapping[str, Any]) -> VerificationKey:
        """Return the key for a token with this header; see FindKey."""
        kid = header.get("kid")
        if not isinstance(kid, str):
            raise ValueError("the header of the token contains no key id")  # noqa: TRY004
        if kid not in self._keys or self._clock() - self._fetched > _REFRESH_SECONDS:
            self._renew()
        if self._clock() - self._fetched > _MAX_AGE_SECONDS:
            raise self._build_unreadable()
        is_behind = self._fetching.locked() or self._tried > self._fetched
        if (key := self._keys.get(kid)) is not None:
            return key
        if is_behind:  # The key may be new.
            raise self._build_unreadable()
        raise ValueError("no key has the id from the header of the token")

    def _renew(self) -> None:
        """Fetch the keys; do nothing if they were just fetched or another thread fetches them."""
        # All threads wait for the first fetch.
        if not self._fetching.acquire(blocking=not self._keys):
            return
        try:
            now = self._clock()
            # Invented key ids must not each cause a request to the issuer.
            if now - self._tried > _MIN_INTERVAL_SECONDS:
                self._tried = now
                self._keys = self._read()
                self._fetched = now
        except (OSError, jwt.PyJWTError, ValueError, AttributeError, TypeError):
            LOGGER.warning("the key set (JWKS) that verifies tokens could not be read")
        finally:
            self._fetching.release()

    def _read(self) -> Mapping[str, VerificationKey]:
        if self._source.startswith("https://"):
            client = jwt.PyJWKClient(self._source, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS)
            document = client.fetch_data()
        else:
            document = json.loads(Path(self._source).expanduser().read_text(encoding="utf-8"))
        jwks = jwt.PyJWKSet.from_dict(document).keys
        return {jwk.key_id: key for jwk in jwks if jwk.key_id and (key := _build_key(jwk))}

    def _build_unreadable(self) -> ServiceUnavailable:
        return ServiceUnavailable(
            "the key set (JWKS) that verifies tokens cannot be read",
            hint="check RAG_ASSETS_JWT_JWKS",
        )


def build_key_finder(settings: JwtSettings) -> FindKey:
    """Return the function that finds the configured keys.

    Raises:
        ConfigurationError: the key cannot be read, is too weak, or has an unsupported type.
    """
    if settings.secret is not None or settings.public_key is not None:
        key = _load_key(settings)
        return lambda _header: key
    source = str(settings.jwks)
    parts = urlsplit(source)
    if parts.scheme == "https" or "://" not in source:
        return KeySet(source).find_key
    raise ConfigurationError(
        "RAG_ASSETS_JWT_JWKS is neither a file nor an https URL",
        hint="set it to a file or an https URL; http would let others replace the keys",
    )


def _load_key(settings: JwtSettings) -> VerificationKey:
    if settings.secret is not None:
        return VerificationKey(settings.secret.encode(), "HS256")
    path = cast("Path", settings.public_key)
    try:
        key = load_pem_public_key(path.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm):
        raise ConfigurationError(
            f"RAG_ASSETS_JWT_PUBLIC_KEY is not a readable public key: {path}",
            hint="set it to a PEM file that begins with BEGIN PUBLIC KEY",
        ) from None
    algorithm = _find_algorithm(key)
    if algorithm is None:
        raise ConfigurationError(
            f"RAG_ASSETS_JWT_PUBLIC_KEY has an unsupported type of key: {path}",
            hint="use RSA with 2048 bits or more, the elliptic curve P-256, or Ed25519",
        )
    return VerificationKey(key, algorithm)


def _build_key(jwk: jwt.PyJWK) -> VerificationKey | None:
    """Return the verification key in a JWK; None for secrets, weak keys and encryption keys."""
    algorithm = _find_algorithm(jwk.key)
    if algorithm is None or jwk.public_key_use not in {None, "sig"}:
        return None
    return VerificationKey(jwk.key, algorithm)


def _find_algorithm(key: object) -> str | None:
    match key:
        case rsa.RSAPublicKey() if key.key_size >= _RSA_BITS:
            return "RS256"
        case ec.EllipticCurvePublicKey() if isinstance(key.curve, ec.SECP256R1):
            return "ES256"
        case ed25519.Ed25519PublicKey():
            return "EdDSA"
    return None


GROUP_PREFIX = "group:"
"""Prefix of group names, which distinguishes them from subjects."""

_LAST_SECOND = 253_402_300_799
"""Last second of the year 9999, used for tokens with a later expiry."""

_MAX_NAMES = MAX_PRINCIPALS - 1
_MAX_NAME_LENGTH = 1_000
_MAX_TOKEN_LENGTH = 16_384


class JwtVerifier:
    """A verifier of JWTs."""

    def __init__(self, settings: JwtSettings, find_key: FindKey) -> None:
        self._settings = settings
        self._find_key = find_key

    def verify(self, token: str) -> Identity:
        """Return the identity of a token, without the tenants of its organization's projects.

        Raises:
            Unauthenticated: the token is not valid.
            ServiceUnavailable: the key set cannot be fetched.
        """
        try:
            claims = self._decode(token)
            return self._build_identity(claims)
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("the token has expired", hint="get a new token") from None
        except (jwt.PyJWTError, ValueError):
            raise Unauthenticated(
                "the token is not valid here",
                hint="get a token from the signer that this service trusts",
            ) from None

    def _decode(self, token: str) -> Mapping[str, Any]:
        if len(token) > _MAX_TOKEN_LENGTH:
            raise ValueError("the token is too long")
        key = self._find_key(jwt.get_unverified_header(token))
        settings = self._settings
        required = ["exp", "sub"]
        required += ["iss"] * (settings.issuer is not None)
        required += ["aud"] * (settings.audience is not None)
        claims: Mapping[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[key.algorithm],
            issuer=settings.issuer,
            audience=settings.audience,
            leeway=settings.leeway,
            options={"require": required, "enforce_minimum_key_length": True},
        )
        return claims

    def _build_identity(self, claims: Mapping[str, Any]) -> Identity:
        settings = self._settings
        [subject] = _parse_names(claims["sub"])
        if subject.startswith(GROUP_PREFIX) or subject in RESERVED:
            raise ValueError("the subject is reserved for groups or roles")
        role = claims.get(settings.role_claim, "member")
        if not isinstance(role, str) or role not in ROLES:
            raise ValueError("the role is not supported")
        groups = _parse_names(claims.get(settings.groups_claim, ()))
        return Identity(
            name=f"jwt:{subject}",
            tenants=frozenset(_parse_names(claims.get(settings.tenants_claim, ()))),
            role=cast("Role", role),
            principals=(subject, *(f"{GROUP_PREFIX}{name}" for name in groups)),
            organization=_find_organization(claims.get(settings.organization_claim)),
            expires_at=datetime.fromtimestamp(min(int(claims["exp"]), _LAST_SECOND), UTC),
        )


def _find_organization(value: object) -> str | None:
    """Return the organization that a claim names; None if its value is not one valid name.

    Such values are ignored, because signers for other services may use the claim differently.
    """
    try:
        return next(iter(_parse_names(value)), None) if isinstance(value, str) else None
    except ValueError:
        return None


def _parse_names(value: object) -> tuple[str, ...]:
    """Return the names of a claim: a string or a list of strings.

    Raises:
        ValueError: the value is neither, or a name is empty, too long, or contains control
            characters.
    """
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or len(names) > _MAX_NAMES:
        raise ValueError("the claim is not a name or a short list of names")
    return tuple(_validate_names(names))


def _validate_names(names: list[object] | tuple[object, ...]) -> Iterator[str]:
    for name in names:
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME_LENGTH:
            raise ValueError("the name is empty or too long")
        # Stores refuse lone surrogates.
        if any(unicodedata.category(character) in {"Cc", "Cs"} for character in name):
            raise ValueError("the name contains control characters")
        yield name
