"""From candidates to an order: fused, scored by cosine, equal texts taken together."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rag_assets.common.errors import IndexInconsistent
from rag_assets.retrieval.candidates import CandidateSearch, Found
from rag_assets.retrieval.duplicates import Passage, collapse
from rag_assets.retrieval.fusion import fuse
from rag_assets.retrieval.model import Hit, Scores
from rag_assets.retrieval.reranking import Reread
from rag_assets.retrieval.timings import Clock
from rag_assets.storage.index.model import Candidate, IndexRef

_LOG = logging.getLogger(__name__)

_ATTEMPTS = 5
_VOUCHED_SECONDS = 1.0
"""After which what the catalog said is asked for again: texts are read in between."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """What a search found.

    Attributes:
        order: the passages that are near enough, best first.
        cosines: by id, of at least those; empty where the question has no vector.
        fused: scores by id, of all candidates, best first.
        found: the candidates.
        altered: ids of entries that are not what was written, left out.
        reread: what the second stage made of the first of them; None where there was none.
    """

    order: Sequence[Passage]
    cosines: Mapping[str, float]
    fused: Mapping[str, float]
    found: Found
    altered: frozenset[str] = frozenset()
    reread: Reread | None = None

    def after(self, reread: Reread, search: CandidateSearch, still: Found) -> Ranked:
        """In the order of a second stage.

        Args:
            reread: what came of it.
            search: what was asked for.
            still: the candidates that may be shown by now: reading them took a while.
        """
        order = reread.ordered(self.order, search.prefers)
        return replace(self, order=order, reread=reread).as_of(still)

    def as_of(self, still: Found) -> Ranked:
        """What is left of it.

        Args:
            still: the candidates that may be shown by now.
        """
        uris = {id_: candidate.uri for id_, candidate in still.by_id.items()}
        readable = set(uris.values())
        order = [
            replace(passage, also=tuple(uri for uri in passage.also if uri in readable))
            for passage in self.order
            if passage.id in uris
        ]
        return replace(self, order=order, found=still)

    def limited(self, limit: int) -> Ranked:
        """The first of them."""
        return replace(self, order=self.order[:limit])

    def scores(self, search: CandidateSearch, hits: Sequence[Hit]) -> tuple[Scores, ...]:
        """What put each hit in its place."""
        rankings = [_ranks(ranking) for ranking in self.found.rankings[:2]]
        by_vector = rankings.pop(0) if rankings and search.mode != "text" else {}
        by_words = rankings.pop(0) if rankings and search.mode != "knn" else {}
        reread = self.reread.scores if self.reread else {}
        ids = [passage.id for passage in self.order]
        return tuple(
            Scores(
                number=hit.number,
                cosine=hit.score,
                fused=round(self.fused[id_], 6),
                by_vector=by_vector.get(id_),
                by_words=by_words.get(id_),
                rerank=reread.get(id_),
            )
            for hit, id_ in zip(hits, ids, strict=False)
        )


async def ranked(search: CandidateSearch, clock: Clock) -> Ranked:
    """Distinct passages with their cosines, best first.

    Raises:
        IndexInconsistent: the tenant's index was lost.
        ServiceUnavailable: a server does not answer.
    """
    found, unread = await _ranked(search, clock, frozenset())
    left_out = unread
    for _ in range(_ATTEMPTS - 1):
        # An entry that is gone now was replaced meanwhile: its successor is found next time. In
        # place of one that was altered, another says the same, or is the next best.
        if not unread:
            break
        found, unread = await _ranked(search, clock, left_out)
        left_out |= unread
    search.altered.report(search.owner.tenant, found.altered)
    if unread:
        _LOG.warning(
            f"{search.owner.tenant}: entries that were found cannot be read;"
            f" `rag-assets check {search.owner.tenant}` tells what is wrong with its index"
        )
    if not found.found.seen:
        await _require_index(search)
    return found


async def _ranked(
    search: CandidateSearch, clock: Clock, left_out: frozenset[str]
) -> tuple[Ranked, frozenset[str]]:
    """What is found now, and ids of that which was not there, or not intact, when it was read.

    Args:
        search: what is asked for.
        clock: of the search.
        left_out: ids of entries that could not be read, or were altered, when they were found.
    """
    with clock.step("search"):
        found = await search.found()
    # What was found again and cannot be read lies elsewhere than it says.
    altered = left_out & found.by_id.keys()
    found = found.without(altered)
    vouched_at = time.monotonic()
    by_id = found.by_id
    fused = fuse([[candidate.id for candidate in ranking] for ranking in found.rankings])
    order = collapse([by_id[id_] for id_ in fused])
    cosines = _by_vector(search, found)
    unread: set[str] = set()
    if search.vector is not None and search.min_cosine is not None:
        # It may drop any of them, so all are scored before the first are taken.
        with clock.step("score"):
            cosines |= await search.cosines([d.id for d in order if d.id not in cosines])
        unread.update(distinct.id for distinct in order if distinct.id not in cosines)
        order = [d for d in order if cosines.get(d.id, -2.0) >= search.min_cosine]
    order = order[: search.limit]
    with clock.step("read"):
        known = all(distinct.id in cosines for distinct in order)
        entries = await search.entries([distinct.id for distinct in order], scored=not known)
    cosines |= {id_: e.cosine for id_, e in entries.items() if e.cosine is not None}
    intact = {id_: entry for id_, entry in entries.items() if entry.intact}
    passages = [d.with_fields(intact[d.id].fields) for d in order if d.id in intact]
    unread.update(distinct.id for distinct in order if distinct.id not in intact)
    altered |= entries.keys() - intact.keys()
    result = Ranked(passages, cosines, fused, found.without(altered), altered)
    if time.monotonic() - vouched_at > _VOUCHED_SECONDS:
        with clock.step("verify"):
            result = result.as_of(await search.still(found))
    return result, frozenset(unread)


def _by_vector(search: CandidateSearch, found: Found) -> dict[str, float]:
    """The cosines of those that were found by them."""
    if search.mode == "text":
        return {}
    rankings = found.rankings[:: 2 if search.mode == "hybrid" else 1]
    return {candidate.id: candidate.score for ranking in rankings for candidate in ranking}


async def _require_index(search: CandidateSearch) -> None:
    """Tell an index that has nothing to say from one that was replaced by an empty one."""
    serving, tenant_id = search.serving, search.owner.tenant
    index = IndexRef(serving.index_name, serving.index_identity)
    if await search.searcher.presence(index) != "present":
        raise IndexInconsistent(
            f"index {serving.index_name!r} of tenant {tenant_id!r} was replaced",
            hint=f"restore it with `rag-assets sync {tenant_id} --repair`",
        )


def _ranks(ranking: Sequence[Candidate]) -> dict[str, int]:
    return {candidate.id: rank for rank, candidate in enumerate(ranking, start=1)}
