"""Uploaded files of tenants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument

Source = Annotated[
    str | None, typer.Option("--source", help="The source, where the tenant has several.")
]
UploadArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the upload.")]

app = typer.Typer(help="Uploaded files of tenants.", no_args_is_help=True)


@app.command("add")
def add(
    tenant: TenantArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The files.")],
    replaces: Annotated[
        str | None,
        typer.Option("--replaces", help="Id of the upload that the file is the new version of."),
    ] = None,
    source: Source = None,
    json: Json = False,
) -> None:
    """Upload files to a tenant; the next sync indexes them."""
    from rag_assets.cli.commands import uploads

    uploads.add(tenant, files, replaces=replaces, source=source, as_json=json)


@app.command("list")
def list_(tenant: TenantArgument, source: Source = None, json: Json = False) -> None:
    """List a tenant's uploads, with what became of them."""
    from rag_assets.cli.commands import uploads

    uploads.list_uploads(tenant, source=source, as_json=json)


@app.command("delete")
def delete(tenant: TenantArgument, upload: UploadArgument, json: Json = False) -> None:
    """Delete an upload: searches no longer return it."""
    from rag_assets.cli.commands import uploads

    uploads.delete(tenant, upload, as_json=json)


@app.command("disable")
def disable(tenant: TenantArgument, upload: UploadArgument, json: Json = False) -> None:
    """Have searches not return an upload, and keep what was computed of it."""
    from rag_assets.cli.commands import uploads

    uploads.set_enabled(tenant, upload, enabled=False, as_json=json)


@app.command("enable")
def enable(tenant: TenantArgument, upload: UploadArgument, json: Json = False) -> None:
    """Have searches return an upload again; nothing is embedded for that."""
    from rag_assets.cli.commands import uploads

    uploads.set_enabled(tenant, upload, enabled=True, as_json=json)
