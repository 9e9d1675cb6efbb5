"""OpenAI's embeddings, and those of every server that speaks its language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from rag_assets.embedding.protocol import Purpose
from rag_assets.embedding.providers.endpoint import REQUEST_SECONDS, SdkEndpoint
from rag_assets.embedding.providers.failures import Fault, Refusal, failure_of
from rag_assets.embedding.remote import Reply
from rag_assets.errors import BadVectors, EmbeddingError

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI
    from openai.types import CreateEmbeddingResponse

_NO_KEY = "none"
_FAULTS: dict[str, Fault] = {
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_not_active": "quota",
    "model_not_found": "model",
    "invalid_model": "model",
    "invalid_api_key": "key",
    "account_deactivated": "key",
}


class OpenAIEndpoint(SdkEndpoint["AsyncOpenAI"]):
    """A model of OpenAI's, or of a compatible server; see SdkEndpoint."""

    own_server = "https://api.openai.com/v1"

    def _open(self, key: SecretStr | None, http: httpx2.AsyncClient) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        secret = _NO_KEY if key is None else key.get_secret_value()
        return AsyncOpenAI(
            api_key=secret,
            # Said here as well: else the environment's OPENAI_CUSTOM_HEADERS could replace it.
            default_headers={"Authorization": f"Bearer {secret}"},
            base_url=self.model.base_url or self.own_server,
            http_client=http,
            timeout=REQUEST_SECONDS,
            max_retries=0,
        )

    async def _ask(self, sdk: AsyncOpenAI, texts: list[str], purpose: Purpose) -> Reply:
        from openai import Omit

        options: dict[str, Any] = {}
        if sdk.api_key == _NO_KEY:
            options["extra_headers"] = {"Authorization": Omit()}
        if self.model.asked_dimensions is not None:
            options["dimensions"] = self.model.asked_dimensions
        if self.model.provider != "openai":
            options["encoding_format"] = "float"  # what every compatible server knows
        answer = await sdk.embeddings.create(model=self.model.name, input=texts, **options)
        return Reply(
            vectors=_in_order(answer, len(texts), self.model.embedder_id), tokens=_tokens(answer)
        )

    def _refusal(self, error: Exception) -> EmbeddingError | None:
        from openai import APIResponseValidationError, APIStatusError

        if isinstance(error, APIResponseValidationError):
            return BadVectors(f"{self.model.embedder_id} sent a malformed answer")
        if not isinstance(error, APIStatusError):
            return None
        faults = (_FAULTS.get(str(said)) for said in (error.code, error.type))
        refusal = Refusal(
            error.status_code, error.response.headers, fault=next(filter(None, faults), None)
        )
        return failure_of(refusal, self.model.embedder_id)


def _in_order(answer: CreateEmbeddingResponse, count: int, embedder: str) -> list[list[float]]:
    """Vectors in the order of the texts; the answer has them in any.

    Raises:
        BadVectors: there is not exactly one for each text.
    """
    by_index = {item.index: item.embedding for item in answer.data}
    complete = len(answer.data) == count and by_index.keys() == set(range(count))
    if not complete or None in by_index.values():
        raise BadVectors(
            f"{embedder} returned {len(answer.data)} vectors for {count} texts,"
            " or did not say which belongs to which"
        )
    return [by_index[position] for position in range(count)]


def _tokens(answer: CreateEmbeddingResponse) -> int | None:
    """What is charged; many servers say nothing, or 0."""
    usage = getattr(answer, "usage", None)
    tokens = getattr(usage, "total_tokens", None) or getattr(usage, "prompt_tokens", None)
    return tokens if isinstance(tokens, int) and tokens > 0 else None
