"""The progress of a search, passed from step to step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_assets.models.embedding.coverage import Reading
from rag_assets.search.duplicates import Distinct, Passage
from rag_assets.search.model import Caller, Hit, IndexFault
from rag_assets.search.patience import NO_LIMITS, Patience
from rag_assets.search.reranking import Reranking
from rag_assets.search.resolved_search import ResolvedSearch
from rag_assets.search.timings import Timings
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.model import Candidate, MovedPages, Owner

RankingKind: TypeAlias = Literal["vector", "words", "walk", "other"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates, best first.

    Attributes:
        kind: what ordered the candidates; the scores of a "vector" ranking are cosines.
        is_cut: whether the index may have more candidates.
        weight: weight relative to other rankings.
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
class Verified:
    """Candidates that the catalog confirmed: current versions that the caller may read.

    Attributes:
        rankings: the rankings, with confirmed candidates only.
        versions: versions of the candidates' documents, by document id.
        recalled: number of candidates before verification; it must not be shown to the caller.
        at: time of confirmation, in seconds of the monotonic clock.
    """

    rankings: Sequence[Ranking]
    versions: Mapping[str, ReadableVersion]
    recalled: int
    at: float

    def without(self, ids: Collection[str]) -> Verified:
        """Return the verified candidates except some."""
        if not ids:
            return self
        rankings = [
            replace(ranking, candidates=[c for c in ranking.candidates if c.id not in ids])
            for ranking in self.rankings
        ]
        return replace(self, rankings=rankings)

    @property
    def by_id(self) -> dict[str, Candidate]:
        """Return every candidate once, by id."""
        return {c.id: c for ranking in self.rankings for c in ranking.candidates}


@dataclass(frozen=True, slots=True)
class Walked:
    """The result of a walk from names in a question or from the first candidates.

    Attributes:
        ids: ids of candidates that belong to the names in the question; the threshold does not
            apply to them.
        paths: names from a start node to each reached node, most relevant first.
        complete: whether the result is complete; False if a limit cut it.
        alone: whether the walk alone answers the question, so that the index is not searched.
        leading: ids of candidates whose name is exactly the question; they come before all
            others.
    """

    ids: frozenset[str]
    paths: tuple[tuple[str, ...], ...]
    complete: bool = True
    alone: bool = False
    leading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """A search between two of its steps.

    Steps of a system that are not trusted may change `rankings`, `fused`, `order`, `cosines` and
    `passages`; their other changes are discarded (see SearchPlan).

    Attributes:
        search: the request with the tenant's defaults.
        serving: the generation that answers.
        owner: owner of the index entries that are searched.
        caller: who makes the request.
        principals: principals whose grants apply to the caller.
        scopes: access scopes by which searches of the index filter. None for no filter: the
            caller reads too many scopes, so that verification alone decides.
        moved: pages for which the scopes in index entries are out of date.
        pages: readable pages that the request is limited to; None without such a limit.
        timings: durations of the parts of this search.
        patience: time limits of the parts of this search.
        whole: whether rankings are fetched in full; otherwise their first candidates may be
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
        equal: entries with the same texts as the passages, not verified; used if hits name all
            documents that contain their text.
        joined: whether passages already name the other documents that contain their texts.
        altered: ids of entries that were altered in the index, and are left out.
        unread: ids of entries that could not be read, or were altered, in this attempt.
        excluded: ids of entries that could not be read in earlier attempts.
        reranking: scores of the reranker; None without reranking.
        hits: the hits of the search; None before they are built.
        floor: floor of the question, if the question calibrates the threshold.
        walked: the walk that found candidates; None without a walk.
        beside: a function that walks while the index is searched; None without such a walk.
        replaced: documents for which the last attempt found only outdated versions.
        recalls: number of attempts to recall current versions since entries were last read.
        reads: number of attempts to read the found entries.
        repeat: whether the search starts again from its first step.
        vectors_away: whether the index answered instead of the separate vector store that keeps
            the build's vectors.
        reading: how well the embedder reads the question; if "unread", words alone rank, unless
            vectors were requested.
        index_fault: why the index is incomplete; None if no fault is known.
        kept: values that a step keeps for later steps of the same search, by its own names.
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
    whole: bool = True
    fetch_factor: int = 1
    vector: npt.NDArray[np.float32] | None = None
    rankings: Sequence[Ranking] = ()
    verified: Verified | None = None
    fused: Mapping[str, float] = field(default_factory=dict)
    order: Sequence[Distinct] = ()
    cosines: Mapping[str, float] = field(default_factory=dict)
    word_scores: Mapping[str, float] = field(default_factory=dict)
    passages: Sequence[Passage] = ()
    equal: Sequence[Candidate] = ()
    joined: bool = False
    altered: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    reranking: Reranking | None = None
    hits: Sequence[Hit] | None = None
    floor: float | None = None
    walked: Walked | None = None
    pages: tuple[str, ...] | None = None
    beside: Callable[[SearchProgress], Awaitable[SearchProgress]] | None = None
    replaced: frozenset[tuple[str, str, str]] = frozenset()
    recalls: int = 0
    reads: int = 0
    repeat: bool = False
    vectors_away: bool = False
    reading: Reading = "known"
    index_fault: IndexFault | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def confirmed(self) -> Verified:
        """Return the candidates that the catalog confirmed; empty before verification."""
        return self.verified or Verified((), {}, 0, 0.0)

    @property
    def answered(self) -> Sequence[Passage]:
        """Return the passages that become hits, unless a token budget leaves some out."""
        return self.passages[: self.search.limit]
