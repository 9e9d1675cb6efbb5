"""The commands `rag-assets workspace` and their options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(help="Pages of a workspace and their readers.", no_args_is_help=True)
tree = typer.Typer(help="The tree of pages, with their readers.", no_args_is_help=True)
app.add_typer(tree, name="tree")

PageArgument = Annotated[str, typer.Argument(metavar="PAGE", help="Id of the page or database.")]


@tree.command("show")
def show(tenant: TenantArgument, json: Json = False) -> None:
    """Show the tree with the readers of each page."""
    from rag_assets.systems.workspace import command_line

    command_line.show(tenant, as_json=json)


@tree.command("put")
def put(
    tenant: TenantArgument,
    page: PageArgument,
    kind: Annotated[Literal["page", "database"], typer.Option(help="Kind of the page.")] = "page",
    parent: Annotated[
        str | None,
        typer.Option(metavar="PAGE", help="Id of the page above it; by default the root."),
    ] = None,
    read: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PRINCIPAL", help="A reader: a name, group:NAME, or members; repeatable."
        ),
    ] = None,
    inherit: Annotated[
        bool, typer.Option(help="Whether readers of the page above also read it.")
    ] = True,
    archived: Annotated[
        bool, typer.Option("--archived", help="Exclude it and all pages below from searches.")
    ] = False,
    ai: Annotated[
        Literal["on", "off"],
        typer.Option(help="off excludes it and all pages below from searches."),
    ] = "on",
    json: Json = False,
) -> None:
    """Create a page in the tree, or replace it."""
    from rag_assets.systems.workspace import command_line

    values = {"kind": kind, "parent": parent, "read": read or [], "inherit": inherit}
    values |= {"archived": archived, "ai": ai}
    command_line.put(tenant, page, values, as_json=json)


@tree.command("delete")
def delete(
    tenant: TenantArgument,
    page: PageArgument,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Confirm the deletion of the page, all pages below and their records."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Delete a page, the pages below it, and their records."""
    from rag_assets.systems.workspace import command_line

    command_line.delete(tenant, page, confirmed=yes, as_json=json)


@app.command("access")
def access(
    tenant: TenantArgument,
    page: PageArgument,
    principals: Annotated[
        list[str],
        typer.Argument(metavar="PRINCIPAL...", help="A name, group:NAME, or members."),
    ],
    json: Json = False,
) -> None:
    """Show whether one of the principals may read a page, and by which grant."""
    from rag_assets.systems.workspace import command_line

    command_line.access(tenant, page, principals, as_json=json)


@app.command("records")
def records(
    tenant: TenantArgument,
    status: Annotated[
        Literal["queued", "indexed", "excluded", "failed"] | None,
        typer.Option(help="Only records with this status."),
    ] = None,
    page: Annotated[
        str | None, typer.Option(metavar="PAGE", help="Only records of this page or database.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the status of records and its reason, without titles and texts."""
    from rag_assets.systems.workspace import command_line

    command_line.records(tenant, status=status, page=page, as_json=json)


@app.command("pull")
def pull(
    tenant: TenantArgument,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this source of the type sql.")
    ] = None,
    keys: Annotated[
        bool,
        typer.Option("--keys", help="Also compare all keys, and remove records without a row."),
    ] = False,
    allow_deletes: Annotated[
        bool, typer.Option("--allow-deletes", help="Like --keys, but remove any number of records.")
    ] = False,
    json: Json = False,
) -> None:
    """Pull records from the databases of a workspace's sources now."""
    from rag_assets.systems.workspace import command_line

    command_line.pull(tenant, source=source, keys=keys, allow_deletes=allow_deletes, as_json=json)


@app.command("pulls")
def pulls(tenant: TenantArgument, json: Json = False) -> None:
    """Show the state of pulls from databases, and rows that were set aside."""
    from rag_assets.systems.workspace import command_line

    command_line.pulls(tenant, as_json=json)
