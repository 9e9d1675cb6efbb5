"""Read, join and gather: turn the first candidates into passages, and passages into hits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, final

from anyio.to_thread import run_sync

from rag_assets.common.errors import IndexInconsistent
from rag_assets.search.gathering import (
    are_adjoining,
    are_neighbours,
    are_overlapping,
    find_cutoff_near_best,
    gathers_passages,
    get_document_id,
    group_items,
    is_crowded,
    merge_near_copies,
    merge_passages,
    merges_copies,
    spread_documents,
)
from rag_assets.search.progress import (
    DistinctText,
    Passage,
    Ranking,
    SearchProgress,
    VerifiedCandidates,
)
from rag_assets.search.recall import VerifyStep, build_entry_filter, compute_recall_limit
from rag_assets.search.scoring import compute_hit_scores
from rag_assets.search.services import SearchServices
from rag_assets.storage.index.model import (
    Candidate,
    EqualTexts,
    IndexRef,
    RankingRequest,
    StoredEntry,
)
from rag_assets.storage.index.store import EntrySearcher

_LOG = logging.getLogger(__name__)

_MAX_READS = 5
_MAX_EQUAL_TEXTS: Final = 1_000
"""Maximum number of entries that have the texts of the hits."""
_MAX_ATTEMPTS: Final = 3
_FETCH_GROWTH: Final = 4
"""Factor by which the next attempt fetches more candidates."""
_MAX_FACTOR_FOR_HITS: Final = 16
"""Highest fetch factor if there are too few hits."""
_MAX_FACTOR_FOR_DOCUMENTS: Final = 4
"""Highest fetch factor if one document has more of the first positions than allowed."""
_MAX_PASSAGES_AT_ONCE: Final = 100
"""Maximum passages to compare in the event loop; more are compared in a thread."""


@final
class ReadStep:
    """Reads entries and checks their digests; every list of steps includes it (see SearchPlan)."""

    def __init__(self, services: SearchServices) -> None:
        self._searcher = services.searcher
        self._altered = services.altered_entries

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Read the first texts; repeat the search if some cannot be read."""
        progress = await self._read(progress, _choose_first_texts(progress))
        # A missing entry was replaced meanwhile: the next attempt finds its new version. In place
        # of an altered entry, the next attempt uses one with an equal text, or the next best.
        if progress.unread_ids and progress.read_attempts < _MAX_READS:
            return replace(
                progress,
                excluded_ids=progress.excluded_ids | progress.unread_ids,
                unread_ids=frozenset(),
                replaced=frozenset(),
                recall_attempts=0,
                repeat=True,
            )
        await self._report(progress)
        return progress

    async def read_more(
        self, progress: SearchProgress, order: Sequence[DistinctText]
    ) -> SearchProgress:
        """Read further texts after those already read; entries that cannot be read are skipped."""
        after = await self._read(progress, order)
        self._altered.report(after.owner.tenant, after.altered_ids)
        return replace(after, passages=[*progress.passages, *after.passages])

    async def _read(
        self, progress: SearchProgress, order: Sequence[DistinctText]
    ) -> SearchProgress:
        with progress.timings.measure("read"):
            entries, equal = await asyncio.gather(
                self._read_entries(progress, order), self._find_equal(progress, order)
            )
        read = {c.id: c for d in order for c in (d.candidate, d.block) if c and c.id in entries}
        sound = {
            id_: entries[id_].fields for id_, c in read.items() if _is_unaltered(entries[id_], c)
        }
        altered = entries.keys() - sound.keys()
        return replace(
            progress,
            cosines=_merge_cosines(progress, order, entries),
            passages=[
                Passage(
                    d.candidate, d.also, sound[d.id], sound.get(d.block.id) if d.block else None
                )
                for d in order
                if d.id in sound
            ],
            unread_ids=progress.unread_ids | {d.id for d in order if d.id not in sound},
            altered_ids=progress.altered_ids | altered,
            verified=progress.confirmed.without(altered),
            read_attempts=progress.read_attempts + 1,
            equal_texts=equal,
        )

    async def _read_entries(
        self, progress: SearchProgress, order: Sequence[DistinctText]
    ) -> Mapping[str, StoredEntry]:
        """Return the stored entries of these texts and their blocks, by id, even if altered.

        They are filtered by the scopes that the caller could read when the search started. The next
        verification handles later changes.
        """
        is_scored = all(distinct.id in progress.cosines for distinct in order)
        return await self._searcher.entries(
            progress.serving.index_name,
            progress.owner,
            [c.id for distinct in order for c in (distinct.candidate, distinct.block) if c],
            progress.scopes,
            None if is_scored else progress.vector,
            moved=progress.moved,
        )

    async def _find_equal(
        self, progress: SearchProgress, order: Sequence[DistinctText]
    ) -> Sequence[Candidate]:
        """Return all entries with the texts of these candidates; empty outside source code.

        In source code, a hit names every document that contains its text.
        """
        if not progress.search.tenant.reads_facts:
            return ()
        return await find_equal_texts(
            self._searcher, progress, [d.candidate.text_key for d in order]
        )

    async def _report(self, progress: SearchProgress) -> None:
        tenant_id = progress.owner.tenant
        self._altered.report(tenant_id, progress.altered_ids)
        if progress.unread_ids:
            _LOG.warning(
                f"{tenant_id}: the search found entries that cannot be read;"
                f" run `rag-assets check {tenant_id}` to find the fault of its index"
            )
        if not progress.confirmed.recalled_count:
            await self._require_index(progress)

    async def _require_index(self, progress: SearchProgress) -> None:
        """Require that the index still exists: a new, empty index would look like no matches."""
        serving, tenant_id = progress.serving, progress.owner.tenant
        index = IndexRef(serving.index_name, serving.index_identity)
        if await self._searcher.presence(index) != "present":
            raise IndexInconsistent(
                f"index {serving.index_name!r} of tenant {tenant_id!r} was replaced by a"
                " different index",
                hint=f"restore the tenant's index with `rag-assets sync {tenant_id} --repair`",
            )


