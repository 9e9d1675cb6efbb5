"""Service tokens: random, shown once, stored as a hash.

A token has 256 random bits, so it cannot be guessed. A plain SHA-256 is therefore as hard to
reverse as a slower hash.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Sequence
from datetime import timedelta
from weakref import WeakValueDictionary

from rag_assets.api.identity import Identity, Unauthenticated
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.principals import RESERVED
from rag_assets.search.model import Role
from rag_assets.storage.catalog.accounts.provider_keys import KeyOwner
from rag_assets.storage.catalog.accounts.service_tokens import ServiceToken, TokenReader
from rag_assets.storage.catalog.catalog import Catalog

PREFIX = "rag_"
"""Prefix that distinguishes service tokens from JWTs, and lets secret scanners recognize them."""

_BYTES = 32


def create_token(
    catalog: Catalog,
    owner: KeyOwner,
    *,
    role: Role,
    principals: Sequence[str],
    lifetime: timedelta | None,
) -> tuple[str, ServiceToken]:
    """Create a token for a tenant or an organization, and return it; it is stored only as a hash.

    Args:
        catalog: stores the hash of the token.
        owner: the tenant; or the organization, for all of its projects, present and future.
        principals: principals of the token.
        lifetime: time until the token expires; None if it stays valid until it is revoked.

    Raises:
        ConfigurationError: a principal is reserved for a role.
    """
    if RESERVED & {*principals}:
        raise ConfigurationError(
            "the names {', '.join(sorted(RESERVED))} are reserved for roles and cannot be "
            "principals of a token",
            hint="remove these principals, and set the role of the token instead",
        )
    token = PREFIX + secrets.token_urlsafe(_BYTES)
    kept = catalog.service_tokens.add(
        owner,
        secrets.token_hex(4),
        _hash_token(token),
        role=role,
        principals=sorted(set(principals)),
        lifetime=lifetime,
    )
    return token, kept


class TokenLookups:
    """Looks up tokens in one event loop; simultaneous requests with the same token share a lookup.

    Without sharing, many simultaneous requests with one token would delay requests with others.
    """

    def __init__(self, tokens: TokenReader) -> None:
        self._tokens = tokens
        self._next: dict[bytes, asyncio.Task[ServiceToken | None]] = {}
        self._under_way: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    async def find(self, sha256: bytes) -> ServiceToken | None:
        """Return the token with this hash; None if it is not valid.

        Raises:
            ServiceUnavailable: Postgres does not answer.
        """
        lookup = self._next.get(sha256)
        if lookup is None:
            lookup = self._next[sha256] = asyncio.create_task(self._begun(sha256))
            lookup.add_done_callback(_seen)
        # `shield`: a cancelled request must not cancel the lookup that other requests wait for.
        return await asyncio.shield(lookup)

    async def _begun(self, sha256: bytes) -> ServiceToken | None:
        turn = self._under_way.setdefault(sha256, asyncio.Lock())
        async with turn:
            # Later requests start a new lookup, because this one may miss a revocation that came
            # after it started.
            del self._next[sha256]
            return await self._tokens.find(sha256)


async def identity_of(tokens: TokenLookups, token: str) -> Identity:
    """Return the identity of a token, from the current catalog.

    Raises:
        Unauthenticated: the token is unknown, revoked or expired; the error does not disclose which
            of these applies.
    """
    kept = await tokens.find(_hash_token(token))
    if kept is None:
        raise Unauthenticated(
            "the token is not valid here",
            hint="create a service token with `rag-assets tokens create`",
        )
    return Identity(
        name=f"token:{kept.token_id}",
        tenants=frozenset() if kept.tenant is None else frozenset({kept.tenant}),
        organization=kept.organization,
        role=kept.role,
        principals=kept.principals,
        token_id=kept.token_id,
        expires_at=kept.expires_at,
    )


def _seen(lookup: asyncio.Task[ServiceToken | None]) -> None:
    """Retrieve the error of a lookup, so that asyncio does not report it as unhandled."""
    if not lookup.cancelled():
        lookup.exception()


def _hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
