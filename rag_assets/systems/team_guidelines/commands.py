"""The commands `rag-assets guidelines` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from rag_assets.cli.arguments import (
    AsOption,
    Json,
    OrganizationArgument,
    ProjectArgument,
    RoleOption,
    build_caller,
)

DocumentArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the document.")
]

app = typer.Typer(help="Guidelines of a team's projects, for prompts.", no_args_is_help=True)


@app.command("upload")
def upload(
    organization: OrganizationArgument,
    project: ProjectArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The files.")],
    replaces: Annotated[
        str | None,
        typer.Option("--replaces", help="Id of the document that the file replaces."),
    ] = None,
    json: Json = False,
) -> None:
    """Upload documents to a project; the next sync indexes them."""
    from rag_assets.systems.team_guidelines import command_line

    command_line.upload(organization, project, files, replaces=replaces, as_json=json)


@app.command("list")
def list_(
    organization: OrganizationArgument,
    project: ProjectArgument,
    json: Json = False,
) -> None:
    """List a project's documents with their status."""
    from rag_assets.systems.team_guidelines import command_line

    command_line.list_documents(organization, project, as_json=json)


@app.command("delete")
def delete(
    organization: OrganizationArgument,
    project: ProjectArgument,
    document: DocumentArgument,
    json: Json = False,
) -> None:
    """Delete a document; contexts leave out its passages immediately."""
    from rag_assets.systems.team_guidelines import command_line

    command_line.delete(organization, project, document, as_json=json)


@app.command("retry")
def retry(
    organization: OrganizationArgument,
    project: ProjectArgument,
    document: DocumentArgument,
    json: Json = False,
) -> None:
    """Retry a document that failed; the next sync processes it."""
    from rag_assets.systems.team_guidelines import command_line

    command_line.retry(organization, project, document, as_json=json)


@app.command("enable")
def enable(
    organization: OrganizationArgument,
    project: ProjectArgument,
    document: DocumentArgument,
    json: Json = False,
) -> None:
    """Include a document in answers again, without embedding it again."""
    from rag_assets.systems.team_guidelines import command_line

    command_line.set_enabled(organization, project, document, enabled=True, as_json=json)


@app.command("disable")
def disable(
    organization: OrganizationArgument,
    project: ProjectArgument,
    document: DocumentArgument,
    json: Json = False,
) -> None:
    """Exclude a document from answers, and keep its passages and vectors."""
    from rag_assets.systems.team_guidelines import command_line

    command_line.set_enabled(organization, project, document, enabled=False, as_json=json)


@app.command("chunks")
def chunks(
    organization: OrganizationArgument,
    project: ProjectArgument,
    document: DocumentArgument,
    json: Json = False,
) -> None:
    """Print the passages of a document, as a model gets them."""
    from rag_assets.systems.team_guidelines import command_line

    command_line.chunks(organization, project, document, as_json=json)


@app.command("usage")
def usage(
    organization: OrganizationArgument,
    project: ProjectArgument,
    days: Annotated[
        int, typer.Option(min=1, max=366, help="Number of days, including today.")
    ] = 30,
    json: Json = False,
) -> None:
    """Print a project's usage of its provider, its caps, and its waiting documents."""
    from rag_assets.systems.team_guidelines import command_line

    command_line.usage(organization, project, days=days, as_json=json)


@app.command("text")
def text(
    organization: OrganizationArgument,
    project: ProjectArgument,
    file: Annotated[
        str | None, typer.Option("--file", help="File with the new text; - reads standard input.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the text.")] = False,
    json: Json = False,
) -> None:
    """Print a project's plain text, or set it."""
    from rag_assets.systems.team_guidelines import command_line

    command_line.text(organization, project, file=file, clear=clear, as_json=json)


@app.command("context")
def context(
    organization: OrganizationArgument,
    project: ProjectArgument,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task of the prompt.")],
    top_k: Annotated[int, typer.Option(help="Maximum number of passages, up to 5.")] = 5,
    token_budget: Annotated[
        int, typer.Option(help="Maximum number of tokens, up to 2,000.")
    ] = 2_000,
    path: Annotated[
        list[str] | None,
        typer.Option("--path", help="A file of the task, for rules by path."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Also show near misses.")] = False,
    principal: AsOption = None,
    role: RoleOption = None,
    json: Json = False,
) -> None:
    """Print the section for a prompt, or the reason why it is missing."""
    from rag_assets.systems.team_guidelines import command_line

    values = {"task": task, "top_k": top_k, "token_budget": token_budget, "explain": explain}
    values["paths"] = path or []
    command_line.context(
        organization, project, values, caller=build_caller(principal, role), as_json=json
    )
