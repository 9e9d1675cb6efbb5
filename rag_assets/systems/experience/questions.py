"""Answers questions of orchestrators about tasks and failures with patterns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar
from uuid import UUID, uuid4

from anyio.to_thread import run_sync
from sqlalchemy import insert

from rag_assets.api.experience_responses import (
    Answer,
    Context,
    ContextReason,
    Pattern,
    UnmatchedName,
    Use,
)
from rag_assets.common.clock import Clock
from rag_assets.common.errors import (
    CapReached,
    ConfigurationError,
    IndexInconsistent,
    KeyUnreadable,
    NoProviderKey,
    ProviderError,
    ProviderRefused,
    RagAssetsError,
    SearchRejected,
    ServiceUnavailable,
    UnknownTenant,
)
from rag_assets.ingest.sources.model import parse_path
from rag_assets.search.model import (
    MAX_QUERY,
    MAX_TOP_K,
    Caller,
    Filters,
    Hit,
    SearchAnswer,
    SearchRequest,
)
from rag_assets.search.progress import NO_LIMITS, Patience, limit_time
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.experience.code_contents import add_stale_paths
from rag_assets.systems.experience.entries import (
    ERROR_KEYS,
    EXACT_KEY,
    has_project,
    is_limited_to_own_projects,
)
from rag_assets.systems.experience.model import (
    ANY_AGENT,
    MAX_FAILURE_PATTERNS,
    SOURCE_TYPE,
    ContextQuestion,
    FailureQuestion,
    TaskQuestion,
)
from rag_assets.systems.experience.patterns import (
    NAMES,
    Aliases,
    AnsweringEntries,
    PatternReader,
    build_pattern,
    compute_cutoff,
    is_living,
    resolve_names,
)
from rag_assets.systems.experience.ranking import (
    add_conflicts,
    append_block,
    build_block,
    rank_patterns,
)
from rag_assets.systems.experience.tables import experience_questions
from rag_assets.systems.experience.traces import QuestionKeys, compute_question_keys, condense_prose
from rag_assets.systems.experience.wording import MAX_TOKENS, build_failure_text, shorten_text
from rag_assets.tenants.model import Tenant

_ENOUGH_PATTERNS = 5
"""Number of patterns after which the search for entries ends."""
_SEARCH_SIZES = (30, MAX_TOP_K, MAX_TOP_K, MAX_TOP_K)
"""Number of entries to find in each search; further searches follow while patterns are too few."""
_MAX_KEYS = 100
_MAX_ASKED_KEYS = 100
_PATIENCE = Patience(embedding_seconds=3.0, search_seconds=6.0)
"""Time limits in seconds, after which an agent continues without patterns."""
_CONTEXT_FIELDS = {
    "agent_type": "agent_type",
    "task_type": "task.type",
    "technology": "task.technology",
}

_T = TypeVar("_T")


class ExperienceSearch(Protocol):
    """Searches a tenant's entries (see AsyncRetriever)."""

    async def search(
        self, tenant_id: str, request: SearchRequest, *, patience: Patience = NO_LIMITS
    ) -> SearchAnswer:
        """Search one tenant's entries."""


class BlockingRunner(Protocol):
    """Runs blocking work on behalf of a caller."""

    async def __call__(self, tenant_id: str, caller: str | None, work: Callable[[], _T], /) -> _T:
        """Return the result of the work."""


async def run_in_thread(_tenant_id: str, _caller: str | None, work: Callable[[], _T]) -> _T:
    """Run blocking work in a thread, without a limit per tenant."""
    return await run_sync(work)


