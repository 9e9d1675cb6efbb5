"""Organizations: settings for all projects of an organization."""

from __future__ import annotations

from typing import Annotated

import typer

from rag_assets.cli.arguments import Json

app = typer.Typer(
    help="Organizations and the settings that all their projects share.", no_args_is_help=True
)


@app.command("list")
def list_(json: Json = False) -> None:
    """List the organizations with their settings."""
    from rag_assets.cli.commands import projects

    projects.list_organizations(as_json=json)


@app.command("put")
def put(
    organization: Annotated[
        str, typer.Argument(metavar="ORGANIZATION", help="Id of the organization.")
    ],
    guidelines: Annotated[
        bool | None,
        typer.Option(
            "--guidelines/--no-guidelines",
            help="Whether documents are embedded and searched for its guidelines.",
        ),
    ] = None,
    chat_model: Annotated[
        str | None,
        typer.Option(help="Chat model of its projects that have none of their own; '' for none."),
    ] = None,
    json: Json = False,
) -> None:
    """Make an organization, or change what is given of its settings."""
    from rag_assets.cli.commands import projects

    projects.put_organization(
        organization, guidelines=guidelines, chat_model=chat_model, as_json=json
    )
