"""The vector of a question."""

from __future__ import annotations

from rag_assets.embedding.protocol import Embedder, Vectors
from rag_assets.embedding.vectors import checked_vectors


async def embed_query(embedder: Embedder, question: str) -> Vectors:
    """Embed one question, shape (dimensions,); connections are kept for the next.

    Raises:
        EmbeddingError: see Embedder.embed.
    """
    answer = await embedder.embed([question], purpose="query")
    vectors = checked_vectors(
        answer.vectors, count=1, dimensions=embedder.dimensions, source=embedder.embedder_id
    )
    first: Vectors = vectors[0]
    return first
