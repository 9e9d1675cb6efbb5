"""The progress of a search: the resolved request, rankings, passages and hits."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import anyio
import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import InvalidRequest, NoReranker, RagAssetsError, RerankFault
from rag_assets.models.chat import UNKNOWN_WINDOW, find_context_window
from rag_assets.models.config import RerankConfig
from rag_assets.models.embedding.coverage import Reading
from rag_assets.search.model import MAX_TOP_K, Caller, Hit, IndexFault, SearchRequest
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.measurements import (
    get_measured_floors,
    get_measured_threshold,
)
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.common_words import is_english
from rag_assets.storage.index.model import Candidate, MovedPages, Owner, is_within
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.modes import SearchMode
from rag_assets.tenants.profiles import get_profile

RankingKind: TypeAlias = Literal["vector", "words", "walk", "other"]


class Timings:
    """The milliseconds that each part of a search takes; repeated measurements are added up."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Measure the duration of a `with` block."""
        started = time.perf_counter()
        yield
        took = 1_000 * (time.perf_counter() - started)
        self.milliseconds[name] = round(self.milliseconds.get(name, 0.0) + took, 3)


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits of a search, in seconds; with None, only the limits of connections apply."""

    embedding_seconds: float | None = None
    search_seconds: float | None = None


NO_LIMITS = Patience()


@contextmanager
def limit_time(
    seconds: float | None, build_error: Callable[[float], RagAssetsError]
) -> Iterator[None]:
    """Cancel the body of a `with` statement in a coroutine if it takes too long."""
    if seconds is None:
        yield
        return
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise build_error(seconds)


@dataclass(frozen=True, slots=True)
class ResolvedSearch:
    """A request resolved with the tenant's defaults.

    Attributes:
        question: the question as it is sent to embedder and reranker.
        floors: floors (see scoring) of the questions that have calibrated the threshold so far.
            While they are set, min_cosine is an upper bound of the threshold. None if the threshold
            is fixed.
    """

    tenant: Tenant
    request: SearchRequest
    question: str
    mode: SearchMode
    limit: int
    min_cosine: float | None
    rerank: RerankConfig | None
    token_budget: int | None = None
    floors: tuple[float, ...] | None = None

    @classmethod
    def resolve(
        cls, tenant: Tenant, request: SearchRequest, masked: str, serving: Generation | None
    ) -> ResolvedSearch:
        """Return the request, with the tenant's defaults for missing parameters."""
        default = tenant.retrieval
        return cls(
            tenant,
            request.model_copy(update={"query": masked}),
            question=request.query if tenant.privacy.send_unmasked_questions else masked,
            mode=request.mode or default.mode,
            limit=_resolve_limit(tenant, request.top_k or default.top_k),
            min_cosine=_resolve_threshold(tenant, request, serving),
            rerank=_resolve_reranker(tenant, request),
            token_budget=_resolve_token_budget(tenant, request),
            floors=_resolve_floors(tenant, request, serving),
        )

    def for_generation(self, serving: Generation) -> ResolvedSearch:
        """Return the same search in another build, with the threshold of that build's embedder."""
        return replace(
            self,
            min_cosine=_resolve_threshold(self.tenant, self.request, serving),
            floors=_resolve_floors(self.tenant, self.request, serving),
        )

    @property
    def depth(self) -> int:
        """Return how many candidates to rank; the best of them become hits."""
        return self.limit if self.rerank is None else max(self.limit, self.rerank.first)

    @property
    def needs_vector(self) -> bool:
        """Return whether the question must be embedded; a search by words alone needs no vector."""
        return self.mode != "text" or self.min_cosine is not None

    def prefers(self, uri: str) -> bool:
        """Return whether the request prefers a path that contains this document."""
        paths = self.request.must_include_paths
        return bool(paths) and is_within_any(uri, paths)


def is_within_any(path: str, paths: Sequence[str] | None) -> bool:
    """Return whether a path lies in at least one of these paths; True without paths (None)."""
    return paths is None or any(is_within(path, other) for other in paths)


def _resolve_limit(tenant: Tenant, wanted: int) -> int:
    max_hits = get_profile(tenant.profile).most_hits
    if max_hits is not None:
        return min(wanted, max_hits)
    if wanted > MAX_TOP_K:
        raise InvalidRequest(f"top_k must be at most {MAX_TOP_K}", hint="request fewer hits")
    return wanted


def _resolve_threshold(
    tenant: Tenant, request: SearchRequest, serving: Generation | None
) -> float | None:
    if request.min_score is not None or serving is None:
        return request.min_score
    measured = get_measured_threshold(serving, request.use)
    return tenant.min_score(serving.embedder_id, request.use, measured=measured)


