"""answer: a question answered in sentences, each with what it rests on."""

from __future__ import annotations

import asyncio
import textwrap

from rag_assets.billing.chat_models import ChatModels
from rag_assets.cli.commands.output import print_json, say, warn
from rag_assets.cli.commands.session import Session, with_session
from rag_assets.common.formatting import counted
from rag_assets.ingest.chunking.places import place_of
from rag_assets.retrieval import AsyncRetriever
from rag_assets.retrieval.answerer import Answerer
from rag_assets.retrieval.answers import AnswerRequest, AnswerResult, Citation

_WIDTH = 92
_WHY_NOT = {
    "nothing found": "Nothing is near enough to the question.",
    "over budget": "No passage fits into the budget of tokens.",
    "not answered": "What was found does not answer it.",
    "nothing supported": "Nothing that the model wrote rests on what was found.",
}


@with_session
def answer(session: Session, tenant_id: str, request: AnswerRequest, *, as_json: bool) -> None:
    """Answer one question."""
    result = asyncio.run(_answered(session, tenant_id, request))
    if result.disabled:
        warn(f"tenant {tenant_id} is disabled: it does not answer")
    if as_json:
        print_json(result)
        return
    _show(result)


async def _answered(session: Session, tenant_id: str, request: AnswerRequest) -> AnswerResult:
    chat_models = ChatModels(session.catalog, session.settings)
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    try:
        answerer = Answerer(session.catalog, chat_models, retriever)
        return await answerer.answer(tenant_id, request)
    finally:
        await chat_models.close()
        await retriever.close()


def _show(result: AnswerResult) -> None:
    if result.answer:
        for line in result.answer.splitlines():
            say(textwrap.fill(line, _WIDTH, drop_whitespace=True))
    else:
        say(_WHY_NOT.get(result.reason or "", "There is no answer."))
    say()
    for citation in result.citations:
        _show_citation(citation)
    if result.removed:
        say(f"Taken out, for want of a passage: {counted(result.removed, 'sentence')}.")
    if result.cut:
        say("The model may write no more than that: --max-tokens lets it.")


def _show_citation(citation: Citation) -> None:
    say(f"[{citation.number}] {', '.join(filter(None, (citation.uri, place_of(citation))))}")
    say(textwrap.indent(textwrap.fill(citation.excerpt, _WIDTH), "   │ "))
    say()
