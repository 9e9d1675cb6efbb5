"""Recall and verify: fetch candidates from the index, and keep those that the catalog confirms."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import ProviderUnavailable, VectorsUnavailable
from rag_assets.search.access import split_moved_pages
from rag_assets.search.progress import (
    Ranking,
    RankingKind,
    SearchProgress,
    VerifiedCandidates,
    is_within_any,
    limit_time,
)
from rag_assets.search.services import SearchServices, find_question_reader
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.common_words import is_english
from rag_assets.storage.index.model import Candidate, EntryFilter, RankingRequest
from rag_assets.storage.index.terms import parse_query_words

_RUN_SOURCE_TYPES = ("run_summary", "file_change")
_EXTRA_CANDIDATES = 30
_FIRST_EXTRA_CANDIDATES = 10
_MIN_CANDIDATES_BY_FILE = 200
"""Minimum candidates for tenants whose results are ordered by all the passages of a file."""
_UNFILTERED_FACTOR = 4
_MAX_CANDIDATES = 1_000
"""Maximum candidates of a ranking that is fetched again because the first attempt had too few."""

_Query: TypeAlias = tuple[RankingKind, npt.NDArray[np.float32] | str]
_MAX_RECALLS = 5


def compute_candidate_count(limit: int, factor: int = 1, *, minimum: int = 0) -> int:
    """Return how many candidates to rank, in each ranking, for a number of hits.

    Args:
        factor: multiple of the first number, up to 1,000 candidates.
        minimum: minimum of the first number.
    """
    count = max(2 * limit + _EXTRA_CANDIDATES, minimum)
    return max(count, min(factor * count, _MAX_CANDIDATES))


def _count_candidates(progress: SearchProgress) -> int:
    """Return how many candidates of each ranking a search needs."""
    search = progress.search
    minimum = _MIN_CANDIDATES_BY_FILE if search.tenant.reads_facts else 0
    return compute_candidate_count(search.depth, progress.fetch_factor, minimum=minimum)


def compute_recall_limit(progress: SearchProgress) -> int:
    """Return the number of candidates to request for each ranking.

    If the index does not filter by scopes, more are requested, since verification removes those
    that the caller may not read.
    """
    wanted = _count_candidates(progress)
    return wanted if progress.scopes is not None else _UNFILTERED_FACTOR * wanted


def compute_first_count(progress: SearchProgress) -> int | None:
    """Return how many candidates to fetch first; None for the whole ranking.

    A part is enough if a single ranking determines the order of the hits, and if few candidates
    will be left out. A search that may reorder candidates needs all of them.
    """
    search = progress.search
    in_order = search.mode == "knn" or (search.mode == "text" and search.min_cosine is None)
    all_count = progress.fetch_all or progress.scopes is None
    if all_count or not in_order or search.request.must_include_paths:
        return None
    if search.tenant.reads_facts:  # A step may also start from later candidates.
        return None
    return search.depth + _FIRST_EXTRA_CANDIDATES


class RecallStep:
    """Embeds the question if needed, and fetches the rankings of the request."""

    def __init__(self, services: SearchServices) -> None:
        self._services = services
        self._vectors = services.vectors
        self._searcher = services.searcher

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Add the index's rankings, and the ranking of a concurrent walk, to the progress."""
        if progress.walk is not None and progress.walk.alone:
            return progress
        if progress.concurrent_walk is None:
            return await self._recall_candidates(progress)
        alone = replace(progress, concurrent_walk=None)
        walking = asyncio.ensure_future(progress.concurrent_walk(alone))
        try:
            recalled = await self._recall_candidates(alone)
        except BaseException:
            walking.cancel()
            await asyncio.wait([walking])
            raise
        walked = await walking
        own = recalled.rankings[len(progress.rankings) :]
        return replace(recalled, walk=walked.walk, rankings=[*walked.rankings, *own])

    async def _recall_candidates(self, progress: SearchProgress) -> SearchProgress:
        if progress.scopes is None and progress.search.mode != "knn":
            # The weight of a word depends on its rarity among the entries that pass the filter.
            progress = await add_scopes(progress, self._services)
        progress = await self._embed_question(progress)
        with progress.timings.measure("search"):
            limit, first = compute_recall_limit(progress), compute_first_count(progress)
            symbols = progress.search.tenant.reads_facts
            filters = _list_entry_filters(progress)
            searches = [
                (kind, RankingRequest(query, limit, entry_filter, first, symbols=symbols))
                for entry_filter, (kind, query) in product(filters, _list_queries(progress))
            ]
            wanted = [request for _, request in searches]
            progress, rankings = await self._fetch_rankings(progress, wanted)
        recalled = [
            Ranking(
                kind,
                candidates,
                first is not None and len(candidates) >= first,
                terms=_count_terms(progress, request),
                is_foreign=kind == "words" and progress.reading == "foreign",
                preferred=request.entry_filter is not filters[0],
            )
            for (kind, request), candidates in zip(searches, rankings, strict=True)
        ]
        return replace(progress, rankings=[*progress.rankings, *recalled])

    async def _fetch_rankings(
        self, progress: SearchProgress, wanted: Sequence[RankingRequest]
    ) -> tuple[SearchProgress, list[list[Candidate]]]:
        """Return the progress and the candidates of each ranking.

        If a separate vector store does not answer, the index is searched instead, and the progress
        records this.
        """
        index_name = progress.serving.index_name
        try:
            return progress, await self._searcher.rankings(index_name, progress.owner, wanted)
        except VectorsUnavailable:
            progress = replace(progress, owner=replace(progress.owner, vectors_beside=False))
            rankings = await self._searcher.rankings(index_name, progress.owner, wanted)
            return replace(progress, uses_index_vectors=True), rankings

    async def _embed_question(self, progress: SearchProgress) -> SearchProgress:
        search = progress.search
        if not search.needs_vector or progress.vector is not None:
            return progress
        cache_key = progress.ref, search.tenant, progress.serving, search.question
        with (
            progress.timings.measure("embed"),
            limit_time(progress.patience.embedding_seconds, _build_timeout_error),
        ):
            progress = replace(progress, reading=await self._vectors.assess_reading(*cache_key))
            if progress.reading == "unread" and search.mode != "knn":
                # Rank by words alone: the vector would hardly depend on the question's meaning.
                return progress
            return replace(progress, vector=await self._vectors.embed(*cache_key))


