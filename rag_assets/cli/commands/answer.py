"""answer: answer a question in sentences, each with its citations."""

from __future__ import annotations

import asyncio
import textwrap

from rag_assets.billing.chat_models import ChatModels
from rag_assets.cli.commands.output import print_json, say, warn
from rag_assets.cli.commands.session import Session, with_reading_session
from rag_assets.common.formatting import counted
from rag_assets.ingest.chunking.model import describe_location
from rag_assets.ingest.chunking.model import describe_location
from rag_assets.models.providers.local import shipped_model
from rag_assets.search import AsyncRetriever
from rag_assets.search.answerer import Answerer
from rag_assets.search.answers import AnswerRequest, AnswerResult, Citation

_WIDTH = 92
_REASONS = {
    "nothing found": "No passage is near enough to the question.",
    "over budget": "No passage fits into the token budget.",
    "not answered": "The passages found do not answer the question.",
    "nothing supported": "No sentence of the answer is supported by the passages found.",
}


@with_reading_session
def answer(session: Session, tenant_id: str, request: AnswerRequest, *, as_json: bool) -> None:
    """Answer one question."""
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
    _print_answer(result)


async def _request_answer(session: Session, tenant_id: str, request: AnswerRequest) -> AnswerResult:
    chat_models = ChatModels(session.catalog, session.settings)
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    try:
        answerer = Answerer(session.catalog, chat_models, retriever, shipped_model)
        return await answerer.answer(tenant_id, request)
    finally:
        await chat_models.close()
        await retriever.close()


def _print_answer(result: AnswerResult) -> None:
    if result.answer:
        for line in result.answer.splitlines():
            say(textwrap.fill(line, _WIDTH, drop_whitespace=True))
    else:
        say(_REASONS.get(result.reason or "", "There is no answer."))
    say()
    for citation in result.citations:
        _print_citation(citation)
    for claim in result.unsupported:
        say(f"Not in the cited passage: {', '.join(claim.missing)}.")
    if result.unchecked:
        sentences = counted(len(result.unchecked), "sentence")
        say(f"Only numbers and names were checked, because the language differs: {sentences}.")
    if result.removed:
        say(f"Removed, because no passage supports it: {counted(result.removed, 'sentence')}.")
    if result.cut:
        say("The answer was cut off at its token limit: raise the limit with --max-tokens.")


def _print_citation(citation: Citation) -> None:
    place = ", ".join(filter(None, (citation.uri, describe_location(citation))))
    say(f"[{citation.number}] {place}")
    say(textwrap.indent(textwrap.fill(citation.excerpt, _WIDTH), "   │ "))
    say()
