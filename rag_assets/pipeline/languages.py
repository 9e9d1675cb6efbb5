"""Languages that a tenant's embedder does not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.parsing.language_names import LANGUAGE_NAMES
from rag_assets.models.embedding.coverage import MULTILINGUAL_EMBEDDER, is_read
from rag_assets.models.embedding.prices import provider_and_model
from rag_assets.models.embedding.protocol import Embedder

_SAMPLED_CHUNKS: Final = 3
"""Passages of a document that show whether it is read."""


class UnreadDocuments:
    """Counts the documents whose first passages an embedder does not read.

    Args:
        embedder: that makes their vectors.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.documents = 0
        self.by_language: Counter[str] = Counter()

    def add(self, language: str | None, chunks: Iterable[Chunk]) -> None:
        """Count one document, under its language; "" where that is uncertain."""
        first = [chunk.text for chunk, _ in zip(chunks, range(_SAMPLED_CHUNKS), strict=False)]
        self.documents += 1
        if not is_read(self._embedder, "\n".join(first)):
            self.by_language[language or ""] += 1


def unread_notice(embedder_id: str, by_language: Mapping[str, int], documents: int) -> str:
    """Return a sentence on unread documents, and which embedder reads them; "" if all are read.

    Args:
        embedder_id: of the embedder in use.
        by_language: number of unread documents by language.
        documents: number of all that were looked at.
    """
    unread = sum(by_language.values())
    if not unread:
        return ""
    names = [LANGUAGE_NAMES.get(code, code) for code in sorted(by_language) if code]
    languages = f" ({', '.join(names)})" if names else ""
    provider, model = provider_and_model(embedder_id)
    notice = (
        f"{unread:,} of {documents:,} documents are in a script that {provider}/{model} does not"
        f" read{languages}: questions in it are answered by words alone"
    )
    if f"{provider}/{model}" == MULTILINGUAL_EMBEDDER:
        return notice
    return f"{notice}; {MULTILINGUAL_EMBEDDER} reads most languages"
