"""Commands for access: grants of scopes to principals, and service tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

import typer

from rag_assets.cli.arguments import (
    Json,
    NamedOwner,
    PrincipalsArgument,
    ScopeArgument,
    TenantArgument,
    owner_options,
)
from rag_assets.cli.output import format_time, print_json, print_table, progress, say
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import format_count
from rag_assets.privacy.masker import get_masker
from rag_assets.storage.catalog.accounts.access import PUBLIC

app = typer.Typer()
tokens_app = typer.Typer()


@app.command("list")
@with_reading_session
def list_grants(session: Session, tenant_id: TenantArgument, *, as_json: Json = False) -> None:
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
    _require_no_credential(session, scope, principals)
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
            "the scope 'public' needs no grant, so it cannot be granted or revoked",
            hint="to restrict documents, set access.scope in tenants.yaml to another scope",
        )


def _require_no_credential(session: Session, scope: str, principals: list[str]) -> None:
    masker = get_masker(session.settings.local)
    if any(masker.holds_credential(name) for name in (scope, *principals)):
        raise ConfigurationError(
            "a scope or a principal contains a credential, but both are stored unmasked",
            hint="choose a different name",
        )


def _print_scope(session: Session, tenant_id: str, scope: str, *, as_json: bool) -> None:
    who = session.catalog.access.grants(tenant_id).get(scope, [])
    if as_json:
        print_json({"tenant": tenant_id, "scope": scope, "principals": who})
    else:
        say(f"{scope} of {tenant_id} can be read by: {', '.join(who) or 'nobody'}")


@tokens_app.command("create")
@owner_options
@with_session
def create(
    session: Session,
    owner: NamedOwner,
    *,
    role: Annotated[
        Literal["admin", "member", "guest", "orchestrator", "writer"],
        typer.Option(
            help="Role of the caller; guests read only documents that name them, writers only"
            " push records."
        ),
    ] = "member",
    principal: Annotated[
        list[str] | None,
        typer.Option(help="Principal of the caller; by default only the principal of its role."),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=3_650, help="Days until it expires.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a token for a tenant or an organization, and print it once."""
    from rag_assets.api.identity import create_token

    token, stored = create_token(
        session.catalog,
        owner.find(session),
        role=role,
        principals=principal or [],
        lifetime=None if days is None else timedelta(days=days),
    )
    if as_json:
        print_json({owner.kind: owner.id, "token_id": stored.token_id, "token": token})
        return
    say(token)
    progress(f"token {stored.token_id} of {owner.id} is not shown again: store it now")


@tokens_app.command("list")
@owner_options
@with_reading_session
def list_tokens(session: Session, owner: NamedOwner, *, as_json: Json = False) -> None:
    """List the tokens of a tenant or an organization with their ids and last use."""
    owner.find(session)
    tokens = session.catalog.service_tokens.all(owner.id, of_organization=owner.is_organization)
    if as_json:
        print_json({"tokens": tokens})
        return
    print_table(
        ["token", "role", "principals", "created", "expires", "last used"],
        [
            (
                *(token.token_id, token.role, ", ".join(token.principals)),
                *map(format_time, (token.created_at, token.expires_at, token.last_used_at)),
            )
            for token in tokens
        ],
    )


@tokens_app.command("revoke")
@owner_options
@with_session
def revoke_token(
    session: Session,
    owner: NamedOwner,
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the token, from `tokens list`.")
    ],
    *,
    as_json: Json = False,
) -> None:
    """Revoke a token, from the next request on."""
    if not session.catalog.service_tokens.revoke(owner.find(session), token_id):
        # The argument is not repeated: it may be the token itself.
        raise ConfigurationError(
            f"{owner.kind} {owner.id!r} has no token with this id",
            hint=f"run `rag-assets tokens list {owner.arguments}` to see the ids",
        )
    if as_json:
        print_json({owner.kind: owner.id, "token_id": token_id, "revoked": True})
        return
    say(f"Token {token_id} of {owner.id} is revoked.")
