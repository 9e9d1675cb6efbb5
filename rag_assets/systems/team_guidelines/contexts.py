"""Contexts: what a prompt gets of a team's guidelines, and what it gets where that fails.

Passages of documents come first, then the project's plain text, then nothing. A provider or an
index that fails takes away the passages, and never the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Protocol, TypeVar

from anyio.to_thread import run_sync
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.guideline_responses import (
    GuidelinesContext,
    NearMiss,
    Reason,
    RuleKind,
    camel,
)
from rag_assets.billing.switched_off import is_switched_off
from rag_assets.common.errors import (
    ConfigurationError,
    GuidelinesOff,
    IndexInconsistent,
    KeyUnreadable,
    NoProviderKey,
    ProviderError,
    ProviderRefused,
    RagAssetsError,
    SearchRejected,
    ServiceUnavailable,
    UnknownProject,
    UnknownTenant,
)
from rag_assets.common.failure_kinds import OF_PROVIDERS, WORDS, failure_kind
from rag_assets.common.tokens import count_text
from rag_assets.retrieval.documents import DocumentReader
from rag_assets.retrieval.model import MAX_QUERY, NUMBER, Caller, Hit, SearchAnswer, SearchRequest
from rag_assets.retrieval.patience import Patience
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.systems.team_guidelines.rules import MAX_PATHS, files_of, rule_hits
from rag_assets.systems.team_guidelines.section import (
    file_name_of,
    section_of_passages,
    section_of_text,
)
from rag_assets.systems.team_guidelines.texts import GuidelineTexts

MAX_PASSAGES = 5
MAX_TOKENS = 2_000

PATIENCE = Patience(embedding=3.0, whole=6.0)
"""A prompt waits this long for passages, and then goes on without them."""

_NEAR = 2 * MAX_PASSAGES
"""Passages that are looked at for near misses."""

REASONS: Mapping[Reason, str] = {
    "feature-off": "The organization has its guidelines switched off.",
    "no-documents": "No document is enabled: upload one, or enable one.",
    "documents-processing": "The documents are still being processed. Try again in a minute.",
    "documents-failed": (
        "Every document failed. The list of documents has the reason and the remedy of each."
    ),
    "nothing-above-threshold": "No passage is near enough to this task.",
    "no-key": "There is no usable key for the provider of models.",
    "embedder-unavailable": "The task could not be embedded in time. Try again later.",
    "index-unavailable": "The index does not answer, or is being repaired. Try again later.",
}
"""The sentence of each reason; that of a provider's failure comes from its kind."""

_T = TypeVar("_T")


_TaskPath = Annotated[
    str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")
]


class ContextRequest(BaseModel):
    """What a prompt is about, and how much of the guidelines it takes.

    Attributes:
        task: in words, as in "Playwright test for login with data-testid selectors".
        top_k: passages at most that are found by the task; those of rules come in addition.
        paths: of the files that the task is about, for rules by path; those that the task names
            count as well.
        token_budget: cl100k_base tokens of the whole section at most, where it is of passages.
        explain: also tell which passages were nearly taken, and how long each step took.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=camel, validate_by_name=True
    )

    task: Annotated[str, StringConstraints(max_length=MAX_QUERY, pattern=r"\S")]
    top_k: Annotated[int, Field(ge=1, le=MAX_PASSAGES), NUMBER] = MAX_PASSAGES
    token_budget: Annotated[int, Field(ge=1, le=MAX_TOKENS), NUMBER] = MAX_TOKENS
    paths: Annotated[tuple[_TaskPath, ...], Field(max_length=MAX_PATHS)] = ()
    explain: bool = False


class GuidelineSearch(Protocol):
    """Searches a project's documents (see AsyncRetriever)."""

    async def search(
        self, tenant_id: str, request: SearchRequest, *, patience: Patience
    ) -> SearchAnswer:
        """Search one tenant's knowledge."""


