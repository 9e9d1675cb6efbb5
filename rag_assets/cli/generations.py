"""Builds of a tenant's index: their states, and the serving build."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(
    help="Builds of a tenant's index: their states, and the serving build.", no_args_is_help=True
)

_Number: TypeAlias = Annotated[int, typer.Argument(metavar="N", help="Number of the build.")]
_AnyNumber: TypeAlias = Annotated[
    int | None, typer.Argument(metavar="[N]", help="Number of the build that is expected.")
]


@app.command("list")
def list_(tenant: TenantArgument, json: Json = False) -> None:
    """List a tenant's builds with state, difference, progress, cost and index."""
    from rag_assets.cli.commands import generations

    generations.list_builds(tenant, as_json=json)


@app.command("show")
def show(tenant: TenantArgument, number: _Number, json: Json = False) -> None:
    """Show one build with its checks and dates."""
    from rag_assets.cli.commands import generations

    generations.show(tenant, number, as_json=json)


@app.command("publish")
def publish(
    tenant: TenantArgument,
    number: _AnyNumber = None,
    force: Annotated[
        bool, typer.Option("--force", help="Publish it although a check failed.")
    ] = False,
    reason: Annotated[str, typer.Option(help="Why; required with --force.")] = "",
    json: Json = False,
) -> None:
    """Take away the pin, and publish the configuration's build if it passes its checks."""
    from rag_assets.cli.commands import generations

    generations.publish(tenant, number, force=force, reason=reason, as_json=json)


@app.command("rollback")
def rollback(
    tenant: TenantArgument,
    reason: Annotated[str, typer.Option(help="Why; it is kept.")],
    to: Annotated[
        int | None, typer.Option("--to", metavar="N", help="By default the one before.")
    ] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Answer from it first, and bring it up to date then.")
    ] = False,
    json: Json = False,
) -> None:
    """Go back to a former build, brought up to date, and pin it."""
    from rag_assets.cli.commands import generations

    generations.rollback(tenant, to, reason=reason, now=now, as_json=json)


@app.command("discard")
def discard(tenant: TenantArgument, number: _Number, json: Json = False) -> None:
    """Delete a build that does not answer."""
    from rag_assets.cli.commands import generations

    generations.discard(tenant, number, as_json=json)
