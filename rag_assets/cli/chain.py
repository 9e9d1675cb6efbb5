"""Commands that plan, run, check and report the indexing of tenants."""

from __future__ import annotations

from typing import Annotated

import click
import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer()


@app.command()
def plan(tenant: TenantArgument, json: Json = False) -> None:
    """Show what a sync would do and cost; change nothing."""
    from rag_assets.cli.commands.plan import plan as run

    run(tenant, as_json=json)


@app.command()
def sync(
    tenants: Annotated[list[str] | None, typer.Argument(metavar="TENANT...")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every enabled tenant.")] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="First repair lake and index where they differ from the catalog."
        ),
    ] = False,
    allow_deletes: Annotated[
        bool, typer.Option("--allow-deletes", help="Delete documents whose deletion is held back.")
    ] = False,
    accept_catalog: Annotated[
        bool,
        typer.Option(
            "--accept-catalog",
            help="Go on with a catalog that was set back to an earlier dump; implies --repair.",
        ),
    ] = False,
    in_turn: Annotated[
        bool, typer.Option("--in-turn", help="One tenant after the other, in this process.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring the index in line with the sources."""
    from rag_assets.cli.commands.sync import sync as run

    succeeded = run(
        tenants or [],
        every=every,
        repair=repair,
        allow_deletes=allow_deletes,
        accept_catalog=accept_catalog,
        in_turn=in_turn,
        as_json=json,
    )
    raise typer.Exit(0 if succeeded else 1)


@app.command()
def usage(
    tenant: Annotated[
        str | None, typer.Argument(metavar="TENANT", help="By default all tenants.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3_660, help="Number of days to report.")] = 30,
    json: Json = False,
) -> None:
    """Show usage and cost of embeddings and answers by day, provider and model."""
    from rag_assets.cli.commands.usage import usage as run

    run(tenant, days=days, as_json=json)


@app.command()
def check(
    tenant: TenantArgument,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Compare all contents, vectors and files, not only the day's share."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Run the asset checks of a tenant."""
    from rag_assets.cli.commands.check import check as run

    raise typer.Exit(0 if run(tenant, deep=deep, as_json=json) else 1)


@app.command("eval")
def evaluate(
    tenant: TenantArgument,
    generation: Annotated[
        int | None, typer.Option(metavar="N", help="Build to ask; by default the serving one.")
    ] = None,
    against: Annotated[
        int | None, typer.Option(metavar="M", help="Build to compare it with.")
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            click_type=click.Choice(["knn", "text", "hybrid"]),
            help="Vectors, words, or both; repeat for several. By default the tenant's.",
        ),
    ] = None,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Rerank the top hits with a cross-encoder.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure how well a build answers a tenant's judged questions."""
    from rag_assets.cli.commands.evaluate import evaluate as run

    run(tenant, generation, against, modes=mode or [], rerank=rerank, as_json=json)


@app.command()
def documents(tenant: TenantArgument, json: Json = False) -> None:
    """List a tenant's documents with their status, chunks and errors."""
    from rag_assets.cli.commands.search import documents as run

    run(tenant, as_json=json)


@app.command()
def demo(json: Json = False) -> None:
    """Index the example handbook, check it, and search it with three questions."""
    from rag_assets.cli.commands.demo import demo as run

    raise typer.Exit(0 if run(as_json=json) else 1)
