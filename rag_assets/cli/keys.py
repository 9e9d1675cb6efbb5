"""Keys of tenants at model providers."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, ProviderArgument, TenantArgument

app = typer.Typer(help="Keys of tenants at model providers.", no_args_is_help=True)


@app.command("set", context_settings={"allow_extra_args": True})
def set_(
    context: typer.Context, tenant: TenantArgument, provider: ProviderArgument, json: Json = False
) -> None:
    """Store a tenant's key, encrypted; it is read from a prompt or from standard input."""
    from rag_assets.cli.commands import keys

    keys.require_no_argument(context.args)
    keys.set_key(tenant, provider, as_json=json)


@app.command("list")
def list_(
    tenant: Annotated[
        str | None, typer.Argument(metavar="[TENANT]", help="Id of the tenant.")
    ] = None,
    json: Json = False,
) -> None:
    """List keys with their last four characters, last use and its outcome."""
    from rag_assets.cli.commands import keys

    keys.list_keys(tenant, as_json=json)


@app.command("remove")
def remove(tenant: TenantArgument, provider: ProviderArgument, json: Json = False) -> None:
    """Delete a tenant's key."""
    from rag_assets.cli.commands import keys

    keys.remove_key(tenant, provider, as_json=json)


@app.command("rotate")
def rotate(json: Json = False) -> None:
    """Encrypt all stored keys with a new master key."""
    from rag_assets.cli.commands import keys

    keys.rotate(as_json=json)
