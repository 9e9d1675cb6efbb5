"""Tokens that applications ask with over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(help="Tokens that applications ask with over HTTP.", no_args_is_help=True)


@app.command("create")
def create(
    tenant: TenantArgument,
    role: Annotated[Literal["admin", "member"], typer.Option(help="What it may do.")] = "member",
    principal: Annotated[
        list[str] | None,
        typer.Option(help="In whose name it asks; by default only public is found."),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=3_650, help="After which it ends by itself.")
    ] = None,
    json: Json = False,
) -> None:
    """Make a token for one tenant; it is shown this once."""
    from rag_assets.cli.commands import tokens

    tokens.create(tenant, role=role, principals=principal or [], days=days, as_json=json)


@app.command("list")
def list_(tenant: TenantArgument, json: Json = False) -> None:
    """List a tenant's tokens: their ids, and when they were used."""
    from rag_assets.cli.commands import tokens

    tokens.list_tokens(tenant, as_json=json)


@app.command("revoke")
def revoke(
    tenant: TenantArgument,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `tokens list` shows it.")],
    json: Json = False,
) -> None:
    """Make a token count no more, from the next request on."""
    from rag_assets.cli.commands import tokens

    tokens.revoke(tenant, token_id, as_json=json)
