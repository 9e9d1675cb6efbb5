"""Fetching candidates, and keeping only what the catalog vouches for and the caller may read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from rag_assets.retrieval.altered_entries import AlteredEntries
from rag_assets.retrieval.model import SearchRequest
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.catalog.index_rows import ReadableVersion
from rag_assets.storage.catalog.search_state import SearchStateReader
from rag_assets.storage.index.model import (
    Candidate,
    EntryFilter,
    Owner,
    RankingRequest,
    StoredEntry,
    is_within,
)
from rag_assets.storage.index.protocols import EntrySearcher
from rag_assets.tenants.modes import SearchMode

_OVERFETCH = 30
_ATTEMPTS = 5


def fetched(limit: int) -> int:
    """Candidates of each ranking for so many hits.

    Some more: entries of versions that no longer count may be among the nearest, and equal texts
    are one hit.
    """
    return 2 * limit + _OVERFETCH


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came back with.

    Attributes:
        rankings: candidates that may be shown, best first.
        versions: of their documents.
        seen: how many candidates there were before; not for whoever asks.
    """

    rankings: Sequence[Sequence[Candidate]]
    versions: Mapping[str, ReadableVersion]
    seen: int

    def without(self, ids: Collection[str]) -> Found:
        """The same, some candidates left out."""
        if not ids:
            return self
        rankings = [[c for c in ranking if c.id not in ids] for ranking in self.rankings]
        return replace(self, rankings=rankings)

    @property
    def by_id(self) -> dict[str, Candidate]:
        """Every candidate once."""
        return {candidate.id: candidate for ranking in self.rankings for candidate in ranking}


@dataclass(frozen=True)
class CandidateSearch:
    """The rankings of one request.

    Attributes:
        scopes: that the caller may read.
        limit: candidates that are wanted in their order.
        vector: of the query; None where only words count.
        min_cosine: below which nothing is wanted.
        altered: told of entries that are not what was written.
    """

    reader: SearchStateReader
    searcher: EntrySearcher
    serving: Generation
    owner: Owner
    scopes: frozenset[str]
    request: SearchRequest
    mode: SearchMode
    limit: int
    vector: npt.NDArray[np.float32] | None
    min_cosine: float | None
    altered: AlteredEntries = field(default_factory=AlteredEntries)

    def prefers(self, candidate: Candidate) -> bool:
        """Whether it lies where what is found ranks higher."""
        paths = self.request.must_include_paths
        return bool(paths) and _within(candidate.uri, paths)

    async def cosines(self, ids: Sequence[str]) -> dict[str, float]:
        """The cosine of each of these entries that is still there, by id."""
        if self.vector is None:
            return {}
        return await self.searcher.cosines(self.serving.index_name, self.owner, self.vector, ids)

    async def entries(self, ids: Sequence[str], *, scored: bool) -> dict[str, StoredEntry]:
        """Those of these entries that are still there, by id, altered ones among them.

        The scopes are those that could be read when the search began: what the catalog says by
        now is for still().
        """
        vector = self.vector if scored else None
        return await self.searcher.entries(
            self.serving.index_name, self.owner, ids, self.scopes, vector
        )

    async def still(self, found: Found) -> Found:
        """The same candidates, as far as the catalog vouches for them by now."""
        versions = await self._versions(found.rankings)
        rankings = [_shown(ranking, versions) for ranking in found.rankings]
        return Found(rankings, versions, found.seen)

    async def found(self) -> Found:
        """Candidates of exactly the versions that may be shown to the caller now.

        A document can be replaced between the search and the look into the catalog; then the
        search found only the version that no longer counts, and is made again.
        """
        before: object = None
        found = Found((), {}, 0)
        for _ in range(_ATTEMPTS):
            rankings = await self.searcher.rankings(
                self.serving.index_name, self.owner, self._wanted()
            )
            versions = await self._versions(rankings)
            found = Found(
                [_shown(ranking, versions) for ranking in rankings],
                versions,
                len({candidate.id for ranking in rankings for candidate in ranking}),
            )
            replaced = _replaced(rankings, found)
            if not replaced or replaced == before:
                break
            before = replaced
        return found

    def _wanted(self) -> list[RankingRequest]:
        limit = fetched(self.limit)
        # A threshold is applied later: fused, a passage under it may still lift one over it.
        queries: list[npt.NDArray[np.float32] | str] = []
        if self.mode != "text" and self.vector is not None:
            queries.append(self.vector)
        if self.mode != "knn":
            queries.append(self.request.query)
        return [
            RankingRequest(query, limit, narrowing)
            for narrowing in self._entry_filters()
            for query in queries
        ]

    def _entry_filters(self) -> list[EntryFilter]:
        """What a hit must be, and once more with the paths that shall rank higher."""
        request, filters = self.request, self.request.filters
        wide = EntryFilter(
            scopes=self.scopes,
            source_types=request.source_types,
            documents=filters.documents,
            paths=filters.paths,
            languages=filters.languages,
            modified_after=filters.modified_after,
            modified_before=filters.modified_before,
            tags=filters.tags,
            metadata=filters.metadata,
        )
        if not request.must_include_paths:
            return [wide]
        # Within both: a path that ranks higher opens nothing that the filter closed.
        inside = [p for p in request.must_include_paths if _within(p, filters.paths)]
        inside += [p for p in filters.paths if _within(p, request.must_include_paths)]
        if not inside:
            return [wide]
        return [wide, replace(wide, paths=tuple(dict.fromkeys(inside)))]

    async def _versions(
        self, rankings: Sequence[Sequence[Candidate]]
    ) -> dict[str, ReadableVersion]:
        documents = {c.document_id for ranking in rankings for c in ranking}
        if not documents:
            return {}
        return await self.reader.readable(
            self.owner.tenant,
            self.owner.generation,
            [*documents],
            self.request.caller.principals,
        )


def _within(path: str, paths: Sequence[str]) -> bool:
    return not paths or any(is_within(path, other) for other in paths)


def _shown(
    ranking: Sequence[Candidate], versions: Mapping[str, ReadableVersion]
) -> list[Candidate]:
    return [
        # Where else a text stands is told of entries that are never read, and so never verified.
        candidate if candidate.uri == version.uri else replace(candidate, uri=version.uri)
        for candidate in ranking
        if (version := versions.get(candidate.document_id)) is not None
        and version.indexed_key == candidate.index_key
    ]


def _replaced(rankings: Sequence[Sequence[Candidate]], found: Found) -> set[tuple[str, str, str]]:
    """Living documents of which only versions were found that do not count."""
    present = {c.document_id for ranking in found.rankings for c in ranking}
    return {
        (c.document_id, c.index_key, found.versions[c.document_id].indexed_key)
        for ranking in rankings
        for c in ranking
        if c.document_id in found.versions and c.document_id not in present
    }