class BlockingRunner(Protocol):
    """Runs blocking work on behalf of a caller."""

    async def __call__(self, tenant_id: str, caller: str | None, work: Callable[[], _T], /) -> _T:
        """The result of the work."""


async def in_thread(_tenant_id: str, _caller: str | None, work: Callable[[], _T]) -> _T:
    """Run blocking work in any thread."""
    return await run_sync(work)


@dataclass(frozen=True, slots=True)
class Contexts:
    """Makes contexts, in one event loop.

    Attributes:
        catalog: holds plain texts.
        search: finds passages.
        reader: reads the documents of rules, as far as callers may.
        run_blocking: runs what waits for the catalog.
    """

    catalog: Catalog
    search: GuidelineSearch
    reader: DocumentReader
    run_blocking: BlockingRunner = in_thread

    async def of(
        self, record: TenantRecord, request: ContextRequest, caller: Caller
    ) -> GuidelinesContext:
        """What a prompt gets of a project's guidelines.

        Args:
            record: the project's tenant, as it is now.
            request: what the prompt is about.
            caller: who asks; only what these principals may read is found.

        Raises:
            UnknownProject: the project was removed meanwhile.
            ServiceUnavailable: Postgres does not answer.
        """
        if is_switched_off(record) or record.state != "ACTIVE":
            return await self._without("feature-off", record, caller)
        principals = self.reader.policy.principals(caller)
        has_documents = await self.run_blocking(
            record.id, caller.name, lambda: self.catalog.readable.any(record.id, principals)
        )
        if not has_documents:
            reason = await self.run_blocking(
                record.id, caller.name, lambda: self._reason_of_none(record.id)
            )
            return await self._without(reason, record, caller)
        search = SearchRequest(query=request.task, top_k=request.top_k, caller=caller)
        files = files_of(request.task, request.paths)
        rules = await self.run_blocking(
            record.id, caller.name, lambda: rule_hits(self.reader, record.id, caller, files)
        )
        try:
            answer = await self.search.search(record.id, search, patience=PATIENCE)
        except RagAssetsError as error:
            failure = failure_kind(error)
            detail = WORDS[failure].text_of_request if failure in OF_PROVIDERS else None
            without = await self._without(_reason(error), record, caller, detail)
            return _with_rules(without, rules, request)
        context = _found(answer, request, rules) if answer.hits else None
        if context is None:
            context = await self._without(_reason_of_nothing(answer), record, caller)
            context = _with_rules(context, rules, request)
        return await self._explained(context, answer, record, search, explain=request.explain)

    def _reason_of_none(self, tenant_id: str) -> Reason:
        """Return why no document can be found: none is there, or none is READY."""
        states = self.catalog.upload_states
        if states.page(tenant_id, status="PROCESSING", limit=1):
            return "documents-processing"
        if states.page(tenant_id, status="FAILED", limit=1):
            return "documents-failed"
        return "no-documents"

    async def _without(
        self, reason: Reason, record: TenantRecord, caller: Caller, detail: str | None = None
    ) -> GuidelinesContext:
        """The plain text, or nothing."""

        def read() -> GuidelinesContext:
            found = GuidelineTexts(self.catalog.database).get(record.id)
            is_none = found is None or found.is_blank
            section = "" if found is None or is_none else section_of_text(found.text)
            return GuidelinesContext(
                source="none" if is_none else "text",
                section=section,
                tokens=count_text(section),
                reason=reason,
                detail=detail or REASONS[reason],
            )

        return await self.run_blocking(record.id, caller.name, read)

    async def _explained(
        self,
        context: GuidelinesContext,
        answer: SearchAnswer,
        record: TenantRecord,
        search: SearchRequest,
        *,
        explain: bool,
    ) -> GuidelinesContext:
        """The context with what the search tells of itself."""
        debug = answer.debug
        context = replace(
            context,
            threshold=debug.threshold if debug else None,
            nearest=debug.nearest if debug else None,
            embedder=answer.embedder,
            generation=answer.generation,
        )
        if not explain:
            return context
        misses: tuple[NearMiss, ...] = ()
        if context.threshold is not None:
            misses = await self._near_misses(context.threshold, record, search)
        latencies = debug.latency_ms if debug else {}
        return replace(context, near_misses=misses, latency_ms=latencies)

    async def _near_misses(
        self, threshold: float, record: TenantRecord, search: SearchRequest
    ) -> tuple[NearMiss, ...]:
        """The nearest passages below the threshold; none where they cannot be found now."""
        nearest = {"min_score": -1.0, "mode": "knn", "rerank": False, "top_k": _NEAR}
        wider = search.model_copy(update=nearest)
        try:
            answer = await self.search.search(record.id, wider, patience=PATIENCE)
        except RagAssetsError as error:
            _reason(error)
            return ()
        below = [hit for hit in answer.hits if hit.score is not None and hit.score < threshold]
        return tuple(map(_near_miss, below[:MAX_PASSAGES]))