@dataclass(frozen=True, slots=True)
class Questions:
    """Answers questions, in one event loop.

    Attributes:
        is_recording: whether questions are recorded, so that feedback on them is possible.
    """

    catalog: Catalog
    search: ExperienceSearch
    run_blocking: BlockingRunner = run_in_thread
    clock: Clock = field(default_factory=Clock)
    is_recording: bool = True
    patience: Patience = NO_LIMITS

    async def answer_task(
        self, record: TenantRecord, question: TaskQuestion, caller: Caller
    ) -> Answer:
        """Return the patterns for a task, best first.

        Raises:
            RoleRefused: the caller's role may not ask this tenant.
            ProviderError: the question could not be embedded.
        """
        project = await self._find_own_project(record, question.project_id, caller)
        names, unmatched = await self._resolve_names(record, question, caller)
        filters = _build_filters(project=project, names=names)
        request = _build_request("task", condense_prose(question.task_description), filters, caller)
        keys = compute_question_keys(question.task_description, None)
        answer = await self._answer_request(record, request, project, question.max_results, keys)
        return answer if answer.disabled else replace(answer, warnings=unmatched)

    async def answer_failure(
        self, record: TenantRecord, question: FailureQuestion, caller: Caller
    ) -> Answer:
        """Return the patterns for a failure, best first; see answer_task."""
        project = await self._find_own_project(record, question.project_id, caller)
        names, unmatched = await self._resolve_names(record, question, caller)
        filters = _build_filters(project=project, names=names, entry_type="failure_solution")
        text = build_failure_text(question.failure_description, question.error_message)
        request = _build_request("failure", text, filters, caller)
        keys = compute_question_keys(question.failure_description, question.error_message)
        answer = await self._answer_request(record, request, project, MAX_FAILURE_PATTERNS, keys)
        return answer if answer.disabled else replace(answer, warnings=unmatched)

    async def build_context(
        self, record: TenantRecord, question: ContextQuestion, caller: Caller
    ) -> Context:
        """Return the context of an agent: the basic context and a block of patterns.

        If a provider or the index fails or takes too long, the context has no block.

        Raises:
            RoleRefused: the caller's role may not ask this tenant.
            UnknownTenant: the tenant was removed.
        """
        patient = replace(self, patience=_PATIENCE)
        try:
            with limit_time(_PATIENCE.search_seconds, _timeout_error):
                answer = await patient.answer_task(record, question.task_question, caller)
        except RagAssetsError as error:
            reason = _explain_error(error)
            return Context(question.basic_context, None, (), 0, reason=reason)
        block = build_block(answer.patterns, question.token_budget)
        reason = "disabled" if answer.disabled else "nothing-found"
        return Context(
            context=append_block(question.basic_context, block),
            query_id=answer.query_id,
            patterns=block.patterns,
            tokens=block.tokens,
            disabled=answer.disabled,
            reason=None if block.patterns else reason,
            warnings=tuple(
                replace(warning, field=_CONTEXT_FIELDS[warning.field])
                for warning in answer.warnings
            ),
        )

    async def _resolve_names(
        self, record: TenantRecord, question: TaskQuestion | FailureQuestion, caller: Caller
    ) -> tuple[dict[str, tuple[str, ...]], tuple[UnmatchedName, ...]]:
        """Return the stored spelling variants of the names in a question; see resolve_names."""
        asked_names = {name: getattr(question, name, None) for name in NAMES}
        aliases = Aliases(Tenant.from_config(record.config).experience.aliases)
        resolve = partial(resolve_names, self.catalog, record.id, aliases, asked_names)
        return await self.run_blocking(record.id, caller.name, resolve)

    async def _find_own_project(
        self, record: TenantRecord, project: UUID | None, caller: Caller
    ) -> UUID | None:
        """Return the asking project, whose entries are excluded; None if another caller owns it.

        If a caller could name the project of another caller, the missing entries would reveal that
        project's entries.
        """
        if project is None or not is_limited_to_own_projects(caller):
            return project

        def is_own() -> bool:
            with self.catalog.database.begin() as connection:
                return has_project(connection, record.id, project, caller)

        return project if await self.run_blocking(record.id, caller.name, is_own) else None

    async def _answer_request(
        self,
        record: TenantRecord,
        request: SearchRequest,
        project: UUID | None,
        limit: int,
        keys: QuestionKeys,
    ) -> Answer:
        tenant = Tenant.from_config(record.config)
        answering, scores = AnsweringEntries(), dict[UUID, float]()
        answer = SearchAnswer()
        # Many entries may belong to one pattern. Each further search excludes entries that equal
        # entries already found, so that equal entries cannot hide all others.
        for count in _SEARCH_SIZES:
            narrowed = _exclude_equal_entries(request, answering.keys)
            answer = await self.search.search(
                record.id, narrowed.model_copy(update={"top_k": count}), patience=self.patience
            )
            if answer.disabled:
                return Answer.of_disabled()
            scored = _score_entries(answer.hits)
            scores = scored | scores
            answering = await self._read_found_entries(record, tenant, scores, project, request)
            has_enough = len(answering.counts) >= _ENOUGH_PATTERNS or len(scored) < count
            if has_enough or len(answering.keys) > _MAX_KEYS:
                break
        matching, same = await self._find_same_error(record, request, keys)
        if matching.keys() - scores.keys():
            scores = matching | scores
            answering = await self._read_found_entries(record, tenant, scores, project, request)
        exact = {
            entry.pattern_id
            for entry in answering.entries
            if entry.pattern_id and entry.id in matching
        }
        is_one_error = same and len(keys.located) == 1
        patterns, problems = _build_patterns(answering, scores, exact if is_one_error else ())
        cutoff = compute_cutoff(tenant, self.clock.now())
        fresh = partial(add_stale_paths, self.catalog, tenant, patterns, is_living(cutoff))
        patterns = await self.run_blocking(record.id, request.caller.name, fresh)
        shown_patterns = _choose_patterns(patterns, problems, limit, exact)
        query_id = await self._record_question(record, request, shown_patterns)
        threshold = answer.debug.threshold if answer.debug else None
        return Answer(query_id, threshold, tuple(shown_patterns))

    async def _find_same_error(
        self, record: TenantRecord, request: SearchRequest, keys: QuestionKeys
    ) -> tuple[dict[UUID, float], bool]:
        """Return the cosines of entries with the question's error, and whether locations are equal.

        An entry with the same error at the same location answers with any cosine. If one of the
        locations is unknown, the cosine must reach the threshold.
        """
        for wanted_keys, is_same in ((keys.located, True), (keys.unlocated, False)):
            if not wanted_keys:
                continue
            metadata = {**request.filters.metadata, ERROR_KEYS: wanted_keys[:_MAX_ASKED_KEYS]}
            filters = request.filters.model_copy(update={"metadata": metadata})
            changes = {"filters": filters, "top_k": _SEARCH_SIZES[0]} | (
                {"min_score": -1.0} if is_same else {}
            )
            answer = await self.search.search(
                record.id, request.model_copy(update=changes), patience=self.patience
            )
            if answer.hits:
                return _score_entries(answer.hits), is_same
        return {}, False

    async def _read_found_entries(
        self,
        record: TenantRecord,
        tenant: Tenant,
        scores: Mapping[UUID, float],
        project: UUID | None,
        request: SearchRequest,
    ) -> AnsweringEntries:
        """Read the entries that a search found, with their patterns."""
        cutoff = compute_cutoff(tenant, self.clock.now())
        reader = PatternReader(self.catalog.database)
        return await self.run_blocking(
            record.id,
            request.caller.name,
            lambda: reader.read_entries(record.id, scores.keys(), cutoff, without=project),
        )

    async def _record_question(
        self, record: TenantRecord, request: SearchRequest, patterns: Sequence[Pattern]
    ) -> UUID:
        """Record a question without its text, so that feedback can refer to it; return its id."""
        query_id = uuid4()
        if not self.is_recording:
            return query_id
        row = {
            "tenant": record.id,
            "id": query_id,
            "use": request.use,
            "asked_by": request.caller.name,
            "patterns": [str(pattern.id) for pattern in patterns],
        }

        def write() -> None:
            with self.catalog.database.begin_tenant(record.ref) as connection:
                connection.execute(insert(experience_questions).values(**row))

        await self.run_blocking(record.id, request.caller.name, write)
        return query_id


