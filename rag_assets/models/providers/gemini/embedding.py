"""Embeddings of Google Gemini."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_assets.common.errors import WrongShape
from rag_assets.models.embedding.endpoint import SdkEndpoint
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.remote import Reply
from rag_assets.models.providers.gemini.connection import GeminiConnection
from rag_assets.models.transport.sdk_connection import plausible_tokens

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.types import EmbedContentResponse

_TASK_TYPES: Mapping[Purpose, str] = {
    "document": "RETRIEVAL_DOCUMENT",
    "query": "RETRIEVAL_QUERY",
}


class GeminiEndpoint(GeminiConnection, SdkEndpoint["Client"]):
    """A model of Google, or of a server that implements its API; see SdkEndpoint."""

    async def _embed(self, sdk: Client, texts: list[str], purpose: Purpose) -> Reply:
        from google.genai.types import Content, EmbedContentConfig, Part

        answer = await sdk.aio.models.embed_content(
            model=self.model.name,
            # Each in its own Content: newer models return one vector for a list of texts.
            contents=[Content(parts=[Part(text=text)]) for text in texts],
            config=EmbedContentConfig(
                task_type=_TASK_TYPES[purpose] if self.model.task_types else None,
                output_dimensionality=self.model.requested_dimensions,
            ),
        )
        return self._reply(lambda: self._vectors(answer, len(texts)), _tokens(answer))

    def _vectors(self, answer: EmbedContentResponse, count: int) -> Any:
        rows = [embedding.values for embedding in answer.embeddings or ()]
        if len(rows) != count:
            raise WrongShape(
                f"{self.model.embedder_id} returned {len(rows)} vectors for {count} texts",
                hint="check the embedder's model and base_url",
            )
        missing = self.model.dimensions - self.model.native
        if not missing:
            return rows
        native = self.model.native
        if all(row is None or len(row) != native for row in rows):
            raise WrongShape(
                f"{self.model.embedder_id} returned vectors of other dimensions than the"
                f" {native} of its model",
                hint="check the embedder's model and base_url",
            )
        padding = [0.0] * missing
        return [[*row, *padding] if row and len(row) == native else [] for row in rows]


def _tokens(answer: EmbedContentResponse) -> int | None:
    """The tokens charged, if the response has them."""
    return plausible_tokens(getattr(answer.usage_metadata, "prompt_token_count", None))
