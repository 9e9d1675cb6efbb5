"""Reranking: a cross-encoder scores the first passages of a search together with its question."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from anyio.to_thread import run_sync
from cachetools import LRUCache

from rag_assets.billing.rerankers import Rerankers
from rag_assets.common.errors import ConfigurationError, RerankFailed, RerankFault
from rag_assets.ingest.chunking.model import embedding_text
from rag_assets.models.config import RerankConfig
from rag_assets.models.reranking.protocol import Reranker
from rag_assets.search.duplicates import Passage
from rag_assets.search.fusion import by_rank, fuse
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.index.model import Candidate

_LOG = logging.getLogger(__name__)

_MAX_RERANKERS = 1_024
_KEY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Reranking:
    """Scores of a reranker.

    Attributes:
        scores: by id of the scored passages; empty if reranking failed.
        fault: why reranking failed, if it did; also "late" if there was time to score only the
            first passages.
        blend: share of these scores in the order; the fused scores have the remaining share.
    """

    scores: Mapping[str, float]
    fault: RerankFault | None = None
    blend: float = 1.0

    def ordered(
        self,
        order: Sequence[Passage],
        prefers: Callable[[Candidate], bool],
        fused: Mapping[str, float] = MappingProxyType({}),
    ) -> list[Passage]:
        """Return scored passages, best first, with ties in their former order; then the others.

        Args:
            order: the passages in the order before reranking.
            prefers: returns whether a candidate ranks higher. As in the search itself,
                preferred candidates form a separate ranking, and both rankings are fused.
            fused: scores of the search, by id; needed if scores are blended.
        """
        scored = [passage for passage in order if passage.id in self.scores]
        others = [passage for passage in order if passage.id not in self.scores]
        scores = self.blended([passage.id for passage in scored], fused)
        scored.sort(key=lambda passage: -scores[passage.id])
        if preferred := [passage.id for passage in scored if prefers(passage.candidate)]:
            by_both = fuse([by_rank([passage.id for passage in scored]), by_rank(preferred)])
            scored.sort(key=lambda passage: -by_both[passage.id])
        return scored + others

    def blended(self, ids: Sequence[str], fused: Mapping[str, float]) -> Mapping[str, float]:
        """Return the weighted mean of both kinds of scores, each from 0 to 1 over these ids."""
        if self.blend == 1 or not ids:
            return self.scores
        lowest = min(fused.values(), default=0.0)
        by_search = _normalize({id_: fused.get(id_, lowest) for id_ in ids})
        by_model = _normalize({id_: self.scores[id_] for id_ in ids})
        return {id_: (1 - self.blend) * by_search[id_] + self.blend * by_model[id_] for id_ in ids}


def _normalize(scores: Mapping[str, float]) -> dict[str, float]:
    """Map the best score to 1 and the last to 0; if all are equal, map all to 0."""
    least, most = min(scores.values()), max(scores.values())
    return {id_: (score - least) / ((most - least) or 1.0) for id_, score in scores.items()}


@dataclass(slots=True)
class _CachedReranker:
    """A reranker, and the time when its provider key was last looked up."""

    reranker: Reranker
    renewed_at: float


class RerankerPool:
    """Scores passages with the tenants' rerankers, in one event loop; a fault never fails a search.

    Args:
        rerankers: creates the tenants' rerankers.
    """

    def __init__(self, rerankers: Rerankers) -> None:
        self._rerankers = rerankers
        self._cached: LRUCache[tuple[TenantRef, RerankConfig], _CachedReranker] = LRUCache(
            _MAX_RERANKERS
        )

    async def score(
        self,
        ref: TenantRef,
        config: RerankConfig,
        question: str,
        order: Sequence[Passage],
        *,
        known: Reranking | None = None,
    ) -> Reranking:
        """Score the first passages of an order.

        Args:
            config: configuration of the reranker.
            order: best first; only passages that the caller may read, since their text may be
                sent to a server.
            known: scores for this question from an earlier attempt. Passages with such a score
                are not scored again. If the attempt had a fault, no passage is scored.
        """
        first = order[: config.first]
        if not first:
            return Reranking({})
        before = known.scores if known else {}
        scored = {passage.id: before[passage.id] for passage in first if passage.id in before}
        if known and known.fault:
            return replace(known, scores=scored)
        new = [passage for passage in first if passage.id not in scored]
        if not new:
            return Reranking(scored, blend=config.blend)
        try:
            reranker = await self._reranker(ref, config)
            texts = [_text(passage) for passage in new]
            scores = await reranker.scores(question, texts, seconds=config.seconds)
        except RerankFailed as error:
            if error.fault != "resting":
                _LOG.warning(f"{ref.id}: a search was not reranked: {error.advice}")
            return Reranking({}, error.fault)
        except ConfigurationError as error:
            _LOG.warning(f"{ref.id}: a search was not reranked: {error.advice}")
            return Reranking({}, "not usable")
        scored |= {
            passage.id: score
            for passage, score in zip(new, scores, strict=True)
            if score is not None
        }
        return Reranking(scored, "late" if len(scored) < len(first) else None, config.blend)

    async def close(self) -> None:
        """Close the rerankers' connections; must be called in the event loop that used them."""
        cached = list(self._cached.values())
        self._cached.clear()
        for entry in cached:
            await entry.reranker.close()

    async def _reranker(self, ref: TenantRef, config: RerankConfig) -> Reranker:
        key, now = (ref, config), time.monotonic()
        cached = self._cached.get(key)
        if cached is None:
            # Run in a thread: it may read a model's files.
            reranker = await run_sync(self._rerankers.of, ref, config)
            cached = self._cached.setdefault(key, _CachedReranker(reranker, now))
        if now - cached.renewed_at > _KEY_SECONDS:
            cached.renewed_at = now
            # The reranker reopens its connections with the tenant's current key.
            await cached.reranker.close()
        return cached.reranker


def _text(passage: Passage) -> str:
    """Return the text of a passage as it was embedded, with its title and headings."""
    fields = passage.fields
    return embedding_text(
        fields.get("title"),
        tuple(fields["heading_path"]),
        fields["text"],
        context=fields.get("context") or "",
    )