def _build_request(use: Use, text: str, filters: Filters, caller: Caller) -> SearchRequest:
    text = shorten_text(text, MAX_TOKENS)
    half = MAX_QUERY // 2
    if len(text) > MAX_QUERY:
        text = text[:half] + text[-half:]
    return SearchRequest(
        query=text,
        source_types=(SOURCE_TYPE,),
        filters=filters,
        mode="knn",
        rerank=False,
        caller=caller,
        use=use,
    )


def _exclude_equal_entries(request: SearchRequest, keys: Collection[str]) -> SearchRequest:
    """Return the request, excluding entries with these exact keys."""
    if not keys:
        return request
    without = {**request.filters.without_metadata, EXACT_KEY: tuple(sorted(keys))}
    filters = request.filters.model_copy(update={"without_metadata": without})
    return request.model_copy(update={"filters": filters})


def _timeout_error(seconds: float) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"the search for patterns exceeded its limit of {seconds:g} seconds",
        hint="try again in a moment",
    )


def _explain_error(error: RagAssetsError) -> ContextReason:
    """Return why a context has no patterns, from the error that its question raised.

    Raises:
        RagAssetsError: the error itself, if an agent must not ignore it.
    """
    match error:
        case UnknownTenant():
            raise error
        case NoProviderKey() | KeyUnreadable() | ProviderRefused(fault="key"):
            return "no-key"
        case CapReached():
            return "cap-reached"
        case ProviderError() | ConfigurationError():
            return "embedder-unavailable"
        case IndexInconsistent() | ServiceUnavailable() | SearchRejected():
            return "index-unavailable"
    raise error


