"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

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
PrincipalsArgument: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="PRINCIPAL...", help="A user or a group, as requests name them."),
]
