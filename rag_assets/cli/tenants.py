"""Tenants: their documents' sources and settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(help="Tenants and the sources of their documents.", no_args_is_help=True)


@app.command("list")
def list_(json: Json = False) -> None:
    """List the tenants."""
    from rag_assets.cli.commands import tenants

    tenants.list_tenants(as_json=json)


@app.command("add")
def add(
    tenant: Annotated[str, typer.Argument(metavar="ID", help="Lower-case letters, digits, . _ -")],
    source: Annotated[
        list[Path] | None, typer.Option(help="A folder to index; repeat for several.")
    ] = None,
    records: Annotated[
        bool, typer.Option("--records", help="Accept records that applications push.")
    ] = False,
    uploads: Annotated[bool, typer.Option("--uploads", help="Accept uploaded files.")] = False,
    profile: Annotated[
        str, typer.Option(help="Profile: the defaults of a system's tenants.")
    ] = "documents",
    organization: Annotated[str | None, typer.Option(help="Organization of the tenant.")] = None,
    project: Annotated[str | None, typer.Option(help="Project of the organization.")] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="Embedding model on this machine, such as multilingual-e5-small."),
    ] = None,
    json: Json = False,
) -> None:
    """Add a tenant to tenants.yaml."""
    from rag_assets.cli.commands import tenants

    given = {
        "organization": organization,
        "project": project,
        "embedder": {"model": embedder} if embedder else None,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    tenants.add(
        tenant,
        profile=profile,
        sources=source or [],
        records=records,
        uploads=uploads,
        settings=settings,
        as_json=json,
    )


@app.command("disable")
def disable(tenant: TenantArgument, json: Json = False) -> None:
    """Stop indexing a tenant and answering its searches; keep its data."""
    from rag_assets.cli.commands import tenants

    tenants.set_enabled(tenant, enabled=False, as_json=json)


@app.command("enable")
def enable(tenant: TenantArgument, json: Json = False) -> None:
    """Index a tenant and answer its searches again."""
    from rag_assets.cli.commands import tenants

    tenants.set_enabled(tenant, enabled=True, as_json=json)


@app.command("claim")
def claim(
    tenant_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Tenants to claim.")],
    json: Json = False,
) -> None:
    """Make this home folder the one whose tenants.yaml lists these tenants."""
    from rag_assets.cli.commands import tenants

    tenants.claim(tenant_ids, as_json=json)


@app.command("remove")
def remove(
    tenant: TenantArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm the removal.")] = False,
    json: Json = False,
) -> None:
    """Delete a tenant and everything indexed for it."""
    from rag_assets.cli.commands import tenants

    tenants.remove(tenant, confirmed=yes, as_json=json)
