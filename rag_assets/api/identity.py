"""Identities: the subject, tenants and role of a request's token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.principals import WRITER
from rag_assets.search.model import Caller, Role

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
        tenants: tenants that may be searched, including the organization's projects.
        role: role in these tenants.
        principals: the names to which access may have been granted.
        organization: organization whose present and future projects the token covers; None if the
            token names tenants instead.
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

    def tenant(self, wanted: str | None) -> str:
        """Return the tenant of a request: the named tenant, or the token's only tenant.

        Raises:
            Forbidden: the token is not for the tenant; whether the tenant exists is not disclosed.
        """
        if wanted is None:
            if len(self.tenants) == 1:
                return next(iter(self.tenants))
            raise Forbidden(
                "the request names no tenant, and the token is not for exactly one tenant",
                hint="add one of the token's tenants to the request",
            )
        if wanted not in self.tenants:
            raise Forbidden(
                "the token is not for this tenant", hint="use a token that covers this tenant"
            )
        return wanted

    def administered(self, wanted: str | None) -> str:
        """Return the tenant of a request that only an admin may make.

        Raises:
            Forbidden: see tenant(); or the token's role is not admin.
        """
        tenant = self.tenant(wanted)
        self.require_admin()
        return tenant

    def written(self, wanted: str | None) -> str:
        """Return the tenant of a request that writes records; admins and writers may make it.

        Raises:
            Forbidden: see tenant(); or the token has another role.
        """
        tenant = self.tenant(wanted)
        if self.role != WRITER:
            self.require_admin()
        return tenant

    def administered_organization(self, wanted: str | None = None) -> str:
        """Return the organization of a request that only an admin of all its projects may make.

        Args:
            wanted: organization that the request names, if any.

        Raises:
            Forbidden: the token is not for this organization, or its role is not admin.
        """
        if self.organization is None or wanted not in {None, self.organization}:
            raise Forbidden(
                "the token is not for this organization",
                hint="use a token whose claim names this organization",
            )
        self.require_admin()
        return self.organization

    def require_member(self) -> None:
        """Refuse the roles guest, which only reads, and writer.

        Raises:
            Forbidden: the role is guest or writer.
        """
        self.require_no_writer()
        if self.role == "guest":
            raise Forbidden("the role guest may only read", hint="use a token whose role is member")

    def require_no_writer(self) -> None:
        """Refuse the role writer.

        Raises:
            Forbidden: the role is writer.
        """
        if self.role == WRITER:
            raise Forbidden(
                "the role writer may only push records and read their status",
                hint="use a token whose role is member or admin",
            )

    def require_admin(self) -> None:
        """Require the role admin, which may change the tenants that it may search.

        Raises:
            Forbidden: the role is not admin.
        """
        if self.role != "admin":
            raise Forbidden("only an admin may do this", hint="use a token whose role is admin")
