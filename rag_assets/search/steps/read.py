"""Read: fetch the stored fields of the first texts, and keep only unaltered entries."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, final

from rag_assets.common.errors import IndexInconsistent
from rag_assets.search.duplicates import Distinct
from rag_assets.search.gathering import are_neighbours, document_id, is_spread, joined, spread
from rag_assets.search.search_progress import SearchProgress
from rag_assets.search.steps.protocol import SearchServices
from rag_assets.search.steps.recall import entry_filter_of
from rag_assets.storage.index.model import (
    Candidate,
    EqualTexts,
    IndexRef,
    RankingRequest,
    StoredEntry,
)
from rag_assets.storage.index.protocols import EntrySearcher

_LOG = logging.getLogger(__name__)

_MAX_READS = 5
_MOST_EQUAL: Final = 1_000
"""Maximum number of entries that have the texts of the hits."""


@final
class Read:
    """Reads entries and checks their digests; every list of steps includes it (see SearchPlan).

    Args:
        services: read the index, and report altered entries.
    """

    def __init__(self, services: SearchServices) -> None:
        self._searcher = services.searcher
        self._altered = services.altered

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Read the first texts; repeat the search if some cannot be read.

        Raises:
            IndexInconsistent: the tenant's index was lost.
        """
        progress = await self._read(progress, _first_places(progress))
        # A missing entry was replaced meanwhile: the next attempt finds its new version. In place
        # of an altered entry, the next attempt uses one with an equal text, or the next best.
        if progress.unread and progress.reads < _MAX_READS:
            return replace(
                progress,
                excluded=progress.excluded | progress.unread,
                unread=frozenset(),
                replaced=frozenset(),
                recalls=0,
                repeat=True,
            )
        await self._report(progress)
        return progress

    async def more(self, progress: SearchProgress, order: Sequence[Distinct]) -> SearchProgress:
        """Read further texts after those already read; entries that cannot be read are left out."""
        after = await self._read(progress, order)
        self._altered.report(after.owner.tenant, after.altered)
        return replace(after, passages=[*progress.passages, *after.passages])

    async def _read(self, progress: SearchProgress, order: Sequence[Distinct]) -> SearchProgress:
        with progress.timings.part("read"):
            entries, equal = await asyncio.gather(
                self._entries(progress, order), self._equal(progress, order)
            )
        read = {c.id: c for d in order for c in (d.candidate, d.block) if c and c.id in entries}
        sound = {
            id_: entries[id_].fields for id_, c in read.items() if _is_unaltered(entries[id_], c)
        }
        altered = entries.keys() - sound.keys()
        return replace(
            progress,
            cosines=_cosines(progress, order, entries),
            passages=[
                d.with_fields(sound[d.id], sound.get(d.block.id) if d.block else None)
                for d in order
                if d.id in sound
            ],
            unread=progress.unread | {d.id for d in order if d.id not in sound},
            altered=progress.altered | altered,
            verified=progress.confirmed.without(altered),
            reads=progress.reads + 1,
            equal=equal,
        )

    async def _entries(
        self, progress: SearchProgress, order: Sequence[Distinct]
    ) -> Mapping[str, StoredEntry]:
        """Return the stored entries of these texts and their blocks, by id, even if altered.

        They are filtered by the scopes that the caller could read when the search started. The next
        verification handles later changes.
        """
        is_scored = all(distinct.id in progress.cosines for distinct in order)
        return await self._searcher.entries(
            progress.serving.index_name,
            progress.owner,
            [c.id for one in order for c in (one.candidate, one.block) if c],
            progress.scopes,
            None if is_scored else progress.vector,
            moved=progress.moved,
        )

    async def _equal(
        self, progress: SearchProgress, order: Sequence[Distinct]
    ) -> Sequence[Candidate]:
        """Return all entries with these texts, if hits name every document that contains them."""
        if not progress.search.tenant.reads_facts:
            return ()
        return await equal_texts(self._searcher, progress, [d.candidate.text_key for d in order])

    async def _report(self, progress: SearchProgress) -> None:
        tenant_id = progress.owner.tenant
        self._altered.report(tenant_id, progress.altered)
        if progress.unread:
            _LOG.warning(
                f"{tenant_id}: the search found entries that cannot be read;"
                f" run `rag-assets check {tenant_id}` to find the fault of its index"
            )
        if not progress.confirmed.recalled:
            await self._require_index(progress)

    async def _require_index(self, progress: SearchProgress) -> None:
        """Require that the index still exists: a new, empty index would look like no matches.

        Raises:
            IndexInconsistent: the index was replaced.
        """
        serving, tenant_id = progress.serving, progress.owner.tenant
        index = IndexRef(serving.index_name, serving.index_identity)
        if await self._searcher.presence(index) != "present":
            raise IndexInconsistent(
                f"index {serving.index_name!r} of tenant {tenant_id!r} was replaced by a"
                " different index",
                hint=f"restore the tenant's index with `rag-assets sync {tenant_id} --repair`",
            )


def _first_places(progress: SearchProgress) -> Sequence[Distinct]:
    """Return the candidates that may be among the hits, judging by their ordinals.

    Consecutive passages will become one hit, so more of them are read than there are hits.
    """
    order, depth = progress.order, progress.search.depth
    if not is_spread(progress.search.tenant):
        return order[:depth]
    groups = joined(order, document_id, are_neighbours, most=depth)
    scores = [progress.fused.get(group[0].id, 0.0) for group in groups]
    first = spread(groups, lambda group: document_id(group[0]), scores)[:depth]
    wanted = {one.id for group in first for one in group}
    return [one for one in order if one.id in wanted]


async def equal_texts(
    searcher: EntrySearcher, progress: SearchProgress, texts: Sequence[str]
) -> Sequence[Candidate]:
    """Return the entries with these texts that pass the request's filters, not verified.

    Args:
        searcher: searches the index.
        progress: the search, which defines the filters.
        texts: see Candidate.text_key.
    """
    if not texts:
        return ()
    by = EqualTexts(tuple(dict.fromkeys(texts)))
    wanted = RankingRequest(by, _MOST_EQUAL, entry_filter_of(progress), symbols=True)
    [found] = await searcher.rankings(progress.serving.index_name, progress.owner, [wanted])
    return found


def _cosines(
    progress: SearchProgress, order: Sequence[Distinct], entries: Mapping[str, StoredEntry]
) -> dict[str, float]:
    """Return all known cosines; a passage shown for its block has the higher of both cosines."""
    read = {id_: e.cosine for id_, e in entries.items() if e.cosine is not None}
    known = {**progress.cosines, **read}
    for one in order:
        if one.block is not None:
            pair = (one.id, one.block.id)
            both = [of[id_] for of in (progress.cosines, read) for id_ in pair if id_ in of]
            if both:
                known[one.id] = max(both)
    return known


def _is_unaltered(entry: StoredEntry, found: Candidate) -> bool:
    """Return whether an entry is unaltered and of the version that the catalog confirmed."""
    return entry.intact and entry.index_key == found.index_key
