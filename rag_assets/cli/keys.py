"""Keys of tenants at model providers."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from rag_assets.cli.arguments import Json, ProviderArgument

app = typer.Typer(
    help="Keys of tenants and organizations at model providers.", no_args_is_help=True
)

OwnerArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TENANT", help="Id of the tenant, or of the organization.")
]
OrganizationOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--organization", help="The id is an organization's, whose tenants all use its keys."
    ),
]


@app.command("set", context_settings={"allow_extra_args": True})
def set_(
    context: typer.Context,
    tenant: OwnerArgument,
    provider: ProviderArgument,
    organization: OrganizationOption = False,
    json: Json = False,
) -> None:
    """Store a key, encrypted; it is read from a prompt or from standard input."""
    from rag_assets.cli.commands import keys

    keys.require_no_argument(context.args)
    keys.set_key(tenant, provider, organization=organization, as_json=json)


@app.command("list")
def list_(
    tenant: Annotated[
        str | None,
        typer.Argument(metavar="[TENANT]", help="Id of the tenant, or of the organization."),
    ] = None,
    organization: OrganizationOption = False,
    json: Json = False,
) -> None:
    """List keys with their last four characters, last use and its outcome."""
    from rag_assets.cli.commands import keys

    keys.list_keys(tenant, organization=organization, as_json=json)


@app.command("remove")
def remove(
    tenant: OwnerArgument,
    provider: ProviderArgument,
    organization: OrganizationOption = False,
    json: Json = False,
) -> None:
    """Delete a key."""
    from rag_assets.cli.commands import keys

    keys.remove_key(tenant, provider, organization=organization, as_json=json)


@app.command("test")
def try_(
    tenant: OwnerArgument,
    provider: ProviderArgument,
    organization: OrganizationOption = False,
    json: Json = False,
) -> None:
    """Make one small call with the key that is used, which costs next to nothing."""
    from rag_assets.cli.commands import keys

    keys.test_key(tenant, provider, organization=organization, as_json=json)


@app.command("rotate")
def rotate(json: Json = False) -> None:
    """Encrypt all stored keys with a new master key."""
    from rag_assets.cli.commands import keys

    keys.rotate(as_json=json)
