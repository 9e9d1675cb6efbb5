"""`rag-assets thresholds`: the cosine below which a tenant's passages are left out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(help="Cosine thresholds: measure, show and set them.", no_args_is_help=True)

UseOption: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Use of a search with a threshold of its own, such as task or failure of experience."
    ),
]


@app.command("show")
def show(tenant: TenantArgument, json: Json = False) -> None:
    """Print the thresholds in force, and where each comes from."""
    from rag_assets.cli.commands import thresholds

    thresholds.show(tenant, as_json=json)


@app.command("measure")
def measure(
    tenant: TenantArgument,
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="A file with a task on each line; by default the judged questions, or past tasks."
        ),
    ] = None,
    use: UseOption = "",
    value: Annotated[
        float | None, typer.Option("--set", min=-1.0, max=1.0, help="Set this threshold.")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Forget the value: the next questions measure it.")
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Why, for those who ask later.")] = None,
    json: Json = False,
) -> None:
    """Show what each threshold keeps of the answers; with --set and --reason, set one."""
    from rag_assets.cli.commands import thresholds

    if value is None and not calibrate:
        thresholds.measure(tenant, tasks, as_json=json)
    else:
        thresholds.set_threshold(
            tenant, use, None if calibrate else value, reason=reason, as_json=json
        )
