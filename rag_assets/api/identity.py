"""Identities of callers, and the service tokens that prove them.

A service token has 256 random bits. It cannot be guessed, so a plain SHA-256 is as hard to reverse
as a slower hash.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args
from weakref import WeakValueDictionary

from rag_assets.common.errors import ConfigurationError, RagAssetsError
from rag_assets.common.principals import RESERVED, WRITER
from rag_assets.search.model import Caller, Role
from rag_assets.storage.catalog.accounts.credentials import KeyOwner, ServiceToken, TokenReader
from rag_assets.storage.catalog.catalog import Catalog

ROLES: frozenset[str] = frozenset(get_args(Role))


class Unauthenticated(RagAssetsError):
    """The request lacks a valid token; the message reveals only what the caller already knows."""


class Forbidden(RagAssetsError):
    """The token is valid, but does not permit the request."""


class ForeignOrigin(RagAssetsError):
    """The request comes from a web page with an origin that is not allowed."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The subject of a token.

    Attributes:
        name: name of the token, for logs and its rate limit; not a secret.
        tenants: tenants to which the token gives access, including the organization's projects.
        organization: the token covers all present and future projects of this organization; None
            if the token names tenants instead.
        token_id: id of a service token; None for a JWT.
        expires_at: when the token expires; None if it never expires.
    """

    name: str
    tenants: frozenset[str]
    role: Role
    principals: tuple[str, ...]
    organization: str | None = None
    token_id: str | None = None
    expires_at: datetime | None = None

    @property
    def caller(self) -> Caller:
        """Return the identity as the caller of a search."""
        return Caller(
            principals=self.principals,
            name=self.name,
            role=self.role,
            organization=self.organization,
        )

    def require_tenant(self, tenant_id: str | None) -> str:
        """Return the tenant of a request: the named tenant, or the token's only tenant.

        Raises:
            Forbidden: the token does not cover the tenant; the error does not disclose whether it
                exists.
        """
        if tenant_id is None:
            if len(self.tenants) == 1:
                return next(iter(self.tenants))
            raise Forbidden(
                "the request does not name a tenant, and the token does not cover exactly one",
                hint="add one of the token's tenants to the request",
            )
        if tenant_id not in self.tenants:
            raise Forbidden(
                "the token does not cover this tenant", hint="use a token for this tenant"
            )
        return tenant_id

    def require_admin_tenant(self, wanted: str | None) -> str:
        """Return the tenant of a request that only admins may make."""
        tenant = self.require_tenant(wanted)
        self.require_admin()
        return tenant

    def require_writer_tenant(self, wanted: str | None) -> str:
        """Return the tenant of a request that only admins and writers may make."""
        tenant = self.require_tenant(wanted)
        if self.role != WRITER:
            self.require_admin()
        return tenant

    def require_admin_organization(self, wanted: str | None = None) -> str:
        """Return the organization of a request that only its admins may make.

        Args:
            wanted: the organization that the request names, if any.
        """
        if self.organization is None or wanted not in {None, self.organization}:
            raise Forbidden(
                "the token does not cover this organization",
                hint="use a token whose claim names this organization",
            )
        self.require_admin()
        return self.organization

    def require_member(self) -> None:
        """Refuse the roles guest, which only reads, and writer."""
        self.require_no_writer()
        if self.role == "guest":
            raise Forbidden("the role guest may only read", hint="use a token whose role is member")

    def require_no_writer(self) -> None:
        """Refuse the role writer."""
        if self.role == WRITER:
            raise Forbidden(
                "the role writer may only push records and read their status",
                hint="use a token whose role is member or admin",
            )

    def require_admin(self) -> None:
        """Require the role admin, which may change the tenants that it may search."""
        if self.role != "admin":
            raise Forbidden("only an admin may do this", hint="use a token whose role is admin")


SERVICE_PREFIX = "rag_"
"""Prefix that distinguishes service tokens from JWTs, and lets secret scanners recognize them."""

_TOKEN_BYTES = 32


def create_token(
    catalog: Catalog,
    owner: KeyOwner,
    *,
    role: Role,
    principals: Sequence[str],
    lifetime: timedelta | None,
) -> tuple[str, ServiceToken]:
    """Create a service token, and store only its hash.

    Args:
        owner: a tenant, or an organization for all its present and future projects.
        lifetime: time until the token expires; None if it stays valid until it is revoked.

    Returns:
        The token itself, and its row in the catalog.

    Raises:
        ConfigurationError: a principal is reserved for a role.
        InvalidRequest: no request could be made with these principals.
    """
    if RESERVED & {*principals}:
        raise ConfigurationError(
            f"the names {', '.join(sorted(RESERVED))} are reserved for roles and cannot be "
            "principals of a token",
            hint="remove these principals, and set the role of the token instead",
        )
    Caller.acting(principals, role)
    token = SERVICE_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
    stored = catalog.service_tokens.add(
        owner,
        secrets.token_hex(4),
        _hash_token(token),
        role=role,
        principals=sorted(set(principals)),
        lifetime=lifetime,
    )
    return token, stored


class TokenLookups:
    """Token lookups in one event loop; concurrent requests with the same token share a lookup.

    Otherwise, many requests with one token would delay requests with other tokens.
    """

    def __init__(self, tokens: TokenReader) -> None:
        self._tokens = tokens
        self._next: dict[bytes, asyncio.Task[ServiceToken | None]] = {}
        self._locks: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    async def find(self, sha256: bytes) -> ServiceToken | None:
        """Return the token with this hash; None if it is not valid."""
        lookup = self._next.get(sha256)
        if lookup is None:
            lookup = self._next[sha256] = asyncio.create_task(self._look_up(sha256))
            lookup.add_done_callback(_retrieve_error)
        # `shield`: a cancelled request must not cancel the lookup that other requests wait for.
        return await asyncio.shield(lookup)

    async def _look_up(self, sha256: bytes) -> ServiceToken | None:
        async with self._locks.setdefault(sha256, asyncio.Lock()):
            # Later requests need a new lookup, because this one may miss a revocation.
            del self._next[sha256]
            return await self._tokens.find(sha256)


async def get_identity(tokens: TokenLookups, token: str) -> Identity:
    """Return the identity of a token, from the current catalog.

    Raises:
        Unauthenticated: the token is unknown, revoked or expired; the error does not disclose which
            of these applies.
    """
    stored = await tokens.find(_hash_token(token))
    if stored is None:
        raise Unauthenticated(
            "the token is not valid here",
            hint="create a service token with `rag-assets tokens create`",
        )
    return Identity(
        name=f"token:{stored.token_id}",
        tenants=frozenset() if stored.tenant is None else frozenset({stored.tenant}),
        organization=stored.organization,
        role=stored.role,
        principals=stored.principals,
        token_id=stored.token_id,
        expires_at=stored.expires_at,
    )


def _retrieve_error(lookup: asyncio.Task[ServiceToken | None]) -> None:
    """Retrieve the error of a lookup, so that asyncio does not report it as unhandled."""
    if not lookup.cancelled():
        lookup.exception()


def _hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
