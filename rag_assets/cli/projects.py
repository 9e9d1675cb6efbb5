"""Projects of organizations; each is a tenant that applications create."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from rag_assets.cli.arguments import Json

app = typer.Typer(
    help="Projects of organizations: tenants that applications create.", no_args_is_help=True
)

OrganizationArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ORGANIZATION", help="Id of the organization.")
]
ProjectArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PROJECT", help="Id of the project, the application's.")
]
ProfileOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Profile of the project's tenant; by default that of projects over the API."),
]


@app.command("list")
def list_(
    organization: Annotated[
        str | None, typer.Argument(metavar="[ORGANIZATION]", help="Id of the organization.")
    ] = None,
    json: Json = False,
) -> None:
    """List the projects with their tenants and settings."""
    from rag_assets.cli.commands import projects

    projects.list_projects(organization, as_json=json)


@app.command("put")
def put(
    organization: OrganizationArgument,
    project: ProjectArgument,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    chat_model: Annotated[
        str | None, typer.Option(help="Name of the model that it chats with.")
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            help="Provider of embeddings: auto, openai, gemini, or local, which needs no key."
        ),
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(help="Cosine below which a passage is left out.")
    ] = None,
    threshold_from: Annotated[
        str | None,
        typer.Option(help="Where the threshold comes from: measured, or as described."),
    ] = None,
    per_day: Annotated[
        float | None, typer.Option(help="Spending cap of a day, in dollars.")
    ] = None,
    per_month: Annotated[
        float | None, typer.Option(help="Spending cap of a month, in dollars.")
    ] = None,
    anew: Annotated[
        bool,
        typer.Option(help="Begin again with `projects` of tenants.yaml; caps and chat model stay."),
    ] = False,
    profile: ProfileOption = None,
    json: Json = False,
) -> None:
    """Make a project, or change what is given of its settings."""
    from rag_assets.cli.commands import projects

    caps = {"per_day": per_day, "per_month": per_month}
    given = {
        "name": name,
        "chat_model": chat_model,
        "provider": provider,
        "min_score": min_score,
        "threshold_from": threshold_from,
        "caps": {of: cap for of, cap in caps.items() if cap is not None} or None,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    projects.put_project(profile, organization, project, settings, anew=anew, as_json=json)


@app.command("remove")
def remove(
    organization: OrganizationArgument,
    project: ProjectArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm the removal.")] = False,
    profile: ProfileOption = None,
    json: Json = False,
) -> None:
    """Delete a project's tenant and everything indexed for it."""
    from rag_assets.cli.commands import projects

    projects.remove_project(profile, organization, project, confirmed=yes, as_json=json)
