"""Which roles may query a tenant: a profile may restrict its questions to certain roles."""

from __future__ import annotations

from rag_assets.common.errors import RoleRefused
from rag_assets.search.model import Caller
from rag_assets.tenants.profiles import profile_of


def may_ask(profile: str, caller: Caller) -> bool:
    """Return whether a caller may query tenants of a profile and read their documents."""
    roles = profile_of(profile).asked_by
    return not roles or caller.role is None or caller.role in roles


def require_asker(profile: str, caller: Caller) -> None:
    """Require that a caller may query tenants of a profile.

    Raises:
        RoleRefused: the caller's role may not query them.
    """
    if not may_ask(profile, caller):
        roles = " or ".join(sorted(profile_of(profile).asked_by))
        raise RoleRefused(
            f"only the role {roles} may query this tenant",
            hint=f"use a token with the role {roles}",
        )
