"""`rag-assets code`: what relates to what in a repository."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(help="What relates to what in a repository.", no_args_is_help=True)

_As = Annotated[
    list[str] | None,
    typer.Option(
        "--as", help="Principal of the caller; repeat for groups. By default only public."
    ),
]
_Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A class, Class@method, function; or table:NAME, config:KEY, package:NAME.",
    ),
]


@app.command("relations")
def relations(
    tenant: TenantArgument,
    name: _Name,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Follow these relations only.")
    ] = None,
    direction: Annotated[
        Literal["out", "in", "both"],
        typer.Option("--direction", help="From what it states, from what names it, or both."),
    ] = "both",
    depth: Annotated[int, typer.Option("--depth", min=1, max=8, help="Steps to go.")] = 1,
    principal: _As = None,
    json: Json = False,
) -> None:
    """Show what relates to a name, with the evidence."""
    from rag_assets.systems.code_memory import command_line

    command_line.show_relations(
        tenant,
        name,
        kinds=kind or (),
        direction=direction,
        depth=depth,
        principals=principal or (),
        as_json=json,
    )


@app.command("symbols")
def symbols(
    tenant: TenantArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A class, Class@method, function.")],
    principal: _As = None,
    json: Json = False,
) -> None:
    """Show where a name is defined."""
    from rag_assets.systems.code_memory import command_line

    command_line.show_symbols(tenant, name=name, principals=principal or (), as_json=json)


@app.command("outline")
def outline(
    tenant: TenantArgument,
    path: Annotated[str, typer.Argument(metavar="URI", help="A document, as hits name it.")],
    principal: _As = None,
    json: Json = False,
) -> None:
    """Show what a document defines."""
    from rag_assets.systems.code_memory import command_line

    command_line.show_symbols(tenant, path=path, principals=principal or (), as_json=json)
