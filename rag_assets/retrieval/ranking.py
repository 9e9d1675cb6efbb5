"""From candidates to an order: fused, scored by cosine, equal texts taken together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.errors import IndexInconsistent
from rag_assets.indexing.model import Candidate
from rag_assets.retrieval.candidates import CandidateSearch, Found
from rag_assets.retrieval.clock import Clock
from rag_assets.retrieval.duplicates import Distinct, collapse
from rag_assets.retrieval.fusion import fuse
from rag_assets.retrieval.model import Hit, Scores
from rag_assets.retrieval.second_stage import Reread

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Ranked:
    """What a search found.

    Attributes:
        order: the passages that are near enough, best first.
        cosines: by id, of at least those; empty where the question has no vector.
        fused: scores by id, of all candidates, best first.
        found: the candidates.
        reread: what the second stage made of the first of them; None where there was none.
    """

    order: Sequence[Distinct]
    cosines: Mapping[str, float]
    fused: Mapping[str, float]
    found: Found
    reread: Reread | None = None

    def after(self, reread: Reread, search: CandidateSearch, still: Found) -> Ranked:
        """In the order of a second stage.

        Args:
            reread: what came of it.
            search: what was asked for.
            still: the candidates that may be shown by now: reading them took a while.
        """
        uris = {id_: candidate.fields["uri"] for id_, candidate in still.by_id.items()}
        readable = set(uris.values())
        order = [
            replace(distinct, also=tuple(uri for uri in distinct.also if uri in readable))
            for distinct in reread.ordered(self.order, search.prefers)
            if distinct.candidate.id in uris
        ]
        return replace(self, order=order, found=still, reread=reread)

    def limited(self, limit: int) -> Ranked:
        """The first of them."""
        return replace(self, order=self.order[:limit])

    def first(self, count: int) -> dict[str, Any]:
        """The first candidates: their chunk ids, and their cosines as far as they are known."""
        by_id = self.found.by_id
        ids = [*islice((id_ for id_ in self.fused if id_ in by_id), count)]
        return {
            "ids": [by_id[id_].fields["chunk_id"] for id_ in ids],
            "scores": [_rounded(self.cosines.get(id_)) for id_ in ids],
        }

    def scores(self, search: CandidateSearch, hits: Sequence[Hit]) -> tuple[Scores, ...]:
        """What put each hit in its place."""
        rankings = [_ranks(ranking) for ranking in self.found.rankings[:2]]
        by_vector = rankings.pop(0) if rankings and search.mode != "text" else {}
        by_words = rankings.pop(0) if rankings and search.mode != "knn" else {}
        reread = self.reread.scores if self.reread else {}
        ids = [distinct.candidate.id for distinct in self.order]
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
    order: list[Distinct] = []
    cosines: Mapping[str, float] = {}
    fused: Mapping[str, float] = {}
    found = Found((), {}, 0)
    for _ in range(_ATTEMPTS):
        with clock.step("search"):
            found = await search.found()
        fused = fuse([[candidate.id for candidate in ranking] for ranking in found.rankings])
        by_id = found.by_id
        order = collapse([by_id[id_] for id_ in fused])
        # A threshold may drop any of them, so all are scored before the first are taken.
        if search.min_cosine is None:
            order = order[: search.limit]
        if search.vector is None:
            break
        with clock.step("score"):
            cosines = await _cosines(search, search.vector, found, order)
        # An entry that is gone now was replaced meanwhile: its successor is found next time.
        if all(distinct.candidate.id in cosines for distinct in order):
            break
    if not found.seen:
        await _require_index(search)
    return Ranked(_near_enough(search, order, cosines), cosines, fused, found)


def _near_enough(
    search: CandidateSearch, order: Sequence[Distinct], cosines: Mapping[str, float]
) -> list[Distinct]:
    if search.vector is not None:
        least = -1.0 if search.min_cosine is None else search.min_cosine
        order = [d for d in order if cosines.get(d.candidate.id, -2.0) >= least]
    return [*order[: search.limit]]


async def _cosines(
    search: CandidateSearch,
    vector: npt.NDArray[np.float32],
    found: Found,
    order: Sequence[Distinct],
) -> dict[str, float]:
    known: dict[str, float] = {}
    if search.mode != "text":
        known = {candidate.id: candidate.score for candidate in found.rankings[0]}
    unknown = [d.candidate.id for d in order if d.candidate.id not in known]
    if unknown:
        name = search.serving.index_name
        known |= await search.searcher.cosines(name, search.owner, vector, unknown)
    return known


async def _require_index(search: CandidateSearch) -> None:
    """Tell an index that has nothing to say from one that was replaced by an empty one."""
    serving, tenant_id = search.serving, search.owner.tenant
    if await search.searcher.uuid_of(serving.index_name) != serving.index_uuid:
        raise IndexInconsistent(
            f"index {serving.index_name!r} of tenant {tenant_id!r} was replaced",
            hint=f"restore it with `rag-assets sync {tenant_id} --repair`",
        )


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 6)


def _ranks(ranking: Sequence[Candidate]) -> dict[str, int]:
    return {candidate.id: rank for rank, candidate in enumerate(ranking, start=1)}
