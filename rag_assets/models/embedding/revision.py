"""The same model once more, for vectors that are to be told from those made before."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.models.embedding.protocol import Answer, CallLimits, Embedder, Purpose


def revised_id(embedder_id: str, revision: str | None) -> str:
    """An embedder's id with the revision its tenant gave it, if any."""
    return embedder_id if revision is None else f"{embedder_id}~{revision}"


class RevisedEmbedder:
    """An embedder whose vectors are kept under an id of their own; else it is the one within.

    For a provider that changed a model behind its name: what is embedded from now on must not be
    mixed with what was.

    Args:
        embedder: what embeds.
        revision: what tells its vectors from those made before.
    """

    def __init__(self, embedder: Embedder, revision: str) -> None:
        self._embedder = embedder
        self._revision = revision

    @property
    def embedder_id(self) -> str:
        """The id of the one within, and the revision."""
        return revised_id(self._embedder.embedder_id, self._revision)

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._embedder.dimensions

    @property
    def limits(self) -> CallLimits:
        """How much it takes at once."""
        return self._embedder.limits

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
    ) -> Answer:
        """What the one within answers; see Embedder.embed."""
        return await self._embedder.embed(texts, purpose=purpose, deadline=deadline)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As the one within counts them."""
        return self._embedder.count_tokens(texts)

    async def close(self) -> None:
        """Let go of connections."""
        await self._embedder.close()
