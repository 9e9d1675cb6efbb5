"""Embeds the question of a search."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.models.embedding.protocol import Answer, Embedder
from rag_assets.models.embedding.vectors import checked_vectors


async def embed_query(embedder: Embedder, question: str) -> Answer:
    """Embed one question; vectors have shape (1, dimensions), and connections stay open.

    Raises:
        ProviderError: see Embedder.embed.
    """
    answer = await embedder.embed([question], purpose="query")
    vectors = checked_vectors(
        answer.vectors, count=1, dimensions=embedder.dimensions, source=embedder.embedder_id
    )
    return replace(answer, vectors=vectors)
