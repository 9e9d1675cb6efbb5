"""`rag-assets workspace`: the pages of a workspace, and their readers."""

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
    kind: Annotated[Literal["page", "database"], typer.Option(help="What it is.")] = "page",
    parent: Annotated[
        str | None, typer.Option(metavar="PAGE", help="The page above it; by default the root.")
    ] = None,
    read: Annotated[
        list[str] | None,
        typer.Option(metavar="PRINCIPAL", help="Who reads it; repeat for others."),
    ] = None,
    inherit: Annotated[
        bool, typer.Option(help="Whether who reads what is above reads it as well.")
    ] = True,
    archived: Annotated[
        bool, typer.Option("--archived", help="Take it and what is below out, as archived.")
    ] = False,
    ai: Annotated[
        Literal["on", "off"], typer.Option(help="off: no part of the knowledge, nor what is below.")
    ] = "on",
    json: Json = False,
) -> None:
    """Create a page in the tree, or replace it."""
    from rag_assets.systems.workspace import command_line

    given = {"kind": kind, "parent": parent, "read": read or [], "inherit": inherit}
    given |= {"archived": archived, "ai": ai}
    command_line.put(tenant, page, given, as_json=json)


@tree.command("delete")
def delete(
    tenant: TenantArgument,
    page: PageArgument,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete it, all below it and all their records.")
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
    """Show whether somebody may read a page, and by which page and grant."""
    from rag_assets.systems.workspace import command_line

    command_line.access(tenant, page, principals, as_json=json)


@app.command("records")
def records(
    tenant: TenantArgument,
    status: Annotated[
        Literal["queued", "indexed", "excluded", "failed"] | None,
        typer.Option(help="Only records of which this became."),
    ] = None,
    page: Annotated[
        str | None, typer.Option(metavar="PAGE", help="Only records on this page or database.")
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
        bool, typer.Option("--keys", help="Compare all keys as well, and remove what is gone.")
    ] = False,
    allow_deletes: Annotated[
        bool, typer.Option("--allow-deletes", help="The same, however much is gone.")
    ] = False,
    json: Json = False,
) -> None:
    """Pull records from the databases of a workspace's sources now."""
    from rag_assets.systems.workspace import command_line

    command_line.pull(tenant, source=source, keys=keys, allow_deletes=allow_deletes, as_json=json)


@app.command("pulls")
def pulls(tenant: TenantArgument, json: Json = False) -> None:
    """Show how pulls from databases went, and rows that were set aside."""
    from rag_assets.systems.workspace import command_line

    command_line.pulls(tenant, as_json=json)
