"""Commands that delete for good, and that show past deletions."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer()


@app.command()
def prune(
    tenant: TenantArgument,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help="Prune a source even if most of it is due; not while the clock is doubted.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Delete documents that are past the tenant's retention, from every store."""
    from rag_assets.cli.commands.retention import prune as run

    run(tenant, confirm=confirm, as_json=json)


@app.command()
def purge(
    tenant: TenantArgument,
    document: Annotated[
        list[str], typer.Option("--document", help="Id of a document; repeat for several.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Confirm the purge.")] = False,
    json: Json = False,
) -> None:
    """Delete documents from every store and every file, and prove it."""
    from rag_assets.cli.commands.retention import purge as run

    raise typer.Exit(0 if run(tenant, document, confirmed=yes, as_json=json) else 1)


@app.command()
def compact(
    tenants: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TENANT...", help="By default all tenants, and what is left of removed ones."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Remove deleted text from the files of lake and index, as the daemon does weekly."""
    from rag_assets.cli.commands.compact import compact as run

    raise typer.Exit(0 if run(tenants or [], as_json=json) else 1)


@app.command()
def receipts(
    tenant: Annotated[
        str | None, typer.Argument(metavar="TENANT", help="By default all tenants.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Verify that no receipt was altered or left out.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what was deleted for good, when, by whom and by which rule."""
    from rag_assets.cli.commands.retention import receipts as run

    raise typer.Exit(0 if run(tenant, verify=verify, as_json=json) else 1)
