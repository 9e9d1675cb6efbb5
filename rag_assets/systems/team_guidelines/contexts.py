"""Contexts: the guidelines for a prompt, rendered as a section within a token budget.

A context contains passages of documents; without passages, it contains the project's plain text;
without either, it is empty. If a provider or the index fails, the context contains no passages, but
the request still succeeds. The MCP prompt `team_guidelines` returns the same section.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Protocol, TypeVar

from anyio.to_thread import run_sync
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.guideline_responses import (
    GuidelineChunk,
    GuidelinesContext,
    NearMiss,
    Reason,
    RuleKind,
    to_camel_case,
)
from rag_assets.common.errors import (
    ConfigurationError,
    IndexInconsistent,
    KeyUnreadable,
    NoProviderKey,
    NotOptedIn,
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
from rag_assets.ingest.chunking.model import describe_location
from rag_assets.ingest.sources.model import parse_path
from rag_assets.mcp.tools import Knowledge, Prompt, PromptFunction, current_message
from rag_assets.search.access import DocumentReader
from rag_assets.search.contexts import escape_imitations, format_source
from rag_assets.search.hits import remove_passages, take_first_sentences, truncate_hit
from rag_assets.search.model import MAX_QUERY, NUMBER, Caller, Hit, SearchAnswer, SearchRequest
from rag_assets.search.progress import Patience
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.team_guidelines.projects import PROFILE
from rag_assets.systems.team_guidelines.texts import (
    MAX_PATHS,
    GuidelineTexts,
    find_files,
    read_rule_hits,
)

MAX_PASSAGES = 5
MAX_TOKENS = 2_000

PATIENCE = Patience(embedding_seconds=3.0, search_seconds=6.0)
"""Time limits of the search for passages, in seconds."""

_NEAR_MISS_CANDIDATES = 2 * MAX_PASSAGES

REASONS: Mapping[Reason, str] = {
    "feature-off": "The organization has its guidelines switched off.",
    "no-documents": "No document is enabled: upload one, or enable one.",
    "documents-processing": "The documents are still being processed. Try again in a minute.",
    "documents-failed": (
        "Every document failed. The list of documents shows the reason and the remedy of each."
    ),
    "nothing-above-threshold": "No passage is similar enough to this task.",
    "no-key": "The embedding provider has no usable key. Set a key.",
    "embedder-unavailable": "The task could not be embedded in time. Try again later.",
    "index-unavailable": "The index does not respond, or is being repaired. Try again later.",
}
"""Sentence for each reason; a failed provider's failure kind has a more precise sentence."""

_T = TypeVar("_T")
_TaskPath = Annotated[
    str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")
]