async def add_scopes(progress: SearchProgress, services: SearchServices) -> SearchProgress:
    """Return a search that filters by all scopes that the caller may read."""
    with progress.timings.measure("catalog"):
        state = await services.reader.search_state(progress.ref.id, progress.principals)
    scopes = services.policy.scopes(progress.caller, state.scopes)
    return replace(progress, scopes=scopes, moved=split_moved_pages(state.moved, scopes))


def _count_terms(progress: SearchProgress, request: RankingRequest) -> int:
    """Return the number of search terms in a word request in English; 0 for other requests."""
    if not isinstance(request.by, str) or not is_english(progress.search.request.query):
        return 0
    return len(parse_query_words(request.by).terms)


def _build_timeout_error(seconds: float) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"the question was not embedded within {seconds:g} seconds", hint="try again in a moment"
    )


def _list_queries(progress: SearchProgress) -> list[_Query]:
    # The threshold is applied later: until then, a passage below it may affect the rank of one
    # above it.
    mode = progress.search.mode
    queries: list[_Query] = []
    if mode != "text" and progress.vector is not None:
        queries.append(("vector", progress.vector))
    if mode != "knn":
        query = progress.search.request.query
        reader = find_question_reader(progress.search.tenant)
        # Leave out words that only ask for a kind of answer: they would match names.
        queries.append(("words", query if reader is None else reader.topic(query)))
    return queries


