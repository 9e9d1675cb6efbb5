"""Service tokens: how applications authenticate over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import typer

from rag_assets.cli.arguments import Json

app = typer.Typer(
    help="Tokens with which applications authenticate over HTTP.", no_args_is_help=True
)

OwnerArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TENANT", help="The tenant, or with --organization its id.")
]
OrganizationOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--organization",
        help="For all projects of an organization of that id, present and new ones.",
    ),
]


@app.command("create")
def create(
    owner: OwnerArgument,
    organization: OrganizationOption = False,
    role: Annotated[
        Literal["admin", "member", "guest", "orchestrator", "writer"],
        typer.Option(
            help="Role of the caller; guests read only what names them, writers push and read"
            " nothing."
        ),
    ] = "member",
    principal: Annotated[
        list[str] | None,
        typer.Option(help="Principal of the caller; by default none but its role's."),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=3_650, help="Days until it expires.")
    ] = None,
    json: Json = False,
) -> None:
    """Create a token for a tenant or an organization; it is shown only once."""
    from rag_assets.cli.commands import tokens

    tokens.create(
        owner,
        is_organization=organization,
        role=role,
        principals=principal or [],
        days=days,
        as_json=json,
    )


@app.command("list")
def list_(
    owner: OwnerArgument, organization: OrganizationOption = False, json: Json = False
) -> None:
    """List the tokens of a tenant or an organization with their ids and last use."""
    from rag_assets.cli.commands import tokens

    tokens.list_tokens(owner, is_organization=organization, as_json=json)


@app.command("revoke")
def revoke(
    owner: OwnerArgument,
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of the token, from `tokens list`.")
    ],
    organization: OrganizationOption = False,
    json: Json = False,
) -> None:
    """Revoke a token, from the next request on."""
    from rag_assets.cli.commands import tokens

    tokens.revoke(owner, token_id, is_organization=organization, as_json=json)
