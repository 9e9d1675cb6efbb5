"""Google Gemini: its connection, embeddings, chat models, and the table of its models.

Source of models and limits: the references of its API. Source of prices, in dollars per million
tokens: https://ai.google.dev/gemini-api/docs/pricing, for embeddings as of November 2026, for chat
models (up to 200,000 tokens of input) as of March 2026. `embedder.price` and `chat_model.prices` in
tenants.yaml replace them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from rag_assets.common.errors import Fault, InputRejected, ProviderError, WrongShape
from rag_assets.models.chat import ChatReply, Prompt, SdkChatEndpoint
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.remote import EmbeddingReply, KnownModel, SdkEndpoint
from rag_assets.models.prices import Price, build_chat_price
from rag_assets.models.providers.base import ChatOffer, Provider, RemoteEmbedding
from rag_assets.models.transport.connection import SdkConnection, read_token_count
from rag_assets.models.transport.failures import Refusal, classify_refusal

if TYPE_CHECKING:
    import httpx2
    from google.genai import Client
    from google.genai.types import EmbedContentResponse, GenerateContentResponse

_REASONS: Mapping[str, Fault] = {
    "API_KEY_INVALID": "key",
    "API_KEY_SERVICE_BLOCKED": "key",
    "CONSUMER_SUSPENDED": "key",
    "SERVICE_DISABLED": "key",
}
_DELAY = re.compile(r"([0-9]+(?:\.[0-9]+)?)s")


class GeminiConnection(SdkConnection["Client"]):
    """A connection to Google, or to a server that implements its API; see SdkConnection."""

    own_server = "https://generativelanguage.googleapis.com"
    key_headers = frozenset({"x-goog-api-key"})

    def _open_sdk(self, key: SecretStr | None, http: httpx2.AsyncClient) -> Client:
        from google.genai import Client
        from google.genai.types import HttpOptions

        if key is None:
            raise ValueError("Gemini requires a key")
        return Client(
            vertexai=False,
            api_key=key.get_secret_value(),
            http_options=HttpOptions(
                base_url=self.server.base_url or self.own_server,
                api_version="v1beta",
                httpx_async_client=http,
            ),
        )

    def _close_sdk(self, sdk: Client) -> None:
        sdk.close()

    def _convert_error(self, error: Exception) -> ProviderError | None:
        from google.genai.errors import APIError

        if not isinstance(error, APIError):
            return None
        details = list(_iter_details(error.details))
        headers = getattr(error.response, "headers", None) or {}
        refusal = Refusal(
            error.code, headers, _find_fault_in_details(details), _read_retry_delay(details)
        )
        return classify_refusal(refusal, self.server.id)


def _iter_details(body: Any) -> Iterable[Mapping[str, Any]]:
    """Return the `details` of an error response, as google.rpc defines them."""
    error = body.get("error", body) if isinstance(body, Mapping) else {}
    details = error.get("details") if isinstance(error, Mapping) else None
    return (detail for detail in details or () if isinstance(detail, Mapping))


def _find_fault_in_details(details: Iterable[Mapping[str, Any]]) -> Fault | None:
    for detail in details:
        if fault := _REASONS.get(str(detail.get("reason"))):
            return fault
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            # After a quota per minute is used up, waiting helps; a quota per day needs a person.
            if isinstance(violation, Mapping) and "PerDay" in str(violation.get("quotaId")):
                return "quota"
    return None


def _read_retry_delay(details: Iterable[Mapping[str, Any]]) -> float | None:
    for detail in details:
        if match := _DELAY.fullmatch(str(detail.get("retryDelay"))):
            return float(match[1])
    return None


_TASK_TYPES: Mapping[Purpose, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


class GeminiEndpoint(GeminiConnection, SdkEndpoint["Client"]):
    """An embedding model of Google, or of a server that implements its API; see SdkEndpoint."""

    auto_truncate: bool | None = None
    """Whether the server cuts texts that are too long; None if requests cannot set this."""

    async def _embed(self, sdk: Client, texts: list[str], purpose: Purpose) -> EmbeddingReply:
        from google.genai.types import Content, EmbedContentConfig, Part

        answer = await sdk.aio.models.embed_content(
            model=self.model.name,
            # Put each text into its own Content, since newer models return one vector for a list of
            # texts.
            contents=[Content(parts=[Part(text=text)]) for text in texts],
            config=EmbedContentConfig(
                task_type=_TASK_TYPES[purpose] if self.model.task_types else None,
                output_dimensionality=self.model.requested_dimensions,
                auto_truncate=self.auto_truncate,
            ),
        )
        return self._build_reply(
            lambda: self._extract_vectors(answer, len(texts)), _read_charged_token_count(answer)
        )

    def _extract_vectors(self, answer: EmbedContentResponse, count: int) -> Any:
        embeddings = self._require_count(answer.embeddings, count)
        rows = [embedding.values for embedding in embeddings]
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


def _read_charged_token_count(answer: EmbedContentResponse) -> int | None:
    """Return the number of tokens charged: the reported total, or else the sum over all texts."""
    total = getattr(answer.usage_metadata, "prompt_token_count", None)
    if total is None:
        statistics = [embedding.statistics for embedding in answer.embeddings or ()]
        total = sum(int(counted.token_count or 0) for counted in statistics if counted is not None)
    return read_token_count(total)


class GeminiChat(GeminiConnection, SdkChatEndpoint["Client"]):
    """A chat model of Google, or of a server that implements its API; see SdkChatEndpoint."""

    async def _request_completion(self, sdk: Client, prompt: Prompt) -> ChatReply:
        from google.genai.types import (
            AutomaticFunctionCallingConfig,
            Content,
            FinishReason,
            GenerateContentConfig,
            Part,
        )

        answer = await sdk.aio.models.generate_content(
            model=self._model,
            contents=[Content(role="user", parts=[Part(text=prompt.text)])],
            config=GenerateContentConfig(
                system_instruction=prompt.instructions,
                max_output_tokens=prompt.max_tokens,
                automatic_function_calling=AutomaticFunctionCallingConfig(disable=True),
            ),
        )
        if not answer.candidates and answer.prompt_feedback is not None:
            raise InputRejected(f"the chat model {self.server.id} rejected the question")
        candidate = (answer.candidates or [])[0]
        parts = candidate.content.parts if candidate.content else None
        return ChatReply(
            "".join(part.text for part in parts or () if part.text and not part.thought),
            read_token_count(getattr(answer.usage_metadata, "prompt_token_count", None)),
            _read_output_token_count(answer),
            cut=candidate.finish_reason == FinishReason.MAX_TOKENS,
        )


def _read_output_token_count(answer: GenerateContentResponse) -> int | None:
    """Return the number of output tokens charged, thinking included; None if not reported."""
    usage = answer.usage_metadata
    text = read_token_count(getattr(usage, "candidates_token_count", None))
    thoughts = read_token_count(getattr(usage, "thoughts_token_count", None))
    return None if text is None and thoughts is None else (text or 0) + (thoughts or 0)


MODULE = "google.genai"
_DIMENSIONS = (768, 1536, 3072)
_MAX_INPUT_TOKENS = 2048

EMBEDDING = RemoteEmbedding(
    endpoint=GeminiEndpoint,
    models={
        "gemini-embedding-001": KnownModel(
            1536,
            _DIMENSIONS,
            input_tokens=_MAX_INPUT_TOKENS,
            task_types=True,
            price=Price(per_million=0.15, batch_per_million=0.075),
        ),
        "gemini-embedding-2": KnownModel(
            1536,
            _DIMENSIONS,
            document_prefix="title: none | text: ",
            query_prefix="task: search result | query: ",
            price=Price(per_million=0.20, batch_per_million=0.10),
        ),
        # Google shut it down in January 2026; some compatible servers still offer it.
        "text-embedding-004": KnownModel(
            768,
            (768, 1536),
            shortens=False,
            native=768,
            input_tokens=_MAX_INPUT_TOKENS,
            task_types=True,
        ),
    },
    unlisted=KnownModel(input_tokens=_MAX_INPUT_TOKENS, task_types=True),
    default_model="gemini-embedding-001",
    auto_dimensions=1536,
    module=MODULE,
)

_CHAT = ChatOffer(
    endpoint=GeminiChat,
    prices={
        "gemini-2.5-pro": build_chat_price(1.25, 10.0),
        "gemini-2.5-flash": build_chat_price(0.30, 2.50),
        "gemini-2.5-flash-lite": build_chat_price(0.10, 0.40),
    },
    module=MODULE,
)

GEMINI = Provider(
    "gemini",
    embedding=EMBEDDING,
    chat=_CHAT,
    chat_names=re.compile(r"(^|[/.:])(gemini|learnlm)([/.:-]|$)"),
)