def _build_filters(
    *,
    project: UUID | None,
    names: Mapping[str, tuple[str, ...]],
    entry_type: str | None = None,
) -> Filters:
    """Return the filters for entries; an entry without a value matches every value."""
    metadata: dict[str, tuple[str | None, ...]] = {}
    if entry_type is not None:
        metadata["entry_type"] = (entry_type,)
    for name, spellings in names.items():
        metadata[name] = (*spellings, ANY_AGENT if name == "agent_type" else None)
    without = {} if project is None else {"project_id": (str(project),)}
    return Filters(metadata=metadata, without_metadata=without)


def _score_entries(hits: Sequence[Hit]) -> dict[UUID, float]:
    """Return the cosine of each found entry, by its id.

    Entries with equal texts share one hit, and get the same cosine.
    """
    scores: dict[UUID, float] = {}
    for hit in hits:
        for uri in (hit.uri, *hit.also):
            # Records of this type in another source of the tenant are not entries.
            with suppress(ValueError):
                scores.setdefault(UUID(parse_path(uri).rpartition("/")[2]), hit.cosine or 0.0)
    return scores


def _build_patterns(
    answering: AnsweringEntries, scores: Mapping[UUID, float], same: Collection[UUID]
) -> tuple[list[Pattern], list[UUID]]:
    """Return the patterns of the found entries, best first, and the problem id of each.

    A pattern gets the text of its entry with the highest cosine.

    Args:
        same: patterns that are known to solve one problem.
    """
    patterns: dict[UUID, Pattern] = {}
    entries = sorted(answering.entries, key=lambda entry: (-scores[entry.id], str(entry.id)))
    for entry in entries:
        id_ = entry.pattern_id
        if id_ is not None and id_ in answering.counts and id_ not in patterns:
            patterns[id_] = build_pattern(entry, answering.counts[id_], scores[entry.id])
    problems = {id_: answering.counts[id_].problem_id for id_ in patterns}
    # Approvals of a gate are not alternatives, because they do not contradict each other.
    problems |= {
        id_: id_ for id_, pattern in patterns.items() if pattern.entry_type == "gate_approval"
    }
    shared = problems.keys() & same
    problems |= dict.fromkeys(shared, min((problems[id_] for id_ in shared), default=UUID(int=0)))
    return list(patterns.values()), list(problems.values())


def _choose_patterns(
    patterns: Sequence[Pattern],
    problems: Sequence[UUID],
    limit: int,
    exact: Collection[UUID],
) -> list[Pattern]:
    """Return the best `limit` patterns; each names the alternatives among them.

    Args:
        exact: patterns with the question's own error; their problems come first.
    """
    solves = {pattern.id: problem for pattern, problem in zip(patterns, problems, strict=True)}
    order = rank_patterns(patterns, problems, exact)
    kept = add_conflicts(order, [solves[pattern.id] for pattern in order])
    shown_patterns = kept[:limit]
    return add_conflicts(shown_patterns, [solves[pattern.id] for pattern in shown_patterns])
