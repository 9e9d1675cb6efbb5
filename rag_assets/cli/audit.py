"""Commands for auditors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(help="Archives for auditors.", no_args_is_help=True)


@app.callback()
def audit() -> None:
    """Archives for auditors."""


@app.command("export")
def export(
    tenant: TenantArgument,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE.zip", help="The archive; no file is replaced.")
    ],
    json: Json = False,
) -> None:
    """Write one archive of a tenant's sources, policies, receipts, accesses, builds and checks."""
    from rag_assets.cli.commands.audit import export as run

    run(tenant, out, as_json=json)
