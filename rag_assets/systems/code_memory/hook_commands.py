"""`rag-assets hook`: Git hooks that report changes of a repository immediately."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(help="Git hooks that start a sync after each commit.", no_args_is_help=True)

_Repository = Annotated[
    Path,
    typer.Argument(metavar="REPO", help="Top folder of a worktree, or a bare repository."),
]


@app.command("install")
def install(tenant: TenantArgument, repository: _Repository, json: Json = False) -> None:
    """Install hooks that report a repository's commits, merges, checkouts and rewrites at once."""
    from rag_assets.systems.code_memory import hook_command_line

    hook_command_line.install(tenant, repository, as_json=json)


@app.command("remove")
def remove(tenant: TenantArgument, repository: _Repository, json: Json = False) -> None:
    """Remove a tenant's part from a repository's hooks."""
    from rag_assets.systems.code_memory import hook_command_line

    hook_command_line.remove(tenant, repository, as_json=json)
