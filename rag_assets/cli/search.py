"""Commands that search, list and serve a tenant's documents, and answer questions."""

from __future__ import annotations

import asyncio
import textwrap
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_assets.cli.arguments import (
    AsOption,
    Json,
    RoleOption,
    TenantArgument,
    build_caller,
    search_options,
)
from rag_assets.cli.output import print_json, print_table, say, warn
from rag_assets.cli.session import Session, with_reading_session
from rag_assets.common.formatting import format_count
from rag_assets.ingest.chunking.model import describe_location
from rag_assets.models.embedding.coverage import MULTILINGUAL_EMBEDDER
from rag_assets.search import AsyncRetriever, Retriever
from rag_assets.search.model import Hit, SearchAnswer, SearchRequest

if TYPE_CHECKING:
    from rag_assets.search.answers import AnswerRequest, AnswerResult

_COMMIT_CHARACTERS = 10
_EXCERPT_WIDTH = 92
_REASONS = {
    "nothing found": "No passage is near enough to the question.",
    "over budget": "No passage fits into the token budget.",
    "not answered": "The passages found do not answer the question.",
    "nothing supported": "No sentence of the answer is supported by the passages found.",
}

app = typer.Typer()


@app.command()
@search_options
@with_reading_session
def search(
    session: Session, tenant_id: TenantArgument, fields: dict[str, Any], *, as_json: Json = False
) -> None:
    """Search a tenant's documents."""
    request = SearchRequest.of(**fields)
    session.require_trusted_grants(request.caller.principals)
    with closing(Retriever(session.catalog, session.store, session.embedders)) as retriever:
        _print_answer(tenant_id, retriever.search(tenant_id, request), as_json=as_json)


def _print_answer(tenant_id: str, answer: SearchAnswer, *, as_json: bool) -> None:
    if answer.disabled:
        warn(
            f"tenant {tenant_id} is disabled: run `rag-assets tenants enable {tenant_id}` to "
            "enable it"
        )
    for step, fault in (answer.debug.degraded if answer.debug else {}).items():
        if step == "index-incomplete":
            repair = f"rag-assets sync {tenant_id} --repair"
            warn(f"hits may be missing: the index is incomplete ({fault}); {repair} restores it")
        elif step == "vectors":
            warn(
                "hits were ranked by words alone, because the embedder does not support "
                f"the script of this question; {MULTILINGUAL_EMBEDDER} supports most "
                "scripts"
            )
        else:
            warn(f"the search continued without {step}: {fault}")
    for unmatched in answer.warnings:
        warn(f"{unmatched.field}: {unmatched.problem}")
    if as_json:
        print_json(answer)
        return
    if not answer.hits:
        say("Nothing found.")
    for hit in answer.hits:
        print_hit(hit)


@app.command()
@with_reading_session
def documents(session: Session, tenant_id: TenantArgument, *, as_json: Json = False) -> None:
    """List a tenant's documents with their status, chunks and errors."""
    session.catalog.tenants.get(tenant_id)
    rows = [
        {
            "document_id": document.document_id,
            "uri": document.uri,
            "title": document.title,
            "status": document.status,
            "chunks": document.chunk_count,
            "dropped_secrets": document.dropped_count,
            "error": document.error_message,
            "updated_at": document.updated_at,
        }
        for document in session.catalog.documents.all(tenant_id)
    ]
    held_deletions: list[dict[str, Any]] = [
        {"source": sync.source, "documents": sync.held_deletions, "reason": sync.held_reason}
        for sync in session.catalog.syncs.list_held(tenant_id)
    ]
    if as_json:
        print_json({"documents": rows, "held": held_deletions})
        return
    print_table(
        ["document", "status", "chunks", "dropped", "error"],
        [(r["uri"], r["status"], r["chunks"], r["dropped_secrets"], r["error"]) for r in rows],
    )
    for deletion in held_deletions:
        warn(
            f"{format_count(deletion['documents'], 'document')} of source {deletion['source']}"
            " disappeared, and the"
            f" deletion is held back: {deletion['reason']}. To delete them:"
            f" rag-assets sync {tenant_id} --allow-deletes"
        )