class ContextRequest(BaseModel):
    """The task of a prompt, and the limits of its guidelines.

    Attributes:
        task: the task in words, as in "Playwright test for login with data-testid selectors".
        top_k: maximum number of passages from the search; rules may add others.
        paths: files of the task for rules by path, in addition to the paths in `task`.
        token_budget: maximum cl100k_base tokens of a section of passages.
        explain: whether to include near misses and the latency of each step.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel_case, validate_by_name=True
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
        """Search the documents of one tenant."""


class BlockingRunner(Protocol):
    """Runs blocking work on behalf of a caller."""

    async def __call__(self, tenant_id: str, caller: str | None, work: Callable[[], _T], /) -> _T:
        """Run the work and return its result."""


async def run_in_thread(_tenant_id: str, _caller: str | None, work: Callable[[], _T]) -> _T:
    """Run blocking work in a thread, without a limit per tenant."""
    return await run_sync(work)


@dataclass(frozen=True, slots=True)
class Contexts:
    """Builds the contexts of tasks, in one event loop."""

    catalog: Catalog
    search: GuidelineSearch
    reader: DocumentReader
    run_blocking: BlockingRunner = run_in_thread

    async def build(
        self, record: TenantRecord, request: ContextRequest, caller: Caller
    ) -> GuidelinesContext:
        """Build the context of a task from the documents that the caller may read.

        Raises:
            UnknownProject: the project was removed meanwhile.
            ServiceUnavailable: Postgres does not respond.
        """
        if not record.has_opted_in or record.state != "ACTIVE":
            return await self._build_fallback("feature-off", record, caller)
        principals = self.reader.policy.principals(caller)
        has_documents = await self.run_blocking(
            record.id, caller.name, lambda: self.catalog.readable.any(record.id, principals)
        )
        if not has_documents:
            reason = await self.run_blocking(
                record.id, caller.name, lambda: self._explain_no_documents(record.id)
            )
            return await self._build_fallback(reason, record, caller)
        search = SearchRequest(query=request.task, top_k=request.top_k, caller=caller)
        files = find_files(request.task, request.paths)
        rules = await self.run_blocking(
            record.id, caller.name, lambda: read_rule_hits(self.reader, record.id, caller, files)
        )
        try:
            answer = await self.search.search(record.id, search, patience=PATIENCE)
        except RagAssetsError as error:
            failure = failure_kind(error)
            detail = WORDS[failure].text_of_request if failure in OF_PROVIDERS else None
            context = await self._build_fallback(_explain_error(error), record, caller, detail)
            return _add_rules(context, rules, request)
        if answer.hits:
            context = _build_from_hits(answer, request, rules)
        else:
            context = await self._build_fallback(_explain_no_hits(answer), record, caller)
            context = _add_rules(context, rules, request)
        return await self._add_search_details(
            context, answer, record, search, is_explained=request.explain
        )

    def _explain_no_documents(self, tenant_id: str) -> Reason:
        """Return why a project has no document to search: none exists, or none is READY."""
        states = self.catalog.upload_states
        if states.page(tenant_id, status="PROCESSING", limit=1):
            return "documents-processing"
        if states.page(tenant_id, status="FAILED", limit=1):
            return "documents-failed"
        return "no-documents"

    async def _build_fallback(
        self, reason: Reason, record: TenantRecord, caller: Caller, detail: str | None = None
    ) -> GuidelinesContext:
        """Return a context with the plain text; if the project has none, an empty context."""

        def read() -> GuidelinesContext:
            text = GuidelineTexts(self.catalog.database).get(record.id)
            section = "" if text is None or text.is_blank else render_text(text.text)
            return GuidelinesContext(
                source="text" if section else "none",
                section=section,
                tokens=count_text(section),
                reason=reason,
                detail=detail or REASONS[reason],
            )

        return await self.run_blocking(record.id, caller.name, read)

    async def _add_search_details(
        self,
        context: GuidelinesContext,
        answer: SearchAnswer,
        record: TenantRecord,
        search: SearchRequest,
        *,
        is_explained: bool,
    ) -> GuidelinesContext:
        """Return the context with the threshold, scores and, if requested, near misses."""
        debug = answer.debug
        context = replace(
            context,
            threshold=debug.threshold if debug else None,
            nearest=debug.nearest if debug else None,
            embedder=answer.embedder,
            generation=answer.generation,
        )
        if not is_explained:
            return context
        misses: tuple[NearMiss, ...] = ()
        if context.threshold is not None:
            misses = await self._find_near_misses(context.threshold, record, search)
        latencies = debug.latency_ms if debug else {}
        return replace(context, near_misses=misses, latency_ms=latencies)

    async def _find_near_misses(
        self, threshold: float, record: TenantRecord, search: SearchRequest
    ) -> tuple[NearMiss, ...]:
        """Return the nearest passages below the threshold; none if the search fails."""
        nearest = {
            "min_score": -1.0,
            "mode": "knn",
            "rerank": False,
            "top_k": _NEAR_MISS_CANDIDATES,
        }
        wider = search.model_copy(update=nearest)
        try:
            answer = await self.search.search(record.id, wider, patience=PATIENCE)
        except RagAssetsError as error:
            _explain_error(error)  # raises the error again unless a server failed
            return ()
        below = [hit for hit in answer.hits if hit.cosine is not None and hit.cosine < threshold]
        return tuple(map(_build_near_miss, below[:MAX_PASSAGES]))


def _build_from_hits(
    answer: SearchAnswer, request: ContextRequest, rules: Sequence[tuple[Hit, RuleKind]]
) -> GuidelinesContext:
    """Return a context with the passages of rules, followed by the passages of the search.

    The passages of rules fill at most half of the token budget.
    """
    kinds = {hit.document_id: kind for hit, kind in rules}
    share = request.token_budget // 2
    rule_section = render_passages([hit for hit, _ in rules], share)
    rendered: dict[str, set[int]] = {}
    for chunk in rule_section.chunks:
        rendered.setdefault(chunk.document_id, set()).add(chunk.chunk_index)
    kept_hits = [hit for hit, _ in rules if hit.ordinal in rendered.get(hit.document_id, ())]
    others = (remove_passages(hit, rendered.get(hit.document_id, ())) for hit in answer.hits)
    hits = [*kept_hits, *(hit for hit in others if hit is not None)]
    section = render_passages(hits, request.token_budget, kinds)
    return GuidelinesContext(
        source="documents",
        section=section.text,
        tokens=section.tokens,
        chunks=section.chunks,
        omitted=section.omitted + len(rules) - len(kept_hits),
    )


def _add_rules(
    context: GuidelinesContext, rules: Sequence[tuple[Hit, RuleKind]], request: ContextRequest
) -> GuidelinesContext:
    """Return a context with the passages of rules, followed by the plain text in `context`.

    Without passages of rules, `context` is returned unchanged.
    """
    kinds = {hit.document_id: kind for hit, kind in rules}
    section = render_passages([hit for hit, _ in rules], request.token_budget, kinds)
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


def _explain_no_hits(answer: SearchAnswer) -> Reason:
    """Return why a search of a project with documents has no hits."""
    debug = answer.debug
    if answer.disabled:
        return "feature-off"
    if debug is None:
        return "no-documents"
    if debug.nearest is None or debug.threshold is None or debug.nearest >= debug.threshold:
        # The catalog contains passages, but the index does not.
        return "index-unavailable"
    return "nothing-above-threshold"


def _explain_error(error: RagAssetsError) -> Reason:
    """Return why a failed search leaves a prompt without passages.

    Raises:
        RagAssetsError: the error itself, if it must fail the request.
    """
    match error:
        case UnknownTenant():
            raise UnknownProject(
                "the project was removed",
                hint="create the project again, or choose a different project",
            ) from None
        case NotOptedIn():
            return "feature-off"
        case NoProviderKey() | KeyUnreadable() | ProviderRefused(fault="key"):
            return "no-key"
        case ProviderError() | ConfigurationError():
            return "embedder-unavailable"
        case IndexInconsistent() | ServiceUnavailable() | SearchRejected():
            return "index-unavailable"
    raise error


def _build_near_miss(hit: Hit) -> NearMiss:
    return NearMiss(
        document_id=hit.document_id,
        file_name=get_file_name(hit),
        chunk_index=hit.ordinal,
        chunk_indexes=tuple(passage.ordinal for passage in hit.ranges),
        score=hit.cosine or 0.0,
        page=hit.page,
        heading_path=hit.heading_path,
        tokens=count_text(hit.text_in_context),
        excerpt=hit.excerpt,
    )


HEADING = "## Team Guidelines"

_MAX_HEADING_CHARACTERS = 400
"""Maximum length of a passage's joined headings."""