def _found(
    answer: SearchAnswer, request: ContextRequest, rules: Sequence[tuple[Hit, RuleKind]]
) -> GuidelinesContext:
    """Passages of rules in half of the budget at most, then those that were found."""
    kinds = {hit.document_id: kind for hit, kind in rules}
    share = request.token_budget // 2
    of_rules = section_of_passages([hit for hit, _ in rules], share)
    taken = {(chunk.document_id, chunk.chunk_index) for chunk in of_rules.chunks}
    kept = [hit for hit, _ in rules if (hit.document_id, hit.ordinal) in taken]
    found = [hit for hit in answer.hits if (hit.document_id, hit.ordinal) not in taken]
    section = section_of_passages([*kept, *found], request.token_budget, kinds)
    return GuidelinesContext(
        source="documents",
        section=section.text,
        tokens=section.tokens,
        chunks=section.chunks,
        omitted=section.omitted + len(rules) - len(kept),
    )


def _with_rules(
    context: GuidelinesContext, rules: Sequence[tuple[Hit, RuleKind]], request: ContextRequest
) -> GuidelinesContext:
    """A context without found passages, with those of rules before the plain text."""
    kinds = {hit.document_id: kind for hit, kind in rules}
    section = section_of_passages([hit for hit, _ in rules], request.token_budget, kinds)
    if not section.chunks:
        return context
    text = "\n\n".join(filter(None, (section.text, context.section)))
    return replace(
        context,
        source="documents",
        section=text,
        tokens=count_text(text),
        chunks=section.chunks,
        omitted=section.omitted,
    )


def _reason_of_nothing(answer: SearchAnswer) -> Reason:
    """Why a search found nothing, although there are documents."""
    debug = answer.debug
    if answer.disabled:
        return "feature-off"
    if debug is None:
        return "no-documents"
    if debug.nearest is None or debug.threshold is None or debug.nearest >= debug.threshold:
        # The catalog knows passages, and the index has none that are what was written.
        return "index-unavailable"
    return "nothing-above-threshold"


def _reason(error: RagAssetsError) -> Reason:
    """Why there are no passages, by the error of a search.

    Raises:
        UnknownProject: the project is gone.
        RagAssetsError: the error is another one than those that a prompt goes on without.
    """
    match error:
        case UnknownTenant():
            raise UnknownProject(
                "the project was removed", hint="make it again, or name another one"
            ) from None
        case GuidelinesOff():
            return "feature-off"
        case NoProviderKey() | KeyUnreadable() | ProviderRefused(fault="key"):
            return "no-key"
        case ProviderError() | ConfigurationError():
            return "embedder-unavailable"
        case IndexInconsistent() | ServiceUnavailable() | SearchRejected():
            return "index-unavailable"
    raise error


def _near_miss(hit: Hit) -> NearMiss:
    return NearMiss(
        document_id=hit.document_id,
        file_name=file_name_of(hit),
        chunk_index=hit.ordinal,
        score=hit.score or 0.0,
        page=hit.page,
        heading_path=hit.heading_path,
        tokens=count_text(hit.text_in_context),
        excerpt=hit.excerpt,
    )
