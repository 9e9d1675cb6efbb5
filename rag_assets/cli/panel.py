"""The command that opens the panel of a tenant."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer()


@app.command()
def panel(
    tenant: TenantArgument,
    port: Annotated[
        int,
        typer.Option(
            min=1,
            max=65_535,
            help="Port that `serve` listens at, where RAG_ASSETS_PANEL_URL is not set.",
        ),
    ] = 8000,
    json: Json = False,
) -> None:
    """Print a link that signs in to a tenant's panel once, within a minute."""
    from rag_assets.cli.commands import panel as command

    command.print_link(tenant, port, as_json=json)
