"""Google's embeddings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import SecretStr

from rag_assets.common.errors import EmbeddingError, Fault, WrongShape
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.providers.connection import SdkConnection, plausible_tokens
from rag_assets.models.embedding.providers.endpoint import SdkEndpoint
from rag_assets.models.embedding.providers.failures import Refusal, failure_of
from rag_assets.models.embedding.remote import Reply

if TYPE_CHECKING:
    import httpx2
    from google.genai import Client
    from google.genai.types import EmbedContentResponse

_TASK_TYPES: Mapping[Purpose, str] = {
    "document": "RETRIEVAL_DOCUMENT",
    "query": "RETRIEVAL_QUERY",
}
_REASONS: Mapping[str, Fault] = {
    "API_KEY_INVALID": "key",
    "API_KEY_SERVICE_BLOCKED": "key",
    "CONSUMER_SUSPENDED": "key",
    "SERVICE_DISABLED": "key",
}
_DELAY = re.compile(r"([0-9]+(?:\.[0-9]+)?)s")


class GeminiConnection(SdkConnection["Client"]):
    """The way to Google, or to a server that speaks its language; see SdkConnection."""

    own_server = "https://generativelanguage.googleapis.com"

    def _open(self, key: SecretStr | None, http: httpx2.AsyncClient) -> Client:
        from google.genai import Client
        from google.genai.types import HttpOptions

        if key is None:
            raise ValueError("Gemini takes no request without a key")
        return Client(
            vertexai=False,
            api_key=key.get_secret_value(),
            http_options=HttpOptions(
                base_url=self.server.base_url or self.own_server,
                api_version="v1beta",
                httpx_async_client=http,
            ),
        )

    def _shut(self, sdk: Client) -> None:
        sdk.close()

    def _refusal(self, error: Exception) -> EmbeddingError | None:
        from google.genai.errors import APIError

        if not isinstance(error, APIError):
            return None
        details = list(_details(error.details))
        headers = getattr(error.response, "headers", None) or {}
        refusal = Refusal(error.code, headers, _fault(details), _delay(details))
        return failure_of(refusal, self.server.id)


class GeminiEndpoint(GeminiConnection, SdkEndpoint["Client"]):
    """A model of Google's, or of a server that speaks its language; see SdkEndpoint."""

    async def _ask(self, sdk: Client, texts: list[str], purpose: Purpose) -> Reply:
        from google.genai.types import Content, EmbedContentConfig, Part

        answer = await sdk.aio.models.embed_content(
            model=self.model.name,
            # Each in a Content of its own: newer models make one vector of a list of texts.
            contents=[Content(parts=[Part(text=text)]) for text in texts],
            config=EmbedContentConfig(
                task_type=_TASK_TYPES[purpose] if self.model.task_types else None,
                output_dimensionality=self.model.asked_dimensions,
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
        if any(row is None or len(row) != self.model.native for row in rows):
            raise WrongShape(
                f"{self.model.embedder_id} returned vectors of other dimensions than its"
                f" model's {self.model.native}, which were to be filled up with zeros",
                hint="check the embedder's model and base_url",
            )
        return np.pad(np.array(rows, dtype=np.float32), ((0, 0), (0, missing)))


def _tokens(answer: EmbedContentResponse) -> int | None:
    """What is charged, where the answer says so."""
    return plausible_tokens(getattr(answer.usage_metadata, "prompt_token_count", None))


def _details(body: Any) -> Iterable[Mapping[str, Any]]:
    """The typed details of an error, as google.rpc has them."""
    error = body.get("error", body) if isinstance(body, Mapping) else {}
    details = error.get("details") if isinstance(error, Mapping) else None
    return (each for each in details or () if isinstance(each, Mapping))


def _fault(details: Iterable[Mapping[str, Any]]) -> Fault | None:
    for detail in details:
        if fault := _REASONS.get(str(detail.get("reason"))):
            return fault
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            # A minute's quota comes back by itself; a day's is for a person.
            if isinstance(violation, Mapping) and "PerDay" in str(violation.get("quotaId")):
                return "quota"
    return None


def _delay(details: Iterable[Mapping[str, Any]]) -> float | None:
    for detail in details:
        if match := _DELAY.fullmatch(str(detail.get("retryDelay"))):
            return float(match[1])
    return None
