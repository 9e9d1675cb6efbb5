"""Commands that search a tenant's documents and answer questions from them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rag_assets.cli.arguments import AsOption, Json, RoleOption, TenantArgument, caller_of
from rag_assets.cli.search_options import search_options

app = typer.Typer()


@app.command()
@search_options
def search(tenant: TenantArgument, fields: dict[str, Any], json: Json = False) -> None:
    """Search a tenant's documents."""
    from rag_assets.cli.commands.search import search as run
    from rag_assets.search.model import SearchRequest

    run(tenant, SearchRequest.of(**fields), as_json=json)


@app.command()
@search_options
def answer(
    tenant: TenantArgument,
    fields: dict[str, Any],
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens that the model writes at most.")
    ] = None,
    json: Json = False,
) -> None:
    """Answer a question with a tenant's chat model, with citations."""
    from rag_assets.cli.commands.answer import answer as run
    from rag_assets.search.answers import AnswerRequest

    run(tenant, AnswerRequest.of(**fields, max_tokens=max_tokens), as_json=json)


@app.command()
def mcp(
    tenant: TenantArgument,
    principal: AsOption = None,
    role: RoleOption = None,
) -> None:
    """Serve a tenant's documents to an agent over MCP on standard input and output."""
    from rag_assets.cli.commands.mcp import serve

    # Without `--as`, an agent has the role member as well.
    serve(tenant, caller_of(principal, role or (None if principal else "member")))
