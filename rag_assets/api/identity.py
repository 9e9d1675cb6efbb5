"""Who asks, as their token says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_assets.common.errors import RagAssetsError
from rag_assets.retrieval.model import Caller

Role = Literal["admin", "member"]
ROLES: frozenset[str] = frozenset({"admin", "member"})


class Unauthenticated(RagAssetsError):
    """No token, or none that counts; the message never says more than the asker knows anyway."""


class Forbidden(RagAssetsError):
    """The token counts, but not for this."""


class ForeignOrigin(RagAssetsError):
    """A web page asks that is not known to ask on its visitors' behalf."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks.

    Attributes:
        name: of the token, in logs and for its rate; not a secret.
        tenants: that may be asked.
        role: what may be done there.
        principals: the names under which access may have been granted.
    """

    name: str
    tenants: frozenset[str]
    role: Role
    principals: tuple[str, ...]

    @property
    def caller(self) -> Caller:
        """Who asks, as a search takes it."""
        return Caller(principals=self.principals, name=self.name)

    def tenant(self, wanted: str | None) -> str:
        """The tenant that is asked: the one that is wanted, or the only one there is.

        Raises:
            Forbidden: the token is not for it; whether it exists is not told.
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
        if self.role != "admin":
            raise Forbidden("only an admin may do this", hint="use a token whose role is admin")
        return tenant
