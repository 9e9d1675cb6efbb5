"""elasticsearch: check the server and its account, print roles, seal secrets."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from rag_assets.cli.arguments import Json

app = typer.Typer(
    help="The installation's Elasticsearch: account, roles and sealed secrets.",
    no_args_is_help=True,
)


class Purpose(StrEnum):
    """The purpose of a role."""

    INDEXING = "indexing"
    SEARCHING = "searching"


@app.command("check")
def check(
    purpose: Annotated[
        Purpose, typer.Option("--for", help="What the account is for; indexing needs both.")
    ] = Purpose.INDEXING,
    json: Json = False,
) -> None:
    """Check version, licence, health, disks and privileges; exit code 1: it cannot be used."""
    from rag_assets.cli.commands import elasticsearch

    if not elasticsearch.check(purpose.value, as_json=json):
        raise typer.Exit(1)


@app.command("role")
def role(purpose: Annotated[Purpose, typer.Argument(help="What the role is for.")]) -> None:
    """Print the smallest role as JSON, for PUT /_security/role/NAME or an API key."""
    from rag_assets.cli.commands import elasticsearch

    elasticsearch.print_role(purpose.value)


@app.command("seal")
def seal() -> None:
    """Read an API key or a password from standard input, and print it sealed.

    The result is the value of RAG_ASSETS_ELASTICSEARCH_API_KEY or _PASSWORD, or the content of
    their files.
    """
    from rag_assets.cli.commands import elasticsearch

    elasticsearch.seal(sys.stdin.read())
