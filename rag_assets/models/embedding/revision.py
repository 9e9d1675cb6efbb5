"""Revisions of an embedder, which keep its vectors apart from earlier vectors."""

from __future__ import annotations

from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.embedding.wrapped import WrappedEmbedder


def revised_id(embedder_id: str, revision: str | None) -> str:
    """Return an embedder's id with the revision that its tenant configured, if any."""
    return embedder_id if revision is None else f"{embedder_id}~{revision}"


class RevisedEmbedder(WrappedEmbedder):
    """An embedder with another id that otherwise behaves like the wrapped embedder.

    It is used if a provider changed a model without renaming it, because new vectors must not be
    mixed with earlier vectors.

    Args:
        embedder: the wrapped embedder.
        revision: a word that distinguishes the new vectors from earlier vectors.
    """

    def __init__(self, embedder: Embedder, revision: str) -> None:
        super().__init__(embedder)
        self._revision = revision

    @property
    def embedder_id(self) -> str:
        """Return the wrapped embedder's id with the revision."""
        return revised_id(self._embedder.embedder_id, self._revision)
