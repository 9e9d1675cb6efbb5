"""tokens: create, list and revoke service tokens."""

from __future__ import annotations

from datetime import datetime, timedelta

from rag_assets.cli.commands.output import print_json, print_table, say
from rag_assets.cli.commands.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.search.model import Role
from rag_assets.storage.catalog.accounts.provider_keys import KeyOwner
from rag_assets.storage.catalog.tenants.organizations import OrganizationRef


@with_session
def create(
    session: Session,
    owner_id: str,
    *,
    is_organization: bool,
    role: Role,
    principals: list[str],
    days: int | None,
    as_json: bool,
) -> None:
    """Create a token and print it; it cannot be shown again."""
    from rag_assets.api.service_tokens import create_token

    token, kept = create_token(
        session.catalog,
        _owner(session, owner_id, is_organization=is_organization),
        role=role,
        principals=principals,
        lifetime=None if days is None else timedelta(days=days),
    )
    if as_json:
        named = {"organization" if is_organization else "tenant": owner_id}
        print_json({**named, "token_id": kept.token_id, "token": token})
        return
    say(token)
    say(f"\nToken {kept.token_id} of {owner_id}. It is not shown again: store it now.")


@with_reading_session
def list_tokens(session: Session, owner_id: str, *, is_organization: bool, as_json: bool) -> None:
    """Print the tokens of a tenant or an organization without their secret part."""
    _owner(session, owner_id, is_organization=is_organization)
    tokens = session.catalog.service_tokens.all(owner_id, of_organization=is_organization)
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
def revoke(
    session: Session, owner_id: str, token_id: str, *, is_organization: bool, as_json: bool
) -> None:
    """Revoke a token."""
    owner = _owner(session, owner_id, is_organization=is_organization)
    kind = "organization" if is_organization else "tenant"
    if not session.catalog.service_tokens.revoke(owner, token_id):
        # The argument is not repeated: it may be the token itself.
        option = " --organization" if is_organization else ""
        raise ConfigurationError(
            f"{kind} {owner_id!r} has no token with this id",
            hint=f"run `rag-assets tokens list {owner_id}{option}` to see the ids",
        )
    if as_json:
        print_json({kind: owner_id, "token_id": token_id, "revoked": True})
        return
    say(f"Token {token_id} of {owner_id} is revoked.")


def _owner(session: Session, owner_id: str, *, is_organization: bool) -> KeyOwner:
    if not is_organization:
        return session.catalog.tenants.get(owner_id).ref
    if session.catalog.organizations.find(owner_id) is None:
        raise ConfigurationError(
            f"there is no organization {owner_id!r}",
            hint=f"create it with `rag-assets organizations put {owner_id}`",
        )
    return OrganizationRef(owner_id)


def _time(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