@dataclass(frozen=True, slots=True)
class PromptSection:
    """A rendered section of a prompt, with its passages.

    Attributes:
        omitted: number of passages that did not fit.
    """

    text: str
    tokens: int
    chunks: tuple[GuidelineChunk, ...]
    omitted: int


def render_text(text: str) -> str:
    """Return a section that contains the plain text unchanged below our heading."""
    return f"{HEADING}\n\n{text}"


def render_passages(
    hits: Sequence[Hit], tokens: int, rules: Mapping[str, RuleKind] = MappingProxyType({})
) -> PromptSection:
    """Return a section with the first passages that fit, and the first sentences of the next.

    Args:
        tokens: maximum cl100k_base tokens of the whole section, including headings and separators.
        rules: kinds of the rules that added passages, by document id.
    """
    packed: list[Hit] = []
    for hit in hits:
        if _fits([*packed, hit], tokens):
            packed.append(hit)
            continue
        packed += _cut_to_fit(packed, hit, tokens)
        if packed:
            break
    if not packed:
        return PromptSection("", 0, (), len(hits))
    rendered = _render_section(packed)
    chunks = tuple(
        _build_chunk(number, hit, rules.get(hit.document_id))
        for number, hit in enumerate(packed, start=1)
    )
    return PromptSection(rendered, count_text(rendered), chunks, len(hits) - len(packed))


