"""installation: the identity of this installation, and its copies, moves and restores."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_assets.cli.arguments import Json

app = typer.Typer(
    help="Identity of this installation: moves, copies, restores, and its clock.",
    no_args_is_help=True,
)
Yes = Annotated[bool, typer.Option("--yes", help="Confirm it.")]


@app.command("show")
def show(json: Json = False) -> None:
    """Show the identity, the places of all stores, and what differs from the catalog."""
    from rag_assets.cli.commands import installation

    if not installation.show(as_json=json):
        raise typer.Exit(1)


@app.command("move")
def move(
    yes: Yes = False,
    without_data: Annotated[
        list[str] | None,
        typer.Option(help="lake or blobs: go on with an empty one; repeat for both."),
    ] = None,
    json: Json = False,
) -> None:
    """Confirm that the installation is at the present addresses from now on."""
    from rag_assets.cli.commands import installation

    installation.move(confirmed=yes, without_data=without_data or [], as_json=json)


@app.command("move-runs")
def move_runs(yes: Yes = False, json: Json = False) -> None:
    """Move Dagster's tables of an earlier version from the schema `public` to our own."""
    from rag_assets.cli.commands import installation

    installation.move_runs(confirmed=yes, as_json=json)


@app.command("clone")
def clone(
    yes: Yes = False,
    snapshot: Annotated[
        bool, typer.Option("--snapshot", help="The catalog is a snapshot of its whole server.")
    ] = False,
    json: Json = False,
) -> None:
    """Make an installation of its own of a copied catalog or home folder."""
    from rag_assets.cli.commands import installation

    installation.clone(confirmed=yes, is_snapshot=snapshot, as_json=json)


@app.command("accept-restore")
def accept_restore(
    yes: Yes = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Do not make revocations, purges and holds again that were lost."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Show what a restored catalog lacks of tokens, grants, holds and purges, and accept it."""
    from rag_assets.cli.commands import restores

    if not restores.accept(confirmed=yes, keep=keep, as_json=json):
        raise typer.Exit(1)


@app.command("forget")
def forget(
    kind: Annotated[str, typer.Argument(help="lake, blobs, index, vectors or cluster.")],
    address: Annotated[str, typer.Argument(help="As `installation show` prints it.")],
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Forget a former place whose data were destroyed, so that receipts do not name it."""
    from rag_assets.cli.commands import installation

    installation.forget(kind, address, confirmed=yes, as_json=json)


@app.command("accept-clock")
def accept_clock(yes: Yes = False, json: Json = False) -> None:
    """Confirm that the present time is right, so that deletions by age go on."""
    from rag_assets.cli.commands import installation

    if not installation.accept_clock(confirmed=yes, as_json=json):
        raise typer.Exit(1)
