"""Arguments that many commands have."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ProviderArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PROVIDER", help="openai, gemini or openai-compatible.")
]
TenantArgument: TypeAlias = Annotated[str, typer.Argument(metavar="TENANT", help="Its id.")]
ScopeArgument: TypeAlias = Annotated[str, typer.Argument(metavar="SCOPE", help="As documents say.")]
PrincipalsArgument: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="PRINCIPAL...", help="A user, a group, as they will ask.")
]