def get_file_name(hit: Hit) -> str:
    """Return the name of the file of a passage."""
    return parse_path(hit.uri).rpartition("/")[2]


def _fits(hits: Sequence[Hit], tokens: int) -> bool:
    return count_text(_render_section(hits)) <= tokens


def _cut_to_fit(before: Sequence[Hit], hit: Hit, tokens: int) -> list[Hit]:
    """Return the hit cut to the first sentences that fit after other hits; [] if none fits."""
    text = take_first_sentences(
        hit.text, lambda text: _fits([*before, truncate_hit(hit, text)], tokens)
    )
    return [truncate_hit(hit, text)] if text else []


def _render_section(hits: Sequence[Hit]) -> str:
    passages = (_render_passage(number, hit) for number, hit in enumerate(hits, start=1))
    return "\n\n".join((HEADING, *passages))


def _render_passage(number: int, hit: Hit) -> str:
    """Return a passage under a line that no document can imitate (see escape_imitations)."""
    page = describe_location(hit) if hit.page is not None else ""
    headings = " › ".join(hit.heading_path)[:_MAX_HEADING_CHARACTERS]
    source = format_source("; ".join(filter(None, (get_file_name(hit), page, headings))))
    return (
        f"--- Passage [{number}] (source: {source}) ---\n{escape_imitations(hit.text_in_context)}"
    )


def _build_chunk(number: int, hit: Hit, rule: RuleKind | None) -> GuidelineChunk:
    return GuidelineChunk(
        number=number,
        document_id=hit.document_id,
        file_name=get_file_name(hit),
        chunk_index=hit.ordinal,
        chunk_indexes=tuple(passage.ordinal for passage in hit.ranges) or (hit.ordinal,),
        score=hit.cosine,
        rule=rule,
        page=hit.page,
        heading_path=hit.heading_path,
        tokens=count_text(escape_imitations(hit.text_in_context)),
        trimmed=hit.trimmed,
    )


NO_GUIDELINES = "The team has no guidelines about this task."


def _build_prompt(knowledge: Knowledge) -> PromptFunction:
    catalog = knowledge.reader.catalog

    async def run(_tenant_id: str, _caller: str | None, work: Callable[[], _T]) -> _T:
        return await knowledge.in_thread(work)

    contexts = Contexts(catalog, knowledge, knowledge.reader, run_blocking=run)

    def find_project(tenant_id: str) -> TenantRecord:
        record = catalog.tenants.get(tenant_id)
        if record.profile != PROFILE:
            raise UnknownProject(
                "this tenant is not a project with team guidelines",
                hint="connect to a project's tenant",
            )
        return record

    async def team_guidelines(
        task: Annotated[
            str, Field(max_length=MAX_QUERY, pattern=r"\S", description="The task in words.")
        ],
    ) -> str:
        message = current_message()
        record = await knowledge.in_thread(lambda: find_project(message.tenant_id))
        context = await contexts.build(record, ContextRequest(task=task), message.caller)
        return context.section or NO_GUIDELINES

    return team_guidelines


TEAM_GUIDELINES = Prompt(
    name="team_guidelines",
    description="The team's guidelines that apply to a task.",
    function=_build_prompt,
)
