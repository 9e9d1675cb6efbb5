"""Identities: who makes a request, by their token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.principals import WRITER
from rag_assets.retrieval.model import Caller, Role

ROLES: frozenset[str] = frozenset(get_args(Role))


class Unauthenticated(RagAssetsError):
    """No valid token; the message reveals nothing that the caller does not know."""


class Forbidden(RagAssetsError):
    """The token is valid, but not for this."""


class ForeignOrigin(RagAssetsError):
    """A web page of an origin that is not allowed sent the request."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The subject of a token.

    Attributes:
        name: of the token, in logs and for its rate; not a secret.
        tenants: that may be searched, those of the organization's projects included.
        role: what it may do there.
        principals: the names under which access may have been granted.
        organization: whose projects it is for, present ones and new ones; None: a token for
            tenants that it names.
        token_id: of a service token; None: a JWT's.
        expires_at: when the token does; None: it does not.
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
        """The caller of a search."""
        return Caller(
            principals=self.principals,
            name=self.name,
            role=self.role,
            organization=self.organization,
        )

    def tenant(self, wanted: str | None) -> str:
        """The tenant of a request: the one that it names, or the token's only one.

        Raises:
            Forbidden: the token is not for it; whether it exists is not disclosed.
        """
        if wanted is None:
            if len(self.tenants) == 1:
                return next(iter(self.tenants))
            raise Forbidden(
                "the token is not for exactly one tenant", hint="name one of its tenants"
            )
        if wanted not in self.tenants:
            raise Forbidden("the token is not for this tenant", hint="use one that is")
        return wanted

    def administered(self, wanted: str | None) -> str:
        """The same, for what only an admin may do.

        Raises:
            Forbidden: see tenant(); or the token is a member's.
        """
        tenant = self.tenant(wanted)
        self.require_admin()
        return tenant

    def written(self, wanted: str | None) -> str:
        """Return the tenant of a request that writes records, which admins and writers may.

        Raises:
            Forbidden: see tenant(); or the token has another role.
        """
        tenant = self.tenant(wanted)
        if self.role != WRITER:
            self.require_admin()
        return tenant

    def administered_organization(self, wanted: str | None = None) -> str:
        """The organization of a request that only an admin of all its projects may make.

        Args:
            wanted: the one that the request names.

        Raises:
            Forbidden: the token is for another one or for none, or is a member's.
        """
        if self.organization is None or wanted not in {None, self.organization}:
            raise Forbidden(
                "the token is not for this organization",
                hint="use one whose claim names the organization",
            )
        self.require_admin()
        return self.organization

    def require_member(self) -> None:
        """Require that it is no guest's, who only reads, and no writer's.

        Raises:
            Forbidden: it is.
        """
        self.require_no_writer()
        if self.role == "guest":
            raise Forbidden("a guest only reads", hint="use a token whose role is member")

    def require_no_writer(self) -> None:
        """Require that it is not a writer's.

        Raises:
            Forbidden: it is.
        """
        if self.role == WRITER:
            raise Forbidden(
                "a writer only pushes records, and sees what became of them",
                hint="use a token whose role is member or admin",
            )

    def require_admin(self) -> None:
        """Require that it may change what it may search.

        Raises:
            Forbidden: the token is a member's.
        """
        if self.role != "admin":
            raise Forbidden("only an admin may do this", hint="use a token whose role is admin")
