"""Access: grants of scopes to principals, and service tokens."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal, TypeAlias

import typer

from rag_assets.cli.arguments import Json, PrincipalsArgument, ScopeArgument, TenantArgument
from rag_assets.cli.output import print_json, print_table, say
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import format_count
from rag_assets.privacy.masker import get_masker
from rag_assets.storage.catalog.accounts.access import PUBLIC
from rag_assets.storage.catalog.accounts.provider_keys import KeyOwner
from rag_assets.storage.catalog.tenants.settings import OrganizationRef

OwnerArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TENANT", help="The tenant, or with --organization its id.")
]
OrganizationOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--organization",
        help="For all projects of an organization of that id, present and new ones.",
    ),
]

app = typer.Typer()
tokens_app = typer.Typer()


@app.command("list")
@with_reading_session
def list_grants(
    session: Session,
    tenant_id: TenantArgument,
    *,
    as_json: Json = False,
) -> None:
    """List the access scopes and the principals that may read them."""
    session.catalog.tenants.get(tenant_id)
    grants = session.catalog.access.grants(tenant_id)
    if as_json:
        print_json({"tenant": tenant_id, "grants": grants})
        return
    print_table(
        ["scope", "can be read by"],
        [(PUBLIC, "everybody"), *((scope, ", ".join(who)) for scope, who in grants.items())],
    )


@app.command("grant")
@with_session
def grant(
    session: Session,
    tenant_id: TenantArgument,
    scope: ScopeArgument,
    principals: PrincipalsArgument,
    *,
    as_json: Json = False,
) -> None:
    """Let principals read the documents of a scope, from the next search on."""
    _require_grantable(scope)
    _require_plain(session, scope, principals)
    session.catalog.access.grant(session.catalog.tenants.get(tenant_id).ref, scope, principals)
    _print_scope(session, tenant_id, scope, as_json=as_json)


@app.command("revoke")
@with_session
def revoke(
    session: Session,
    tenant_id: TenantArgument,
    scope: ScopeArgument,
    principals: PrincipalsArgument,
    *,
    as_json: Json = False,
) -> None:
    """Revoke a scope from principals, from the next search on."""
    _require_grantable(scope)
    ref = session.catalog.tenants.get(tenant_id).ref
    missing = len(set(principals)) - session.catalog.access.revoke(ref, scope, principals)
    if missing and not as_json:
        say(f"{format_count(missing, 'principal')} did not have this grant.")
    _print_scope(session, tenant_id, scope, as_json=as_json)


def _require_grantable(scope: str) -> None:
    if scope == PUBLIC:
        raise ConfigurationError(
            "the scope public needs no grant, and cannot be revoked",
            hint="set a different scope for the documents in tenants.yaml: access.scope",
        )


def _require_plain(session: Session, scope: str, principals: list[str]) -> None:
    masker = get_masker(session.settings.local)
    if any(masker.holds_credential(name) for name in (scope, *principals)):
        raise ConfigurationError(
            "a scope or a principal must not contain a credential: both are stored unmasked",
            hint="choose a different name",
        )


def _print_scope(session: Session, tenant_id: str, scope: str, *, as_json: bool) -> None:
    who = session.catalog.access.grants(tenant_id).get(scope, [])
    if as_json:
        print_json({"tenant": tenant_id, "scope": scope, "principals": who})
    else:
        say(f"{scope} of {tenant_id} can be read by: {', '.join(who) or 'nobody'}")


@tokens_app.command("create")
@with_session
def create(
    session: Session,
    owner_id: OwnerArgument,
    *,
    is_organization: OrganizationOption = False,
    role: Annotated[
        Literal["admin", "member", "guest", "orchestrator", "writer"],
        typer.Option(
            help="Role of the caller; guests read only what names them, writers push and read"
            " nothing."
        ),
    ] = "member",
    principal: Annotated[
        list[str] | None,
        typer.Option(help="Principal of the caller; by default none but its role's."),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=3_650, help="Days until it expires.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a token for a tenant or an organization; it is shown only once."""
    from rag_assets.api.identity import create_token

    token, kept = create_token(
        session.catalog,
        _owner(session, owner_id, is_organization=is_organization),
        role=role,
        principals=principal or [],
        lifetime=None if days is None else timedelta(days=days),
    )
    if as_json:
        named = {"organization" if is_organization else "tenant": owner_id}
        print_json({**named, "token_id": kept.token_id, "token": token})
        return
    say(token)
    say(f"\nToken {kept.token_id} of {owner_id}. It is not shown again: store it now.")


@tokens_app.command("list")
@with_reading_session
def list_tokens(
    session: Session,
    owner_id: OwnerArgument,
    *,
    is_organization: OrganizationOption = False,
    as_json: Json = False,
) -> None:
    """List the tokens of a tenant or an organization with their ids and last use."""
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


@tokens_app.command("revoke")
@with_session
def revoke_token(
    session: Session,
    owner_id: OwnerArgument,
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the token, from `tokens list`.")
    ],
    *,
    is_organization: OrganizationOption = False,
    as_json: Json = False,
) -> None:
    """Revoke a token, from the next request on."""
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