def _list_entry_filters(progress: SearchProgress) -> list[EntryFilter]:
    """Return the filter of the request; if it prefers paths, also the filter for them."""
    wide = build_entry_filter(progress)
    filters = progress.search.request.filters.paths
    preferred = progress.search.request.must_include_paths
    if not preferred:
        return [wide]
    # Both must hold: a preferred path must not admit what the filter excludes.
    inside = [path for path in preferred if is_within_any(path, filters)]
    inside += [path for path in filters or () if is_within_any(path, preferred)]
    if not inside:
        return [wide]
    return [wide, replace(wide, paths=tuple(dict.fromkeys(inside)))]


def build_entry_filter(progress: SearchProgress) -> EntryFilter:
    """Return the conditions that an index entry must meet to be found by a search."""
    request = progress.search.request
    filters = request.filters
    return EntryFilter(
        scopes=progress.scopes,
        moved=progress.moved,
        pages=progress.pages,
        source_types=request.source_types,
        without_source_types=() if request.include_run_summaries else _RUN_SOURCE_TYPES,
        documents=filters.documents,
        paths=filters.paths,
        languages=filters.languages,
        modified_after=filters.modified_after,
        modified_before=filters.modified_before,
        tags=filters.tags,
        metadata=filters.wanted_metadata,
        without_metadata=filters.unwanted_metadata,
    )


@final
class VerifyStep:
    """Keeps only candidates that the catalog confirms; every list of steps includes this step."""

    def __init__(self, services: SearchServices) -> None:
        self._services = services
        self._reader = services.reader
        self._policy = services.policy
        self._entry_cache = services.entry_cache

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Keep the candidates whose version is the one that the caller may read now.

        A document can be replaced between the search of the index and the query to the catalog. The
        search then has only an outdated version, and is repeated. It is also repeated if a document
        was deleted in the meantime, since its content may have moved to another document.
        """
        with progress.timings.measure("search"):
            verified = await self.confirm(progress, progress.rankings)
        if progress.scopes is None:
            if _lacks_candidates(progress, verified):
                filtered = await add_scopes(progress, self._services)
                return replace(filtered, fetch_all=True, repeat=True)
            count = _count_candidates(progress)
            verified = _cut_vector_rankings(verified, count)
        replaced = frozenset(_list_replaced(progress.rankings, verified))
        replaced |= self._list_outdated(progress, verified)
        replaced |= await self._list_just_deleted(progress, verified)
        recalls = progress.recall_attempts + 1
        if replaced and replaced != progress.replaced and recalls < _MAX_RECALLS:
            return replace(progress, replaced=replaced, recall_attempts=recalls, repeat=True)
        # Excluded entries were found but could not be read, since their fields place them
        # elsewhere.
        excluded = progress.excluded_ids
        altered = excluded & verified.by_id.keys() if excluded else excluded
        return replace(
            progress,
            verified=verified.without(altered),
            altered_ids=frozenset(altered),
            replaced=replaced,
            recall_attempts=recalls,
        )

    def _list_outdated(
        self, progress: SearchProgress, verified: VerifiedCandidates
    ) -> frozenset[tuple[str, str, str]]:
        """Return the documents that a walk found only in outdated versions in the cache."""
        index_name = progress.serving.index_name
        former = self._entry_cache.forget_former(index_name, progress.owner, verified.versions)
        return frozenset(
            (
                candidate.document_id,
                candidate.index_key,
                verified.versions[candidate.document_id].indexed_key,
            )
            for ranking in progress.rankings
            if former and ranking.kind == "walk"
            for candidate in ranking.candidates
            if candidate.document_id in former
        )

    async def _list_just_deleted(
        self, progress: SearchProgress, verified: VerifiedCandidates
    ) -> frozenset[tuple[str, str, str]]:
        """Return the candidates' unreadable documents if one of them was deleted a moment ago."""
        unreadable = {
            (candidate.document_id, candidate.index_key, "")
            for ranking in progress.rankings
            for candidate in ranking.candidates
            if candidate.document_id not in verified.versions
        }
        ids = {document_id for document_id, *_ in unreadable}
        if not ids or not await self._reader.were_any_just_deleted(progress.ref.id, ids):
            return frozenset()
        return frozenset(unreadable)

    async def verify_again(self, progress: SearchProgress) -> SearchProgress:
        """Return the progress without the candidates that the catalog no longer confirms."""
        with progress.timings.measure("verify"):
            verified = await self.confirm(progress, progress.confirmed.rankings)
        verified = replace(verified, recalled_count=progress.confirmed.recalled_count)
        uris = {id_: candidate.uri for id_, candidate in verified.by_id.items()}
        readable = set(uris.values())
        passages = [
            replace(passage, also=tuple(uri for uri in passage.also if uri in readable))
            for passage in progress.passages
            if passage.id in uris
        ]
        order = [distinct for distinct in progress.order if distinct.id in uris]
        return replace(progress, verified=verified, order=order, passages=passages)

    async def confirm(
        self, progress: SearchProgress, rankings: Sequence[Ranking]
    ) -> VerifiedCandidates:
        """Return the candidates that the catalog confirms and that the caller may read."""
        recalled = {c.id: c.document_id for ranking in rankings for c in ranking.candidates}
        versions = await self._read_versions(progress, {*recalled.values()})
        return VerifiedCandidates(
            [replace(r, candidates=_list_current(r.candidates, versions)) for r in rankings],
            versions,
            len(recalled),
            time.monotonic(),
        )

    async def _read_versions(
        self, progress: SearchProgress, documents: set[str]
    ) -> Mapping[str, ReadableVersion]:
        if not documents:
            return {}
        owner = progress.owner
        readable = await self._reader.readable(
            owner.tenant, owner.generation, [*documents], progress.principals
        )
        permits = self._policy.permits
        return {id_: v for id_, v in readable.items() if permits(progress.caller, v)}


