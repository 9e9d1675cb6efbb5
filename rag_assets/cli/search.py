"""Asking a question."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.questions import asking

app = typer.Typer()


@app.command()
@asking
def search(tenant: TenantArgument, asked: dict[str, Any], json: Json = False) -> None:
    """Ask a tenant's knowledge a question."""
    from rag_assets.cli.commands.search import search as run
    from rag_assets.retrieval.model import SearchRequest

    run(tenant, SearchRequest.of(**asked), as_json=json)


@app.command()
@asking
def answer(
    tenant: TenantArgument,
    asked: dict[str, Any],
    max_tokens: Annotated[int | None, typer.Option(help="Tokens that the model may write.")] = None,
    json: Json = False,
) -> None:
    """Have a tenant's chat model answer a question, with citations."""
    from rag_assets.cli.commands.answer import answer as run
    from rag_assets.retrieval.answers import AnswerRequest

    run(tenant, AnswerRequest.of(**asked, max_tokens=max_tokens), as_json=json)


@app.command()
def mcp(
    tenant: TenantArgument,
    principal: Annotated[
        list[str] | None, typer.Option("--as", help="Who asks; by default only public is found.")
    ] = None,
) -> None:
    """Serve a tenant's knowledge to an agent (Model Context Protocol over standard input)."""
    from rag_assets.cli.commands.mcp import serve

    serve(tenant, principal or [])
