"""The base of embedders that extend another embedder."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.models.embedding.protocol import Answer, CallLimits, Embedder, Purpose


class WrappedEmbedder:
    """An embedder that delegates to another embedder; subclasses override what differs.

    Args:
        embedder: the wrapped embedder.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def embedder_id(self) -> str:
        """See Embedder."""
        return self._embedder.embedder_id

    @property
    def dimensions(self) -> int:
        """See Embedder."""
        return self._embedder.dimensions

    @property
    def limits(self) -> CallLimits:
        """See Embedder."""
        return self._embedder.limits

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
        is_bulk: bool = False,
    ) -> Answer:
        """See Embedder."""
        return await self._embedder.embed(
            texts, purpose=purpose, deadline=deadline, is_bulk=is_bulk
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See Embedder."""
        return self._embedder.count_tokens(texts)

    @property
    def languages(self) -> frozenset[str] | None:
        """See Embedder."""
        return self._embedder.languages

    def unread_share(self, texts: Sequence[str]) -> float | None:
        """See Embedder."""
        return self._embedder.unread_share(texts)

    async def close(self) -> None:
        """See Embedder."""
        await self._embedder.close()
