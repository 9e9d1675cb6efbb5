"""tokens: create, list and revoke service tokens."""

from __future__ import annotations

from datetime import datetime, timedelta

from rag_assets.cli.commands.output import print_json, print_table, say
from rag_assets.cli.commands.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.retrieval.model import Role


@with_session
def create(
    session: Session,
    tenant_id: str,
    *,
    role: Role,
    principals: list[str],
    days: int | None,
    as_json: bool,
) -> None:
    """Create a token and print it, only this once."""
    from rag_assets.api.service_tokens import create_token

    token, kept = create_token(
        session.catalog,
        session.catalog.tenants.get(tenant_id).ref,
        role=role,
        principals=principals,
        lifetime=None if days is None else timedelta(days=days),
    )
    if as_json:
        print_json({"tenant": tenant_id, "token_id": kept.token_id, "token": token})
        return
    say(token)
    say(f"\nToken {kept.token_id} of {tenant_id}. It is not shown again: store it now.")


@with_reading_session
def list_tokens(session: Session, tenant_id: str, *, as_json: bool) -> None:
    """Print a tenant's tokens without their secret part."""
    session.catalog.tenants.get(tenant_id)
    tokens = session.catalog.service_tokens.all(tenant_id)
    if as_json:
        print_json({"tokens": tokens})
        return
    print_table(
        ["token", "role", "principals", "created", "expires", "last used"],
        [
            (
                *(token.token_id, token.role, ", ".join(token.principals)),
                *map(_time, (token.created_at, token.expires_at, token.last_used_at)),
            )
            for token in tokens
        ],
    )


@with_session
def revoke(session: Session, tenant_id: str, token_id: str, *, as_json: bool) -> None:
    """Revoke a token."""
    ref = session.catalog.tenants.get(tenant_id).ref
    if not session.catalog.service_tokens.revoke(ref, token_id):
        # The argument is not repeated: it may be the token itself.
        raise ConfigurationError(
            f"tenant {tenant_id!r} has no token with this id",
            hint=f"`rag-assets tokens list {tenant_id}` shows the ids",
        )
    if as_json:
        print_json({"tenant": tenant_id, "token_id": token_id, "revoked": True})
        return
    say(f"Token {token_id} of {tenant_id} is revoked.")


def _time(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
