"""Holds: documents that stay in every store, even when they are deleted, until a hold is lifted."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument

Source = Annotated[str | None, typer.Option("--source", help="All documents of one source.")]
Document = Annotated[str | None, typer.Option("--document", help="One document, by its id.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for those who ask later.")]

app = typer.Typer(
    help="Legal holds: documents that no deletion removes until the hold is lifted.",
    no_args_is_help=True,
)


@app.command("list")
def list_(tenant: TenantArgument, json: Json = False) -> None:
    """List the holds of a tenant."""
    from rag_assets.cli.commands import holds

    holds.list_holds(tenant, as_json=json)


@app.command("set")
def set_(
    tenant: TenantArgument,
    reason: Reason,
    source: Source = None,
    document: Document = None,
    json: Json = False,
) -> None:
    """Hold all documents of a tenant, those of one source, or one document."""
    from rag_assets.cli.commands import holds

    holds.set_hold(tenant, source=source, document=document, reason=reason, as_json=json)


@app.command("lift")
def lift(
    tenant: TenantArgument,
    reason: Reason,
    source: Source = None,
    document: Document = None,
    json: Json = False,
) -> None:
    """Lift a hold: what was deleted meanwhile leaves the stores."""
    from rag_assets.cli.commands import holds

    holds.lift_hold(tenant, source=source, document=document, reason=reason, as_json=json)