def _choose_first_texts(progress: SearchProgress) -> Sequence[DistinctText]:
    """Return the candidates to read: enough for the hits and for the passages merged into them.

    Consecutive passages of a document will become one hit, so more of them are read than there are
    hits.
    """
    order, depth = progress.order, progress.search.depth
    if not merges_copies(progress.search.tenant):
        return order[:depth]
    groups = group_items(order, get_document_id, are_neighbours, max_groups=depth)
    scores = [progress.fused.get(group[0].id, 0.0) for group in groups]
    first = spread_documents(groups, lambda group: get_document_id(group[0]), scores)[:depth]
    wanted = {distinct.id for group in first for distinct in group}
    return [distinct for distinct in order if distinct.id in wanted]


async def find_equal_texts(
    searcher: EntrySearcher, progress: SearchProgress, texts: Sequence[str]
) -> Sequence[Candidate]:
    """Return the entries with these texts that pass the request's filters, not verified."""
    if not texts:
        return ()
    by = EqualTexts(tuple(dict.fromkeys(texts)))
    request = RankingRequest(by, _MAX_EQUAL_TEXTS, build_entry_filter(progress), symbols=True)
    [ranking] = await searcher.rankings(progress.serving.index_name, progress.owner, [request])
    return ranking


def _merge_cosines(
    progress: SearchProgress, order: Sequence[DistinctText], entries: Mapping[str, StoredEntry]
) -> dict[str, float]:
    """Return the cosines of all candidates, by id.

    A passage that is shown for its block has the higher of their cosines.
    """
    read = {id_: e.cosine for id_, e in entries.items() if e.cosine is not None}
    known = {**progress.cosines, **read}
    for distinct in order:
        if distinct.block is not None:
            pair = (distinct.id, distinct.block.id)
            pair_cosines = [
                known_cosines[id_]
                for known_cosines in (progress.cosines, read)
                for id_ in pair
                if id_ in known_cosines
            ]
            if pair_cosines:
                known[distinct.id] = max(pair_cosines)
    return known


def _is_unaltered(entry: StoredEntry, candidate: Candidate) -> bool:
    """Return whether an entry is unaltered and of the version that the catalog confirmed."""
    return entry.intact and entry.index_key == candidate.index_key


