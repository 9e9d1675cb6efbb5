"""Grants: which principals may read which access scope of a tenant."""

from __future__ import annotations

import typer

from rag_assets.cli.arguments import Json, PrincipalsArgument, ScopeArgument, TenantArgument

app = typer.Typer(help="Principals that may read a tenant's access scopes.", no_args_is_help=True)


@app.command("list")
def list_(tenant: TenantArgument, json: Json = False) -> None:
    """List the access scopes and the principals that may read them."""
    from rag_assets.cli.commands import access

    access.list_grants(tenant, as_json=json)


@app.command("grant")
def grant(
    tenant: TenantArgument,
    scope: ScopeArgument,
    principals: PrincipalsArgument,
    json: Json = False,
) -> None:
    """Let principals read the documents of a scope, from the next search on."""
    from rag_assets.cli.commands import access

    access.grant(tenant, scope, principals, as_json=json)


@app.command("revoke")
def revoke(
    tenant: TenantArgument,
    scope: ScopeArgument,
    principals: PrincipalsArgument,
    json: Json = False,
) -> None:
    """Revoke a scope from principals, from the next search on."""
    from rag_assets.cli.commands import access

    access.revoke(tenant, scope, principals, as_json=json)