def _lacks_candidates(progress: SearchProgress, verified: VerifiedCandidates) -> bool:
    """Return whether to search again with a filter by scopes, because too few candidates remain.

    A ranking that ended before its limit is complete, so a filter would find no more.
    """
    limit = compute_recall_limit(progress)
    wanted = _count_candidates(progress)
    return any(
        recalled.kind == "vector"
        and len(recalled.candidates) >= limit
        and len(verified_ranking.candidates) < wanted
        for recalled, verified_ranking in zip(progress.rankings, verified.rankings, strict=True)
    )


def _cut_vector_rankings(verified: VerifiedCandidates, count: int) -> VerifiedCandidates:
    """Cut each vector ranking to the length that a search with a filter by scopes would fetch."""
    rankings = [
        replace(ranking, candidates=ranking.candidates[:count])
        if ranking.kind == "vector"
        else ranking
        for ranking in verified.rankings
    ]
    return replace(verified, rankings=rankings)


def _list_current(
    candidates: Sequence[Candidate], versions: Mapping[str, ReadableVersion]
) -> list[Candidate]:
    return [
        # Take the uri from the catalog: entries of other documents with this text are never read,
        # so the uri in them is never checked.
        candidate if candidate.uri == version.uri else replace(candidate, uri=version.uri)
        for candidate in candidates
        if (version := versions.get(candidate.document_id)) is not None
        and version.indexed_key == candidate.index_key
    ]


def _list_replaced(
    rankings: Sequence[Ranking], verified: VerifiedCandidates
) -> set[tuple[str, str, str]]:
    """Return the readable documents that were found only in outdated versions.

    Each has its id, the key of the found version, and the key of the current version.
    """
    present = {c.document_id for ranking in verified.rankings for c in ranking.candidates}
    return {
        (c.document_id, c.index_key, verified.versions[c.document_id].indexed_key)
        for ranking in rankings
        for c in ranking.candidates
        if c.document_id in verified.versions and c.document_id not in present
    }
