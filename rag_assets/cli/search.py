"""Asking a question."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer()


@app.command()
def search(
    tenant: TenantArgument,
    question: Annotated[str, typer.Argument(help="What to look for.")],
    top_k: Annotated[int | None, typer.Option(help="How many hits.")] = None,
    min_score: Annotated[float | None, typer.Option(help="Least cosine of a hit.")] = None,
    mode: Annotated[
        Literal["knn", "text", "hybrid"] | None, typer.Option(help="Vectors, words, or both.")
    ] = None,
    principal: Annotated[
        list[str] | None,
        typer.Option("--as", help="Who asks; repeat for groups. By default only public is found."),
    ] = None,
    rerank: Annotated[
        bool | None, typer.Option(help="Whether a slower model orders the first again.")
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option(help="Only what lies there, as in source/folder/.")
    ] = None,
    prefer: Annotated[list[str] | None, typer.Option(help="What lies there ranks higher.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag.")] = None,
    source_type: Annotated[list[str] | None, typer.Option(help="Only from such sources.")] = None,
    language: Annotated[
        list[str] | None, typer.Option(help="Only in this language, as in de or python.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(help="Only of content made on this day or later, or time.")
    ] = None,
    before: Annotated[str | None, typer.Option(help="Only of content made earlier.")] = None,
    token_budget: Annotated[int | None, typer.Option(help="Tokens of all hits at most.")] = None,
    json: Json = False,
) -> None:
    """Ask a tenant's knowledge a question."""
    from rag_assets.commands.search import search as run
    from rag_assets.retrieval.model import SearchRequest

    request = SearchRequest.of(
        query=question,
        top_k=top_k,
        min_score=min_score,
        mode=mode,
        rerank=rerank,
        token_budget=token_budget,
        source_types=source_type,
        must_include_paths=prefer,
        filters={
            "paths": path or (),
            "tags": tag or (),
            "languages": language or (),
            "modified_after": after,
            "modified_before": before,
        },
        caller={"principals": principal or ()},
    )
    run(tenant, request, as_json=json)


@app.command()
def answer(
    tenant: TenantArgument,
    question: Annotated[str, typer.Argument(help="What is asked.")],
    principal: Annotated[
        list[str] | None,
        typer.Option("--as", help="Who asks; repeat for groups. By default only public is found."),
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="Passages at most.")] = None,
    path: Annotated[
        list[str] | None, typer.Option(help="Only from what lies there, as in source/folder/.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only from what has this tag.")] = None,
    token_budget: Annotated[
        int | None, typer.Option(help="Tokens of all passages at most.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens that the model may write.")] = None,
    json: Json = False,
) -> None:
    """Have a tenant's chat model answer a question, with citations."""
    from rag_assets.commands.answer import answer as run
    from rag_assets.retrieval.answers import AnswerRequest

    request = AnswerRequest.of(
        query=question,
        top_k=top_k,
        token_budget=token_budget,
        max_tokens=max_tokens,
        filters={"paths": path or (), "tags": tag or ()},
        caller={"principals": principal or ()},
    )
    run(tenant, request, as_json=json)


@app.command()
def mcp(
    tenant: TenantArgument,
    principal: Annotated[
        list[str] | None, typer.Option("--as", help="Who asks; by default only public is found.")
    ] = None,
) -> None:
    """Serve a tenant's knowledge to an agent (Model Context Protocol over standard input)."""
    from rag_assets.commands.mcp import serve

    serve(tenant, principal or [])