@app.command()
@search_options
@with_reading_session
def answer(
    session: Session,
    tenant_id: TenantArgument,
    fields: dict[str, Any],
    max_tokens: Annotated[
        int | None, typer.Option(help="Maximum number of tokens of the answer.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Answer a question with a tenant's chat model, with citations."""
    from rag_assets.search.answers import AnswerRequest

    request = AnswerRequest.of(**fields, max_tokens=max_tokens)
    session.require_trusted_grants(request.caller.principals)
    result = asyncio.run(_request_answer(session, tenant_id, request))
    if result.disabled:
        warn(
            f"tenant {tenant_id} is disabled: run `rag-assets tenants enable {tenant_id}` to "
            "enable it"
        )
    for unmatched in result.warnings:
        warn(f"{unmatched.field}: {unmatched.problem}")
    if as_json:
        print_json(result)
        return
    _print_sentences(result)


async def _request_answer(session: Session, tenant_id: str, request: AnswerRequest) -> AnswerResult:
    from rag_assets.billing.chat_models import ChatModels
    from rag_assets.models.providers.local import get_shipped_model
    from rag_assets.search.answerer import Answerer

    chat_models = ChatModels(session.catalog, session.settings)
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    try:
        answerer = Answerer(session.catalog, chat_models, retriever, get_shipped_model)
        return await answerer.answer(tenant_id, request)
    finally:
        await chat_models.close()
        await retriever.close()


def _print_sentences(result: AnswerResult) -> None:
    if result.answer:
        for line in result.answer.splitlines():
            say(textwrap.fill(line, _EXCERPT_WIDTH, drop_whitespace=True))
    else:
        say(_REASONS.get(result.reason or "", "There is no answer."))
    say()
    for citation in result.citations:
        place = ", ".join(filter(None, (citation.uri, describe_location(citation))))
        say(f"[{citation.number}] {place}")
        say(textwrap.indent(textwrap.fill(citation.excerpt, _EXCERPT_WIDTH), "   │ "))
        say()
    for claim in result.unsupported:
        say(f"Not in the cited passage: {', '.join(claim.missing)}.")
    if result.unchecked:
        sentences = format_count(len(result.unchecked), "sentence")
        say(f"Only numbers and names were checked, because the language differs: {sentences}.")
    if result.removed:
        say(f"Removed, because no passage supports it: {format_count(result.removed, 'sentence')}.")
    if result.cut:
        say("The answer was cut off at its token limit: raise the limit with --max-tokens.")


@app.command()
@with_reading_session
def mcp(
    session: Session, tenant_id: TenantArgument, principal: AsOption = None, role: RoleOption = None
) -> None:
    """Serve a tenant's documents to an agent over MCP on standard input and output."""
    from rag_assets.api.log_lines import log_to_standard_error
    from rag_assets.api.restore_watch import RestoreWatch
    from rag_assets.mcp.messages import serve_stdio
    from rag_assets.mcp.server import build_server
    from rag_assets.mcp.tools import DEFAULT_TOOLS, Knowledge, MessageContext
    from rag_assets.plugins.registry import installed_systems
    from rag_assets.privacy.masker import get_masker
    from rag_assets.search.access import DocumentReader

    # Without `--as`, an agent has the role member.
    caller = build_caller(principal, role or (None if principal else "member"))
    session.require_trusted_grants(caller.principals)
    watch = RestoreWatch(session.keeper)
    session.catalog.tenants.get(tenant_id)
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    reader = DocumentReader(session.catalog, session.store, retriever.policy)
    systems = installed_systems()
    tools = [*DEFAULT_TOOLS, *systems.load("tools").values()]
    prompts = [*systems.load("prompts").values()]
    message = MessageContext(tenant_id, caller)

    server = build_server(
        Knowledge(
            retriever.search,
            reader,
            masker=retriever.masker,
            require_trust=watch.require_accepted if caller.principals else None,
            settings=session.settings,
        ),
        lambda _: message,
        tools,
        prompts,
    )

    async def run() -> None:
        try:
            await retriever.load()
            async with watch.watching():
                await serve_stdio(server)
        finally:
            await retriever.close()

    with log_to_standard_error(get_masker(session.settings.local).text):
        asyncio.run(run())


def print_hit(hit: Hit) -> None:
    """Print a hit: its document and location, its headings, and its excerpt."""
    say(f"{hit.number}. {format_headline(hit)}")
    if hit.heading_path:
        say(f"   {' › '.join(hit.heading_path)}")
    if hit.origin is not None and hit.origin.differs:
        say(f"   differs from commit {(hit.origin.commit or 'none')[:_COMMIT_CHARACTERS]}")
    for line in hit.context.splitlines():
        say(f"   ┆ {textwrap.shorten(line, _EXCERPT_WIDTH, placeholder=' …')}")
    say(textwrap.indent(textwrap.fill(hit.excerpt, _EXCERPT_WIDTH), "   │ "))
    say()


def format_headline(hit: Hit) -> str:
    """Return a line with the document and location of a hit, its score, and its cosine."""
    scores = {hit.score_kind: hit.score, "cosine": hit.cosine}
    shown_scores = ", ".join(
        f"{kind} {value:.2f}" for kind, value in scores.items() if value is not None
    )
    suffix = f"  ({shown_scores})" if shown_scores else ""
    return f"{', '.join(filter(None, (hit.uri, describe_location(hit))))}{suffix}"