def _resolve_floors(
    tenant: Tenant, request: SearchRequest, serving: Generation | None
) -> tuple[float, ...] | None:
    """Return the floors measured so far if questions calibrate the threshold; otherwise None."""
    if request.min_score is not None or serving is None:
        return None
    if not tenant.calibrates(serving.embedder_id):
        return None
    if get_measured_threshold(serving, request.use) is not None:
        return None
    if get_profile(tenant.profile).threshold(serving.embedder_id, request.use) is None:
        return None
    return tuple(get_measured_floors(serving, request.use).values())


def _resolve_token_budget(tenant: Tenant, request: SearchRequest) -> int | None:
    """Return the maximum number of tokens of all hits; None for no limit."""
    share = get_profile(tenant.profile).share_of_window
    window = _find_context_window(tenant, request)
    if request.token_budget is not None or share is None or window is None:
        return request.token_budget
    return int(share * window)


def _find_context_window(tenant: Tenant, request: SearchRequest) -> int | None:
    """Return the context window in tokens of the model that reads the hits; None if unknown."""
    own = tenant.chat_model
    model = request.model or (own.model if own else None)
    if model is None:
        return None
    if own is not None and own.context_window is not None and model == own.model:
        return own.context_window
    return find_context_window(model) or UNKNOWN_WINDOW


