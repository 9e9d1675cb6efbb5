"""Commands that search a tenant's documents and answer questions from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.search_options import search_options

app = typer.Typer()


@app.command()
@search_options
def search(tenant: TenantArgument, fields: dict[str, Any], json: Json = False) -> None:
    """Search a tenant's documents."""
    from rag_assets.cli.commands.search import search as run
    from rag_assets.retrieval.model import SearchRequest

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
    from rag_assets.retrieval.answers import AnswerRequest

    run(tenant, AnswerRequest.of(**fields, max_tokens=max_tokens), as_json=json)


@app.command()
def mcp(
    tenant: TenantArgument,
    principal: Annotated[
        list[str] | None,
        typer.Option(
            "--as", help="Principal of the caller; repeat for groups. By default only public."
        ),
    ] = None,
    role: Annotated[
        Literal["admin", "member", "guest", "orchestrator"],
        typer.Option(help="Role of the caller; some tenants answer orchestrators alone."),
    ] = "member",
) -> None:
    """Serve a tenant's documents to an agent over MCP on standard input and output."""
    from rag_assets.cli.commands.mcp import serve

    serve(tenant, principal or [], role)
