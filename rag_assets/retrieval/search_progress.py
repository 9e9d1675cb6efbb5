"""The progress of a search, passed from step to step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_assets.models.embedding.coverage import Reading
from rag_assets.retrieval.duplicates import Distinct, Passage
from rag_assets.retrieval.model import Caller, Hit, IndexFault
from rag_assets.retrieval.patience import NO_LIMITS, Patience
from rag_assets.retrieval.reranking import Reranking
from rag_assets.retrieval.resolved_search import ResolvedSearch
from rag_assets.retrieval.timings import Timings
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.catalog.index_rows import ReadableVersion
from rag_assets.storage.index.model import Candidate, MovedPages, Owner

RankingKind: TypeAlias = Literal["vector", "words", "walk", "other"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates, best first.

    Attributes:
        kind: what ordered them; the scores of "vector" are cosines.
        is_cut: whether the index may have more.
        weight: relative to other rankings.
        terms: for a word ranking, the number of search terms; 0 if unknown.
        preferred: whether it contains only candidates that the request wants to rank higher.
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
        rankings: with confirmed candidates only.
        versions: of their documents, by document id.
        recalled: number of candidates before verification; not for the caller.
        at: time of confirmation, in seconds of the monotonic clock.
    """

    rankings: Sequence[Ranking]
    versions: Mapping[str, ReadableVersion]
    recalled: int
    at: float

    def without(self, ids: Collection[str]) -> Verified:
        """Return the same without some candidates."""
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
        ids: of candidates that belong to the names in the question; exempt from the threshold.
        paths: names from a start node to each reached node, most relevant first.
        complete: whether no limit cut the result.
        alone: whether it answers the question, so that the index is not searched.
        leading: ids of candidates with exactly the name that the question consists of; they come
            before all others.
    """

    ids: frozenset[str]
    paths: tuple[tuple[str, ...], ...]
    complete: bool = True
    alone: bool = False
    leading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """A search between two of its steps.

    Steps of a system may change `rankings`, `fused`, `order`, `cosines` and `passages`; their other
    changes are discarded (see SearchPlan).

    Attributes:
        search: the request with the tenant's defaults.
        serving: the generation that answers.
        owner: of the index entries that are searched.
        caller: who makes the request.
        principals: with grants that count for the caller.
        scopes: filter for searches of the index; None for no filter, since the caller reads too
            many scopes and verification alone decides.
        moved: pages for which the scopes in entries are out of date.
        pages: readable pages that the request is limited to; None for any.
        timings: durations of the parts of this search.
        patience: time limits of its parts.
        whole: whether rankings are fetched in full; otherwise their first candidates may be enough.
        fetch_factor: number of fetched candidates, as a multiple of the first attempt's.
        vector: of the question; None if only words count.
        rankings: candidates as recalled, not verified.
        verified: candidates that the catalog confirmed; None before verification.
        fused: scores by id, of all verified candidates, best first.
        order: distinct texts, best first.
        cosines, word_scores: by id, as far as known.
        passages: distinct texts with their stored fields, best first.
        equal: entries with the same texts, not verified; used if hits name all their places.
        joined: whether passages name the other places of their texts.
        altered: ids of entries that were altered in the index, and are left out.
        unread: ids that could not be read, or were altered, in this attempt.
        excluded: ids of entries that could not be read in earlier attempts.
        reranking: scores of the reranker; None without reranking.
        hits: that answer; None before they are made.
        floor: of the question, if it calibrates the threshold.
        walked: the walk that found candidates; None without a walk.
        beside: a walk to make while the index is searched; None without such a walk.
        replaced: documents for which the last attempt found only outdated versions.
        recalls: attempts to recall current versions, since entries were last read.
        reads: attempts to read the found entries.
        repeat: whether the search starts again with its first step.
        vectors_away: whether the index answered for vectors that are kept outside of it.
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
        """Return the passages that become hits, unless a budget leaves some out."""
        return self.passages[: self.search.limit]
