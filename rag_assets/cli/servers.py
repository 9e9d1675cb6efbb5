"""Commands that start, stop and show the servers: up, down, status, roles, serve."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_assets.cli.arguments import Json

app = typer.Typer()


@app.command()
def up(
    json: Json = False,
    dagster: Annotated[
        bool, typer.Option(help="Also start Dagster's webserver and daemon.")
    ] = True,
) -> None:
    """Start Postgres, Elasticsearch, and Dagster's webserver and daemon."""
    from rag_assets.cli.commands import stack

    stack.up(dagster=dagster, as_json=json)


@app.command()
def down(json: Json = False) -> None:
    """Stop everything that `up` started."""
    from rag_assets.cli.commands import stack

    stack.down(as_json=json)


@app.command()
def status(json: Json = False) -> None:
    """Show the state and the address of every server, and what needs a person.

    Exit code 1: the daemon runs, but its sensors do not tick.
    """
    from rag_assets.cli.commands import stack

    raise typer.Exit(0 if stack.status(as_json=json) else 1)


@app.command()
def roles() -> None:
    """Print the SQL that makes roles of Postgres with fewer rights, for a server of your own."""
    from rag_assets.cli.commands.output import say
    from rag_assets.storage.catalog.installation.roles import roles_sql

    say(roles_sql())


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port to listen at.")] = 8000,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=8,
            help="Processes that answer, which share all limits.",
            show_default="RAG_ASSETS_SERVICE_WORKERS, or 1",
        ),
    ] = None,
) -> None:
    """Serve the HTTP API to callers with a token."""
    from rag_assets.cli.commands import serve as service

    service.serve(host, port, workers)
