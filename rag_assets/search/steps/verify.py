"""Verify: keep the candidates that the catalog confirms and that the caller may read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import final

from rag_assets.search.search_progress import Ranking, SearchProgress, Verified
from rag_assets.search.steps.protocol import SearchServices
from rag_assets.search.steps.recall import candidate_count, recall_limit, with_scopes
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.model import Candidate

_MAX_RECALLS = 5


@final
class Verify:
    """Keeps the catalog's current versions; every list of steps includes it (see SearchPlan).

    Args:
        services: read the catalog and decide what callers may read.
    """

    def __init__(self, services: SearchServices) -> None:
        self._services = services
        self._reader = services.reader
        self._policy = services.policy
        self._known = services.known

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Keep candidates of exactly the versions that the caller may now see.

        A document can be replaced between the search of the index and the query to the catalog. The
        search then has only an outdated version, and is repeated.
        """
        with progress.timings.part("search"):
            verified = await self.confirmed(progress, progress.rankings)
        if progress.scopes is None:
            if _lacks_candidates(progress, verified):
                filtered = await with_scopes(progress, self._services)
                return replace(filtered, whole=True, repeat=True)
            count = candidate_count(progress.search.depth, progress.fetch_factor)
            verified = _first_of_each(verified, count)
        replaced = frozenset(_list_replaced(progress.rankings, verified))
        replaced |= self._list_outdated(progress, verified)
        recalls = progress.recalls + 1
        if replaced and replaced != progress.replaced and recalls < _MAX_RECALLS:
            return replace(progress, replaced=replaced, recalls=recalls, repeat=True)
        # Excluded entries were found but could not be read, since their fields place them
        # elsewhere.
        excluded = progress.excluded
        altered = excluded & verified.by_id.keys() if excluded else excluded
        return replace(
            progress,
            verified=verified.without(altered),
            altered=frozenset(altered),
            replaced=replaced,
            recalls=recalls,
        )

    def _list_outdated(
        self, progress: SearchProgress, verified: Verified
    ) -> frozenset[tuple[str, str, str]]:
        """Return documents whose cached entries, at places where the walk looked, are outdated.

        Another ranking may have found other passages of these documents in their current version.
        """
        index_name = progress.serving.index_name
        former = self._known.forget_former(index_name, progress.owner, verified.versions)
        return frozenset(
            (one.document_id, one.index_key, verified.versions[one.document_id].indexed_key)
            for ranking in progress.rankings
            if former and ranking.kind == "walk"
            for one in ranking.candidates
            if one.document_id in former
        )

    async def again(self, progress: SearchProgress) -> SearchProgress:
        """Return the progress without the candidates that the catalog no longer confirms."""
        with progress.timings.part("verify"):
            verified = await self.confirmed(progress, progress.confirmed.rankings)
        verified = replace(verified, recalled=progress.confirmed.recalled)
        uris = {id_: candidate.uri for id_, candidate in verified.by_id.items()}
        readable = set(uris.values())
        passages = [
            replace(passage, also=tuple(uri for uri in passage.also if uri in readable))
            for passage in progress.passages
            if passage.id in uris
        ]
        order = [distinct for distinct in progress.order if distinct.id in uris]
        return replace(progress, verified=verified, order=order, passages=passages)

    async def confirmed(self, progress: SearchProgress, rankings: Sequence[Ranking]) -> Verified:
        """Return the candidates that the catalog confirms and that the caller may read."""
        recalled = {c.id: c.document_id for ranking in rankings for c in ranking.candidates}
        versions = await self._versions(progress, {*recalled.values()})
        return Verified(
            [replace(r, candidates=_current(r.candidates, versions)) for r in rankings],
            versions,
            len(recalled),
            time.monotonic(),
        )

    async def _versions(
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


def _lacks_candidates(progress: SearchProgress, verified: Verified) -> bool:
    """Return whether a search that filters by scopes would find more than is left here.

    A ranking that ended before its limit is complete.
    """
    limit = recall_limit(progress)
    wanted = candidate_count(progress.search.depth, progress.fetch_factor)
    return any(
        recalled.kind == "vector"
        and len(recalled.candidates) >= limit
        and len(left.candidates) < wanted
        for recalled, left in zip(progress.rankings, verified.rankings, strict=True)
    )


def _first_of_each(verified: Verified, count: int) -> Verified:
    """Return the candidates that a search that filters by scopes would have fetched."""
    rankings = [
        replace(one, candidates=one.candidates[:count]) if one.kind == "vector" else one
        for one in verified.rankings
    ]
    return replace(verified, rankings=rankings)


def _current(
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


def _list_replaced(rankings: Sequence[Ranking], verified: Verified) -> set[tuple[str, str, str]]:
    """Return current documents for which only outdated versions were found."""
    present = {c.document_id for ranking in verified.rankings for c in ranking.candidates}
    return {
        (c.document_id, c.index_key, verified.versions[c.document_id].indexed_key)
        for ranking in rankings
        for c in ranking.candidates
        if c.document_id in verified.versions and c.document_id not in present
    }
