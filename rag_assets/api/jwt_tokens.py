"""Verification of JSON Web Tokens, each with its key and the single algorithm of that key.

The header of a token never determines the algorithm. So `alg: none`, and a public key misused as an
HMAC secret, are refused before a signature is computed. See RFC 8725.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import jwt

from rag_assets.api.identity import ROLES, Identity, Unauthenticated
from rag_assets.api.jwt_keys import Keys
from rag_assets.api.settings import JwtSettings
from rag_assets.common.principals import RESERVED
from rag_assets.search.model import MAX_PRINCIPALS

if TYPE_CHECKING:
    from rag_assets.search.model import Role

GROUP = "group:"
"""Prefix of group names, which distinguishes them from subjects."""

_LAST_SECOND = 253_402_300_799
"""Last second of the year 9999: signers may set a later expiry for a token that never expires."""

_MAX_NAMES = MAX_PRINCIPALS - 1
_MAX_NAME = 1_000
_MAX_TOKEN = 16_384


class JwtVerifier:
    """A verifier that converts a JWT to an identity.

    Args:
        settings: issuer, audience, leeway, names of claims.
        keys: finds the key by the id in a token's header.
    """

    def __init__(self, settings: JwtSettings, keys: Keys) -> None:
        self._settings = settings
        self._keys = keys

    def identity(self, token: str) -> Identity:
        """Return the identity of a token, with only the tenants that the token names.

        Raises:
            Unauthenticated: the token is not valid.
            ServiceUnavailable: the key set cannot be fetched.
        """
        try:
            claims = self._claims(token)
            return self._identity(claims)
        except jwt.ExpiredSignatureError:
            raise Unauthenticated("the token has expired", hint="get a new token") from None
        except (jwt.PyJWTError, ValueError):
            raise Unauthenticated(
                "the token is not valid here",
                hint="get a token from the signer that this service trusts",
            ) from None

    def _claims(self, token: str) -> Mapping[str, Any]:
        if len(token) > _MAX_TOKEN:
            raise ValueError("too long")
        key = self._keys.key(jwt.get_unverified_header(token))
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

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        settings = self._settings
        [subject] = _names(claims["sub"])
        if subject.startswith(GROUP) or subject in RESERVED:
            raise ValueError("the subject is reserved for groups or roles")
        role = claims.get(settings.role_claim, "member")
        if not isinstance(role, str) or role not in ROLES:
            raise ValueError("the role is not supported")
        groups = _names(claims.get(settings.groups_claim, ()))
        return Identity(
            name=f"jwt:{subject}",
            tenants=frozenset(_names(claims.get(settings.tenants_claim, ()))),
            role=cast("Role", role),
            principals=(subject, *(f"{GROUP}{name}" for name in groups)),
            organization=_organization(claims.get(settings.organization_claim)),
            expires_at=datetime.fromtimestamp(min(int(claims["exp"]), _LAST_SECOND), UTC),
        )


def _organization(value: object) -> str | None:
    """Return the organization that a claim names, if any.

    Signers of other services may use the claim for other values, which are ignored here.
    """
    try:
        return next(iter(_names(value)), None) if isinstance(value, str) else None
    except ValueError:
        return None


def _names(value: object) -> tuple[str, ...]:
    """Return the names of a claim: a string or a list of strings.

    Raises:
        ValueError: the value is neither, or a name is empty, too long, or has control characters.
    """
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or len(names) > _MAX_NAMES:
        raise ValueError("the claim is not a name or a short list of names")
    return tuple(_validate_names(names))


def _validate_names(names: list[object] | tuple[object, ...]) -> Iterator[str]:
    for name in names:
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
            raise ValueError("no name")
        # Refuse control characters, and lone surrogates, which no store accepts.
        if any(unicodedata.category(character) in {"Cc", "Cs"} for character in name):
            raise ValueError("no name")
        yield name