class JoinStep:
    """Adds to each passage the other documents that contain its text, in tenants of source code.

    A ranking alone does not name all of them, because it is limited: if a hundred documents contain
    a text, it may contain only two of them.

    ReadStep has fetched the entries with equal texts. If there are any, the catalog verifies them.
    """

    def __init__(self, services: SearchServices) -> None:
        self._searcher = services.searcher
        self._verify = VerifyStep(services)

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Add to each passage the other readable documents with the same text; keep the order."""
        progress = replace(progress, has_joined_documents=True)
        others = _list_others(progress, progress.equal_texts)
        for attempt in range(_MAX_ATTEMPTS):
            if not others:
                return progress
            with progress.timings.measure("verify"):
                confirmed = await self._verify.confirm(
                    progress, [Ranking("other", others, weight=0)]
                )
            if attempt + 1 == _MAX_ATTEMPTS or not _are_replaced(others, confirmed):
                break
            # If a document was replaced since the texts were read, its new version may also contain
            # the text.
            texts = [passage.candidate.text_key for passage in progress.passages]
            others = _list_others(progress, await find_equal_texts(self._searcher, progress, texts))
        return _join_documents(progress, confirmed)


def _list_others(progress: SearchProgress, equal: Sequence[Candidate]) -> list[Candidate]:
    known = progress.confirmed.by_id.keys() | progress.excluded_ids | progress.altered_ids
    return [candidate for candidate in equal if candidate.id not in known]


def _are_replaced(others: Sequence[Candidate], verified: VerifiedCandidates) -> bool:
    """Return whether any readable document was found only in outdated versions."""
    confirmed = {candidate.document_id for candidate in verified.by_id.values()}
    return any(
        other.document_id in verified.versions and other.document_id not in confirmed
        for other in others
    )


def _join_documents(progress: SearchProgress, added: VerifiedCandidates) -> SearchProgress:
    of_text: dict[str, list[str]] = {}
    for candidate in added.by_id.values():
        if candidate.uri:
            of_text.setdefault(candidate.text_key, []).append(candidate.uri)
    verified = progress.confirmed
    return replace(
        progress,
        passages=[_add_documents(passage, of_text) for passage in progress.passages],
        verified=replace(
            verified,
            rankings=[*verified.rankings, *added.rankings],
            versions={**verified.versions, **added.versions},
            recalled_count=verified.recalled_count + added.recalled_count,
        ),
    )


def _add_documents(passage: Passage, of_text: Mapping[str, Sequence[str]]) -> Passage:
    more = of_text.get(passage.candidate.text_key, ())
    uris = dict.fromkeys((*passage.also, *more))
    uris.pop(passage.candidate.uri, None)
    return replace(passage, also=tuple(uris))


class GatherStep:
    """Merges passages of one document, and shows near copies of a passage as one hit."""

    def __init__(self, services: SearchServices) -> None:
        self._read = ReadStep(services)
        self._join = JoinStep(services)
        self._reader = services.reader

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Replace passages with merged hits; read more passages if there are too few hits.

        The search is repeated with more candidates if the index may have further hits, or another
        document for the first places; a few times at most.
        """
        search = progress.search
        if not gathers_passages(search.tenant):
            return progress
        passages, others_may_be_near = await _gather_in_thread(progress)
        tried = {passage.id for passage in progress.passages}
        while len(passages) < search.limit:
            unread = [distinct for distinct in progress.order if distinct.id not in tried]
            if not unread:
                break
            # Read at least as many as were read so far, since there may be many near copies.
            wanted = unread[: max(2 * (search.limit - len(passages)), len(tried))]
            tried |= {distinct.id for distinct in wanted}
            progress = await self._read.read_more(progress, wanted)
            if progress.has_joined_documents:
                progress = await self._join.run(progress)
            passages, others_may_be_near = await _gather_in_thread(progress)
        if len(passages) < search.limit:
            is_cut = any(ranking.is_cut for ranking in progress.confirmed.rankings)
            if is_cut and not progress.fetch_all:
                return replace(progress, fetch_all=True, repeat=True)
            further = _request_more_candidates(progress, _MAX_FACTOR_FOR_HITS)
        else:
            is_worth_it = others_may_be_near and await self._may_have_others(progress)
            max_factor = _MAX_FACTOR_FOR_DOCUMENTS if is_worth_it else 0
            further = _request_more_candidates(progress, max_factor)
        return further or replace(progress, passages=passages[: search.limit])

    async def _may_have_others(self, progress: SearchProgress) -> bool:
        """Return whether a repeated search may find documents that have no candidate yet."""
        if len({candidate.document_id for candidate in progress.confirmed.by_id.values()}) > 1:
            return True
        documents = progress.search.request.filters.documents
        if documents is not None and len(documents) == 1:
            return False
        with progress.timings.measure("catalog"):
            return await self._reader.has_several_documents(
                progress.ref.id, progress.serving.number
            )


