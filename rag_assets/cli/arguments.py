"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

if TYPE_CHECKING:
    from rag_assets.search.model import Caller, Role

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ProviderArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PROVIDER", help="openai, gemini or openai-compatible.")
]
TenantArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TENANT", help="Id of the tenant.")
]
ScopeArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="SCOPE", help="Access scope, as documents carry it.")
]
AsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="PRINCIPAL",
        help="Act as this user or group; repeat for groups. By default only public documents.",
    ),
]
RoleOption: TypeAlias = Annotated[
    Literal["admin", "member", "guest", "orchestrator", "writer"] | None,
    typer.Option("--role", help="Role of the token that --as stands for: by default member."),
]
PrincipalsArgument: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="PRINCIPAL...", help="A user or a group, as requests name them."),
]


def caller_of(principals: list[str] | None, role: Role | None) -> Caller:
    """Return the caller that `--as` and `--role` name."""
    from rag_assets.search.model import Caller

    return Caller.acting(principals or (), role)
