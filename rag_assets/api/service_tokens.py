"""Service tokens: random, shown once, kept as a hash.

A token is 256 random bits, so a plain SHA-256 of it is as hard to turn around as any slower hash
would be: there is nothing to guess.
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
from rag_assets.retrieval.model import Role
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.provider_keys import KeyOwner
from rag_assets.storage.catalog.service_tokens import ServiceToken, TokenReader

PREFIX = "rag_"
"""Distinguishes a service token from a JWT, and lets scanners for secrets recognise it."""

_BYTES = 32


def create_token(
    catalog: Catalog,
    owner: KeyOwner,
    *,
    role: Role,
    principals: Sequence[str],
    lifetime: timedelta | None,
) -> tuple[str, ServiceToken]:
    """A new token for a tenant or an organization, which is nowhere but in what this returns.

    Args:
        catalog: keeps its hash.
        owner: the tenant; or the organization, for all of its projects, present and new ones.
        role: what it may do.
        principals: that it stands for.
        lifetime: time until it expires; None: until it is revoked.

    Raises:
        ConfigurationError: a principal is one that follows from a role.
    """
    if RESERVED & {*principals}:
        raise ConfigurationError(
            f"no token is created for {' or '.join(sorted(RESERVED))}: a token's role makes it one",
            hint="leave these names out, and choose the role",
        )
    token = PREFIX + secrets.token_urlsafe(_BYTES)
    kept = catalog.service_tokens.add(
        owner,
        secrets.token_hex(4),
        _hashed(token),
        role=role,
        principals=sorted(set(principals)),
        lifetime=lifetime,
    )
    return token, kept


class TokenLookups:
    """Looks up tokens in one event loop, once for all simultaneous requests with the same one.

    Many requests at once with one token would otherwise delay those with others.

    Args:
        tokens: knows them.
    """

    def __init__(self, tokens: TokenReader) -> None:
        self._tokens = tokens
        self._next: dict[bytes, asyncio.Task[ServiceToken | None]] = {}
        self._under_way: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    async def find(self, sha256: bytes) -> ServiceToken | None:
        """The token of that hash, if it is still valid.

        Raises:
            ServiceUnavailable: Postgres does not answer.
        """
        lookup = self._next.get(sha256)
        if lookup is None:
            lookup = self._next[sha256] = asyncio.create_task(self._begun(sha256))
            lookup.add_done_callback(_seen)
        # A waiter that gives up cancels no other.
        return await asyncio.shield(lookup)

    async def _begun(self, sha256: bytes) -> ServiceToken | None:
        turn = self._under_way.setdefault(sha256, asyncio.Lock())
        async with turn:
            # Later callers wait for the next lookup: this one may miss a later revocation.
            del self._next[sha256]
            return await self._tokens.find(sha256)


async def identity_of(tokens: TokenLookups, token: str) -> Identity:
    """The identity of this token, as the catalog has it now.

    Raises:
        Unauthenticated: there is none, it was revoked, or it has expired: which, is not disclosed.
    """
    kept = await tokens.find(_hashed(token))
    if kept is None:
        raise Unauthenticated("the token is not valid here", hint="`rag-assets tokens create`")
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
    """Retrieve the error, for which no caller may be waiting any more."""
    if not lookup.cancelled():
        lookup.exception()


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
