"""Revisions of an embedder, whose vectors are kept separate from earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.models.embedding.protocol import Answer, CallLimits, Embedder, Purpose


def revised_id(embedder_id: str, revision: str | None) -> str:
    """An embedder's id with the revision that its tenant configured, if any."""
    return embedder_id if revision is None else f"{embedder_id}~{revision}"


class RevisedEmbedder:
    """An embedder with another id, which otherwise behaves like the wrapped one.

    For a provider that changed a model without renaming it: new vectors must not be mixed with
    earlier ones.

    Args:
        embedder: the wrapped embedder.
        revision: distinguishes its vectors from earlier ones.
    """

    def __init__(self, embedder: Embedder, revision: str) -> None:
        self._embedder = embedder
        self._revision = revision

    @property
    def embedder_id(self) -> str:
        """The wrapped embedder's id, and the revision."""
        return revised_id(self._embedder.embedder_id, self._revision)

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._embedder.dimensions

    @property
    def limits(self) -> CallLimits:
        """The limits of a call, and of concurrent calls."""
        return self._embedder.limits

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
    ) -> Answer:
        """See Embedder.embed."""
        return await self._embedder.embed(texts, purpose=purpose, deadline=deadline)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See Embedder.count_tokens."""
        return self._embedder.count_tokens(texts)

    async def close(self) -> None:
        """See Embedder.close."""
        await self._embedder.close()
