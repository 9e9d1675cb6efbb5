"""Tenants' keys at their embedding providers."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, ProviderArgument, TenantArgument

app = typer.Typer(help="Tenants' keys at their embedding providers.", no_args_is_help=True)


@app.command("set", context_settings={"allow_extra_args": True})
def set_(
    context: typer.Context, tenant: TenantArgument, provider: ProviderArgument, json: Json = False
) -> None:
    """Keep a tenant's key, encrypted; it is asked for, or read from standard input."""
    from rag_assets.cli.commands import keys

    keys.require_no_argument(context.args)
    keys.set_key(tenant, provider, as_json=json)


@app.command("list")
def list_(
    tenant: Annotated[str | None, typer.Argument(metavar="[TENANT]", help="Its id.")] = None,
    json: Json = False,
) -> None:
    """List the keys there are: their last four characters, when they were used, with what end."""
    from rag_assets.cli.commands import keys

    keys.list_keys(tenant, as_json=json)


@app.command("remove")
def remove(tenant: TenantArgument, provider: ProviderArgument, json: Json = False) -> None:
    """Forget a tenant's key."""
    from rag_assets.cli.commands import keys

    keys.remove_key(tenant, provider, as_json=json)


@app.command("rotate")
def rotate(json: Json = False) -> None:
    """Encrypt all stored keys with a new master key."""
    from rag_assets.cli.commands import keys

    keys.rotate(as_json=json)
