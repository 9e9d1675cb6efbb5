"""Service tokens: how applications authenticate over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(
    help="Service tokens, which applications authenticate with over HTTP.", no_args_is_help=True
)


@app.command("create")
def create(
    tenant: TenantArgument,
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
    json: Json = False,
) -> None:
    """Create a token for one tenant; it is shown only once."""
    from rag_assets.cli.commands import tokens

    tokens.create(tenant, role=role, principals=principal or [], days=days, as_json=json)


@app.command("list")
def list_(tenant: TenantArgument, json: Json = False) -> None:
    """List a tenant's tokens with their ids and last use."""
    from rag_assets.cli.commands import tokens

    tokens.list_tokens(tenant, as_json=json)


@app.command("revoke")
def revoke(
    tenant: TenantArgument,
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the token, from `tokens list`.")
    ],
    json: Json = False,
) -> None:
    """Revoke a token, from the next request on."""
    from rag_assets.cli.commands import tokens

    tokens.revoke(tenant, token_id, as_json=json)
