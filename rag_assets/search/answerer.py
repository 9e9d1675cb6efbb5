"""Answers: a question → passages → sentences that cite the passages that support them."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync

from rag_assets.billing.chat_models import ChatModels, TenantChat
from rag_assets.common.errors import PassagesWithdrawn
from rag_assets.models.chat import Completion, estimate_input_tokens
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.search.answers import (
    CONTEXT_TOKENS,
    SWITCHED_OFF,
    AnswerRequest,
    AnswerResult,
    Citation,
    Reason,
    UnsupportedClaim,
)
from rag_assets.search.citation_markers import blank_markers
from rag_assets.search.citations import UNSUPPORTED_MARK, enforce_citations, verify_citations
from rag_assets.search.citing import citation_of, cited_hits, nearness
from rag_assets.search.model import Hit
from rag_assets.search.prompts import NOT_ANSWERED, instructions, prompt, seal_of
from rag_assets.search.roles import require_asker
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from rag_assets.search.protocol import PassageSearch

_KEY_BYTES = 32


class Answerer:
    """Lets tenants' chat models answer from passages, and removes sentences without a citation.

    Args:
        catalog: holds the tenants.
        chat_models: write the answers.
        retriever: finds the passages.
        model: local embedding model. It finds the block that a claim is about if the words of
            the claim do not decide this.
    """

    def __init__(
        self,
        catalog: Catalog,
        chat_models: ChatModels,
        retriever: PassageSearch,
        model: Callable[[], Embedder] | None = None,
    ) -> None:
        self._catalog = catalog
        self._chat_models = chat_models
        self._retriever = retriever
        self._model = model
        self._seal_key = secrets.token_bytes(_KEY_BYTES)

    async def answer(self, tenant_id: str, request: AnswerRequest) -> AnswerResult:
        """Answer one question from one tenant's knowledge.

        Raises:
            UnknownTenant: no tenant has this id.
            NoChatModel: the tenant has no usable chat model.
            NoProviderKey, CapReached: the provider key is missing, or a spending cap is
                reached; see ChatModel and BilledChat.
            ChatError: the model wrote nothing usable.
            PassagesWithdrawn: a passage was deleted or closed to the caller while the model
                wrote.
            RagAssetsError: as raised by a search.
        """
        record = await asyncio.to_thread(self._catalog.tenants.get, tenant_id)
        require_asker(record.profile, request.caller)
        if record.state != "ACTIVE":
            return AnswerResult(disabled=True, notice=SWITCHED_OFF)
        chat = await self._chat_models.of(record)
        started = time.perf_counter()
        budget = request.token_budget or CONTEXT_TOKENS
        search = request.model_copy(update={"token_budget": budget})
        found = await self._retriever.search(tenant_id, search)
        searched = time.perf_counter()
        latency = {"search": _milliseconds(searched - started)}
        if not found.hits:
            # Either the tenant was disabled meanwhile, or no passage is near enough to answer from.
            reason: Reason | None = "over budget" if found.omitted else "nothing found"
            if found.disabled:
                reason = None
            return AnswerResult(
                disabled=found.disabled,
                notice=SWITCHED_OFF if found.disabled else None,
                needs_clarification=reason is not None,
                reason=reason,
                warnings=found.warnings,
                latency_ms=latency,
            )
        question = request.query
        tenant = Tenant.from_config(record.config)
        if not tenant.privacy.send_unmasked_questions:
            question = await self._retriever.masked(question)
        completion = await self._write_answer(
            chat, tenant_id, question, found.hits, request.max_tokens
        )
        latency["write"] = _milliseconds(time.perf_counter() - searched)
        # The model takes up to a minute; passages that were revoked meanwhile must not be shown.
        if not await self._retriever.still_readable(record.ref, request.caller, found):
            raise PassagesWithdrawn(
                "a source of the answer was withdrawn while the answer was written",
                hint="ask the question again",
            )
        mark = tenant.retrieval.unsupported_claims == "mark"
        # Run in a thread: comparing every claim with its passages would block other requests.
        result = await run_sync(partial(supported_answer, completion, found.hits, mark=mark))
        if self._model is not None:
            result = replace(result, citations=await _cited_by_meaning(result, self._model))
        return replace(
            result,
            model=chat.id,
            latency_ms=latency,
            degraded=found.degraded,
            warnings=found.warnings,
        )

    async def _write_answer(
        self,
        chat: TenantChat,
        tenant_id: str,
        question: str,
        hits: Sequence[Hit],
        max_tokens: int | None,
    ) -> Completion:
        """Return the model's text, with a time limit that fits the model's speed."""
        system = instructions()
        text = prompt(question, hits, seal_of(hits, self._seal_key, tenant_id))
        most = max_tokens or chat.config.max_tokens
        seconds = chat.config.seconds_for(estimate_input_tokens(system, text), most)
        return await chat.model.complete(system, text, max_tokens=most, seconds=seconds)


def supported_answer(
    completion: Completion, hits: Sequence[Hit], *, mark: bool = False
) -> AnswerResult:
    """Build an answer from a model's text, and leave out claims that cite no passage.

    Args:
        completion: the model's output.
        hits: the passages that the model was given.
        mark: whether a claim with figures that no cited passage has is marked instead of
            removed.
    """
    written = completion.text.strip()
    # The agreed sentence for "no answer" does not count as a removed claim.
    declined = written in {"", NOT_ANSWERED}
    kept = "" if declined else enforce_citations(written, hits, mark=mark)
    silent = declined or written.startswith(NOT_ANSWERED)
    reason: Reason = "not answered" if silent else "nothing supported"
    return AnswerResult(
        answer=kept,
        citations=tuple(map(citation_of, cited_hits(kept, hits))),
        hits=tuple(hits),
        removed=0 if declined else _claims(written, hits) - _claims(kept, hits),
        unsupported=tuple(_list_unsupported_claims(written, kept, hits)),
        unchecked=tuple(_list_unchecked_sentences(kept, hits)),
        needs_clarification=not kept,
        reason=None if kept else reason,
        cut=completion.cut,
        input_tokens=completion.input_tokens,
        output_tokens=completion.output_tokens,
    )


def _list_unsupported_claims(
    written: str, kept: str, hits: Sequence[Hit]
) -> Iterator[UnsupportedClaim]:
    """Yield the claims that are marked as unsupported in an answer."""
    if UNSUPPORTED_MARK in kept:
        for sentence in verify_citations(written, hits).sentences:
            if sentence.missing:
                yield UnsupportedClaim(_without_citations(sentence.text), sentence.missing)


def _list_unchecked_sentences(kept: str, hits: Sequence[Hit]) -> Iterator[str]:
    """Yield the sentences of an answer that are in another language than the passages they cite."""
    for sentence in verify_citations(kept, hits).sentences:
        if sentence.verdict == "unchecked":
            yield _without_citations(sentence.text)


def _without_citations(sentence: str) -> str:
    """Return a sentence without citations."""
    return re.sub(r"\s+(?=[.!?。！？؟]+$)", "", " ".join(blank_markers(sentence).split()))


def _claims(text: str, hits: Sequence[Hit]) -> int:
    return sum(s.verdict != "no claim" for s in verify_citations(text, hits).sentences)


async def _cited_by_meaning(
    result: AnswerResult, model: Callable[[], Embedder]
) -> tuple[Citation, ...]:
    """Return the citations of an answer, each with the block that its claims are about."""
    cited = await run_sync(cited_hits, result.answer, result.hits)
    near = await nearness(cited, model)
    return tuple(citation_of(one, near.get(one.hit.number)) for one in cited)


def _milliseconds(seconds: float) -> float:
    return round(1_000 * seconds, 1)