def _resolve_reranker(tenant: Tenant, request: SearchRequest) -> RerankConfig | None:
    config = tenant.retrieval.rerank
    if config is None:
        if request.rerank:
            raise NoReranker(
                f"tenant {tenant.id!r} has no reranker",
                hint="configure retrieval.rerank, or leave out rerank",
            )
        return None
    wanted = config.by_default if request.rerank is None else request.rerank
    if config.is_shipped and tenant.reads_facts:
        return None
    is_readable = config.languages == "any" or is_english(request.query)
    return config if wanted and is_readable else None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates, best first.

    Attributes:
        kind: the search that ordered the candidates; the scores of a "vector" ranking are cosines.
        is_cut: whether the index may have more candidates.
        terms: for a word ranking, the number of search terms; 0 if unknown.
        preferred: whether it contains only candidates in paths that the request prefers.
        is_foreign: for a word ranking, whether vectors were not trained for the question's
            language.
    """

    kind: RankingKind
    candidates: Sequence[Candidate]
    is_cut: bool = False
    weight: float = 1.0
    terms: int = 0
    preferred: bool = False
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class VerifiedCandidates:
    """Candidates that the catalog confirmed: current versions that the caller may read.

    Attributes:
        rankings: the rankings, with confirmed candidates only.
        versions: versions of the candidates' documents, by document id.
        recalled_count: number of candidates before verification; never show it to the caller.
        at: time of confirmation, in seconds of the monotonic clock.
    """

    rankings: Sequence[Ranking]
    versions: Mapping[str, ReadableVersion]
    recalled_count: int
    at: float

    def without(self, ids: Collection[str]) -> VerifiedCandidates:
        """Return the verified candidates without the candidates with these ids."""
        if not ids:
            return self
        rankings = [
            replace(ranking, candidates=[c for c in ranking.candidates if c.id not in ids])
            for ranking in self.rankings
        ]
        return replace(self, rankings=rankings)

    @property
    def by_id(self) -> dict[str, Candidate]:
        """Return the candidates of all rankings by id, each once."""
        return {c.id: c for ranking in self.rankings for c in ranking.candidates}


@dataclass(frozen=True, slots=True)
class WalkResult:
    """The result of a walk along relations, from names in a question or from candidates.

    Attributes:
        ids: ids of candidates that belong to the names in the question; the threshold does not
            apply to them.
        paths: names from a start node to each reached node, most relevant first.
        alone: whether the walk alone answers the question, so that the index is not searched.
        leading: ids of candidates whose name is exactly the question; they come before all
            others.
    """

    ids: frozenset[str]
    paths: tuple[tuple[str, ...], ...]
    alone: bool = False
    leading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DistinctText:
    """A candidate, and the uris of other documents with its text, in order of rank."""

    candidate: Candidate
    also: tuple[str, ...] = ()
    block: Candidate | None = None

    @property
    def id(self) -> str:
        """Return the id of the candidate."""
        return self.candidate.id


@dataclass(frozen=True, slots=True)
class Passage:
    """A distinct text with its stored fields.

    Attributes:
        block_fields: stored fields of the block that the question is about, if one was found.
        parts: the passages that it was merged from, in document order; empty if it is a single
            entry.
    """

    candidate: Candidate
    also: tuple[str, ...]
    fields: Mapping[str, Any]
    block_fields: Mapping[str, Any] | None = None
    parts: tuple[Passage, ...] = ()

    @property
    def id(self) -> str:
        """Return the id of the candidate."""
        return self.candidate.id


@dataclass(frozen=True, slots=True)
class Reranking:
    """The result of reranking.

    Attributes:
        scores: by id of the scored passages; empty if reranking failed.
        fault: why reranking failed, if it did; also "late" if there was time to score only the
            first passages.
        blend: share of these scores in the order; the fused scores have the remaining share.
    """

    scores: Mapping[str, float]
    fault: RerankFault | None = None
    blend: float = 1.0


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """A search between two of its steps.

    Steps of a system that are not trusted may change `rankings`, `fused`, `order`, `cosines` and
    `passages`; their other changes are discarded (see SearchPlan).

    Attributes:
        serving: the build that answers.
        scopes: access scopes by which searches of the index filter. None for no filter: the
            caller reads too many scopes, so that verification alone decides.
        moved: pages for which the scopes in index entries are out of date.
        pages: readable pages that the request is limited to; None without such a limit.
        fetch_all: whether rankings are fetched in full; otherwise their first candidates may be
            enough.
        fetch_factor: number of candidates to fetch, as a multiple of the number in the first
            attempt.
        vector: vector of the question; None if only words count.
        rankings: candidates as recalled, not verified.
        verified: candidates that the catalog confirmed; None before verification.
        fused: fused scores of all verified candidates, by id, best first.
        order: distinct texts, best first.
        cosines, word_scores: known scores of candidates, by id.
        passages: distinct texts with their stored fields, best first.
        equal_texts: entries with the same texts as the passages, not verified; used if hits name
            all documents that contain their text.
        has_joined_documents: whether passages already name the other documents that contain their
            texts.
        altered_ids: ids of entries that were altered in the index; searches omit them.
        unread_ids: ids of entries that could not be read, or were altered, in this attempt.
        excluded_ids: ids of entries that could not be read in earlier attempts.
        reranking: scores of the reranker; None without reranking.
        hits: the hits of the search; None before they are built.
        floor: floor of the question (see scoring), if it calibrates the threshold.
        walk: result of the walk that found candidates; None without a walk.
        concurrent_walk: walks while the index is searched; None without such a walk.
        replaced: documents of which the last attempt found only outdated or just deleted versions.
        recall_attempts: number of attempts to recall current versions since entries were last
            read.
        read_attempts: number of attempts to read the recalled entries.
        repeat: whether the search starts again from its first step.
        uses_index_vectors: whether the index answered because the separate vector store that keeps
            the build's vectors did not.
        reading: how well the embedder reads the question; if "unread", words alone rank, unless
            vectors were requested.
        index_fault: why the index is incomplete; None if no fault is known.
        step_values: values that a step keeps for later steps of the same attempt, by names that
            the step chooses.
    """

    search: ResolvedSearch
    ref: TenantRef
    serving: Generation
    owner: Owner
    caller: Caller
    principals: tuple[str, ...]
    scopes: frozenset[str] | None
    moved: MovedPages
    timings: Timings
    patience: Patience = NO_LIMITS
    fetch_all: bool = True
    fetch_factor: int = 1
    vector: npt.NDArray[np.float32] | None = None
    rankings: Sequence[Ranking] = ()
    verified: VerifiedCandidates | None = None
    fused: Mapping[str, float] = field(default_factory=dict)
    order: Sequence[DistinctText] = ()
    cosines: Mapping[str, float] = field(default_factory=dict)
    word_scores: Mapping[str, float] = field(default_factory=dict)
    passages: Sequence[Passage] = ()
    equal_texts: Sequence[Candidate] = ()
    has_joined_documents: bool = False
    altered_ids: frozenset[str] = frozenset()
    unread_ids: frozenset[str] = frozenset()
    excluded_ids: frozenset[str] = frozenset()
    reranking: Reranking | None = None
    hits: Sequence[Hit] | None = None
    floor: float | None = None
    walk: WalkResult | None = None
    pages: tuple[str, ...] | None = None
    concurrent_walk: Callable[[SearchProgress], Awaitable[SearchProgress]] | None = None
    replaced: frozenset[tuple[str, str, str]] = frozenset()
    recall_attempts: int = 0
    read_attempts: int = 0
    repeat: bool = False
    uses_index_vectors: bool = False
    reading: Reading = "known"
    index_fault: IndexFault | None = None
    step_values: dict[str, Any] = field(default_factory=dict)

    @property
    def confirmed(self) -> VerifiedCandidates:
        """Return the candidates that the catalog confirmed; empty before verification."""
        return self.verified or VerifiedCandidates((), {}, 0, 0.0)

    @property
    def answered(self) -> Sequence[Passage]:
        """Return the passages that become hits, unless they exceed the token budget."""
        return self.passages[: self.search.limit]