async def _gather_in_thread(progress: SearchProgress) -> tuple[Sequence[Passage], bool]:
    """Gather passages, in a thread if there are many, so that other searches are not delayed."""
    if len(progress.passages) <= _MAX_PASSAGES_AT_ONCE:
        return _gather_passages(progress)
    return await run_sync(_gather_passages, progress)


def _gather_passages(progress: SearchProgress) -> tuple[Sequence[Passage], bool]:
    """Return the merged passages, best first, and whether candidates not fetched yet may be better.

    That is possible if one document has more than two of the first positions, and if candidates
    that were not fetched may have nearly the same score.
    """
    search, passages = progress.search, progress.passages
    if not merges_copies(search.tenant):
        groups = group_items(passages, get_document_id, are_overlapping, max_groups=search.limit)
        return [*map(merge_passages, groups)], False
    if not passages:
        return [], False
    last = passages[-1]
    if progress.order:
        last = Passage(progress.order[-1].candidate, progress.order[-1].also, {})
    _, (*scores, lowest) = compute_hit_scores(progress, [*passages, last])
    by_id = {passage.id: score for passage, score in zip(passages, scores, strict=True)}
    # Scores that never increase may also be equal after a preferred path. The fused scores show
    # which scores are really equal.
    ranks = {id_: (score, progress.fused.get(id_)) for id_, score in by_id.items()}
    shown = merge_near_copies(passages, ranks)
    merged = [
        *map(
            merge_passages,
            group_items(shown, get_document_id, are_adjoining, max_groups=search.limit),
        )
    ]
    ordered = [by_id[passage.id] for passage in merged]
    hits = spread_documents(merged, get_document_id, ordered)
    return hits, is_crowded(hits[: search.limit]) and lowest >= find_cutoff_near_best(ordered)


def _request_more_candidates(progress: SearchProgress, max_factor: int) -> SearchProgress | None:
    """Return the search, to be repeated with more candidates; None if that is not possible.

    The number of candidates grows up to `max_factor` times the first number.
    """
    factor = _FETCH_GROWTH * progress.fetch_factor
    if factor > max_factor or not any(
        _may_have_more_hits(progress, ranking) for ranking in progress.rankings
    ):
        return None
    if compute_recall_limit(
        repeated := replace(progress, fetch_factor=factor)
    ) <= compute_recall_limit(progress):
        return None
    return replace(repeated, fetch_all=True, repeat=True)


def _may_have_more_hits(progress: SearchProgress, ranking: Ranking) -> bool:
    """Return whether the index may have further candidates of a ranking that could be hits."""
    if ranking.kind not in {"vector", "words"}:
        return False
    if not ranking.is_cut and len(ranking.candidates) < compute_recall_limit(progress):
        return False
    threshold = progress.search.min_cosine
    if threshold is None or progress.vector is None:
        return True
    if ranking.kind == "vector":
        return ranking.candidates[-1].score >= threshold
    # The fetched candidates are the nearest, so they include all that are near enough.
    cosines = progress.cosines
    is_only_kind = all(other.kind != "vector" for other in progress.rankings)
    return is_only_kind and all(cosines.get(id_, -1.0) >= threshold for id_ in progress.fused)
