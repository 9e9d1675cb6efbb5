"""`rag-assets glossary`."""

from __future__ import annotations

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(help="Terms and what they mean.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Terms and their definitions."""


@app.command("lookups")
def lookups_(tenant: TenantArgument, json: Json = False) -> None:
    """List the terms that were looked up."""
    from glossary_system.tables import lookups
    from rag_assets.cli.output import print_json, print_table
    from rag_assets.cli.session import Session

    with Session() as session:
        counts = lookups(session.catalog.database, session.catalog.tenants.get(tenant).id)
    if json:
        print_json({"lookups": counts})
    else:
        print_table(["term", "lookups"], sorted(counts.items()))
