"""The second stage: the first candidates are read again together with the question."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from anyio.to_thread import run_sync
from cachetools import LRUCache

from rag_assets.billing.rerankers import Rerankers
from rag_assets.common.errors import ConfigurationError, RerankFailed, RerankFault
from rag_assets.ingest.chunking.model import embedding_text
from rag_assets.models.reranking.config import RerankConfig
from rag_assets.models.reranking.protocol import Reranker
from rag_assets.retrieval.duplicates import Passage
from rag_assets.retrieval.fusion import fuse
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.index.model import Candidate

_LOG = logging.getLogger(__name__)

_MOST_RERANKERS = 1_024
_KEY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Reread:
    """What became of a second stage.

    Attributes:
        scores: by id of the candidates that were read again; empty where that failed.
        fault: why it failed, if it did.
    """

    scores: Mapping[str, float]
    fault: RerankFault | None = None

    def ordered(
        self, order: Sequence[Passage], prefers: Callable[[Candidate], bool]
    ) -> list[Passage]:
        """Those that were read again by their scores, equal ones as they stood; then the rest.

        Args:
            order: as it was found.
            prefers: whether a candidate shall rank higher; as in the search itself, those are a
                ranking of their own, and both are fused.
        """
        scores = self.scores
        read = [passage for passage in order if passage.id in scores]
        rest = [passage for passage in order if passage.id not in scores]
        read.sort(key=lambda passage: -scores[passage.id])
        if preferred := [passage.id for passage in read if prefers(passage.candidate)]:
            fused = fuse([[passage.id for passage in read], preferred])
            read.sort(key=lambda passage: -fused[passage.id])
        return read + rest


@dataclass(slots=True)
class _Made:
    """A reranker, and until when its key need not be looked up anew."""

    reranker: Reranker
    renewed_at: float


class SecondStage:
    """Reads candidates again, in one event loop; a search never fails by it.

    Args:
        rerankers: makes the tenants' rerankers.
    """

    def __init__(self, rerankers: Rerankers) -> None:
        self._rerankers = rerankers
        self._made: LRUCache[tuple[TenantRef, RerankConfig], _Made] = LRUCache(_MOST_RERANKERS)

    async def read(
        self, ref: TenantRef, config: RerankConfig, question: str, order: Sequence[Passage]
    ) -> Reread:
        """Score the first candidates of an order.

        Args:
            ref: whose they are.
            config: of the reranker.
            question: in words.
            order: best first, only such as whoever asks may read: a server may be sent their texts.
        """
        first = order[: config.first]
        if not first:
            return Reread({})
        try:
            reranker = await self._reranker(ref, config)
            texts = [_text(passage) for passage in first]
            scores = await reranker.scores(question, texts, seconds=config.seconds)
        except RerankFailed as error:
            if error.fault != "resting":
                _LOG.warning(f"{ref.id}: a search was not reranked: {error.advice}")
            return Reread({}, error.fault)
        except ConfigurationError as error:
            _LOG.warning(f"{ref.id}: a search was not reranked: {error.advice}")
            return Reread({}, "not usable")
        ids = [passage.id for passage in first]
        return Reread(dict(zip(ids, scores, strict=True)))

    async def close(self) -> None:
        """Let go of the rerankers' connections, in the loop that asked."""
        made = list(self._made.values())
        self._made.clear()
        for one in made:
            await one.reranker.close()

    async def _reranker(self, ref: TenantRef, config: RerankConfig) -> Reranker:
        key, now = (ref, config), time.monotonic()
        made = self._made.get(key)
        if made is None:
            # It may read a model's files.
            reranker = await run_sync(self._rerankers.of, ref, config)
            made = self._made.setdefault(key, _Made(reranker, now))
        if now - made.renewed_at > _KEY_SECONDS:
            made.renewed_at = now
            # It opens its connections again, with the key that the tenant has by then.
            await made.reranker.close()
        return made.reranker


def _text(passage: Passage) -> str:
    """What an embedder reads of a passage: its title and headings as well."""
    fields = passage.fields
    return embedding_text(fields.get("title"), tuple(fields["heading_path"]), fields["text"])
