"""The progress of one search, which its steps pass on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

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
from rag_assets.storage.catalog.relation_graph.graph import GraphKey
from rag_assets.storage.catalog.relation_state import RelationMoment
from rag_assets.storage.index.model import Candidate, MovedPages, Owner

RankingKind: TypeAlias = Literal["vector", "words", "walk", "other"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates, best first.

    Attributes:
        kind: what ordered them; the scores of "vector" are cosines.
        is_cut: whether the index may have more.
        weight: what it counts among others.
        terms: of one by words, how many were searched for; 0: unknown.
        preferred: whether it has nothing but what the request wants to rank higher.
        is_foreign: of one by words, whether vectors were not trained for the question's language.
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
        rankings: with no other candidates.
        versions: of their documents, by document id.
        recalled: how many candidates there were before; not for the caller.
        at: when the catalog confirmed them, in seconds of the monotonic clock.
    """

    rankings: Sequence[Ranking]
    versions: Mapping[str, ReadableVersion]
    recalled: int
    at: float

    def without(self, ids: Collection[str]) -> Verified:
        """The same, some candidates left out."""
        if not ids:
            return self
        rankings = [
            replace(ranking, candidates=[c for c in ranking.candidates if c.id not in ids])
            for ranking in self.rankings
        ]
        return replace(self, rankings=rankings)

    @property
    def by_id(self) -> dict[str, Candidate]:
        """Every candidate once."""
        return {c.id: c for ranking in self.rankings for c in ranking.candidates}


@dataclass(frozen=True, slots=True)
class Walked:
    """A walk along relations.

    Attributes:
        ids: of candidates that are related to what the question names: no threshold leaves them
            out.
        paths: names from one that it began at to each that it reached, most relevant first.
        complete: whether nothing was left out for a limit.
        alone: whether it answers the question: nothing else is searched.
        leading: ids of candidates that have exactly the name that the question consists of; they
            come before all others.
    """

    ids: frozenset[str]
    paths: tuple[tuple[str, ...], ...]
    complete: bool = True
    alone: bool = False
    leading: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """A search between two of its steps.

    Steps of a system may change `rankings`, `fused`, `order`, `cosines` and `passages`; what they
    change besides is not kept (see SearchPlan).

    Attributes:
        search: the request with the tenant's defaults.
        ref: the tenant.
        serving: the generation that answers.
        owner: whose entries in the index are searched.
        caller: who makes the request.
        principals: whose grants count for the caller.
        scopes: that searches of the index are filtered by; None: they are not, since the caller
            reads too many, and verification alone decides.
        moved: pages for which the scopes of entries do not count by now.
        pages: that the request is narrowed to, of those that the caller may read; None: any.
        moment: what the caller could read of relations when the search began.
        timings: durations of the parts of this search.
        patience: how long its parts may take.
        whole: whether rankings are fetched whole; else their first candidates may be enough.
        fetch_factor: how many times as many candidates are fetched as in the first attempt.
        vector: of the question; None where only words count.
        rankings: candidates as they were recalled, not verified.
        verified: those that the catalog confirmed; None before.
        fused: scores by id, of all verified candidates, best first.
        order: distinct texts, best first.
        cosines, word_scores: by id, as far as they are known.
        passages: distinct texts with their stored fields, best first.
        equal: entries with the texts of these, not verified, where hits name all of them.
        joined: whether passages name the other places of their texts.
        altered: ids of entries that are not what was written, left out.
        unread: ids that could not be read, or were altered, in this attempt.
        excluded: ids of entries that could not be read in former attempts.
        reranking: scores of the reranker; None without reranking.
        hits: that answer; None before they are made.
        floor: of the question, where it calibrates the threshold.
        walked: the walk that candidates were found by; None without one.
        beside: a walk that is to be made while the index is searched; None without one.
        replaced: documents of which only former versions were found, in the last attempt.
        recalls: attempts to recall current versions, since entries were read last.
        reads: attempts to read what was found.
        repeat: whether the search begins again with its first step.
        vectors_away: whether the index answered for vectors that are searched beside it.
        reading: how well the embedder reads the question; unread, words alone rank, unless vectors
            were asked for.
        index_fault: why the index is incomplete; None where nothing is known to be amiss.
    """

    search: ResolvedSearch
    ref: TenantRef
    serving: Generation
    owner: Owner
    caller: Caller
    principals: tuple[str, ...]
    scopes: frozenset[str] | None
    moved: MovedPages
    moment: RelationMoment
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

    @property
    def build(self) -> GraphKey:
        """The build that is searched."""
        return GraphKey(self.ref, self.serving.number)

    @property
    def confirmed(self) -> Verified:
        """What the catalog confirmed; nothing before verification."""
        return self.verified or Verified((), {}, 0, 0.0)

    @property
    def answered(self) -> Sequence[Passage]:
        """The passages that are hits, unless a budget leaves some out."""
        return self.passages[: self.search.limit]
