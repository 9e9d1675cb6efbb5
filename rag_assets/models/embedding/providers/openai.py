"""OpenAI's embeddings, and those of every server that speaks its language."""

from __future__ import annotations

import json
from binascii import a2b_base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pydantic import SecretStr

from rag_assets.common.errors import BadVectors, EmbeddingError, Fault, WrongShape
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.providers.connection import (
    REQUEST_SECONDS,
    SdkConnection,
    plausible_tokens,
)
from rag_assets.models.embedding.providers.endpoint import SdkEndpoint
from rag_assets.models.embedding.providers.failures import Refusal, failure_of
from rag_assets.models.embedding.remote import Reply

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

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


class OpenAIConnection(SdkConnection["AsyncOpenAI"]):
    """The way to OpenAI, or to a compatible server; see SdkConnection."""

    own_server = "https://api.openai.com/v1"

    def _open(self, key: SecretStr | None, http: httpx2.AsyncClient) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        secret = _NO_KEY if key is None else key.get_secret_value()
        return AsyncOpenAI(
            api_key=secret,
            # Said here as well: else the environment's OPENAI_CUSTOM_HEADERS could replace it.
            default_headers={"Authorization": f"Bearer {secret}"},
            base_url=self.server.base_url or self.own_server,
            http_client=http,
            timeout=REQUEST_SECONDS,
            max_retries=0,
        )

    def _refusal(self, error: Exception) -> EmbeddingError | None:
        from openai import APIResponseValidationError, APIStatusError

        if isinstance(error, APIResponseValidationError):
            return BadVectors(f"{self.server.id} sent a malformed answer")
        if not isinstance(error, APIStatusError):
            return None
        faults = (_FAULTS.get(str(said)) for said in (error.code, error.type))
        refusal = Refusal(
            error.status_code, error.response.headers, fault=next(filter(None, faults), None)
        )
        return failure_of(refusal, self.server.id)


class OpenAIEndpoint(OpenAIConnection, SdkEndpoint["AsyncOpenAI"]):
    """A model of OpenAI's, or of a compatible server; see SdkEndpoint."""

    async def _ask(self, sdk: AsyncOpenAI, texts: list[str], purpose: Purpose) -> Reply:
        options: dict[str, Any] = without_key(sdk)
        if self.model.asked_dimensions is not None:
            options["dimensions"] = self.model.asked_dimensions
        answer = await sdk.embeddings.with_raw_response.create(
            model=self.model.name,
            input=texts,
            # Lists of numbers are what every compatible server knows.
            encoding_format="base64" if self.model.provider == "openai" else "float",
            **options,
        )
        # The SDK's own objects and lists of numbers would take twice the time of all the rest.
        body = json.loads(answer.content)
        return self._reply(
            lambda: _in_order(body["data"], len(texts), self.model.embedder_id), _tokens(body)
        )


def without_key(sdk: AsyncOpenAI) -> dict[str, Any]:
    """What a request is given besides, so that none without a key has the header of one."""
    from openai import Omit

    return {"extra_headers": {"Authorization": Omit()}} if sdk.api_key == _NO_KEY else {}


def _in_order(data: Sequence[Any], count: int, embedder: str) -> list[Any]:
    """Vectors in the order of the texts; the answer has them in any.

    Raises:
        WrongShape: there is not exactly one for each text.
    """
    by_index = {item["index"]: item["embedding"] for item in data}
    if len(data) != count or by_index.keys() != set(range(count)):
        raise WrongShape(
            f"{embedder} returned {len(data)} vectors for {count} texts,"
            " or did not say which belongs to which",
            hint="check the embedder's model and base_url",
        )
    return [_unpacked(by_index[position]) for position in range(count)]


def _unpacked(vector: Any) -> npt.NDArray[np.float32] | list[float]:
    """A vector as numbers, whether it came as such or packed.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(vector, str):
        return np.frombuffer(a2b_base64(vector, strict_mode=True), dtype="<f4")
    if isinstance(vector, list):
        return vector
    raise ValueError("no vector")


def _tokens(body: Mapping[str, Any]) -> int | None:
    """What is charged, where the answer says so."""
    usage = body.get("usage") or {}
    return plausible_tokens(usage.get("total_tokens") or usage.get("prompt_tokens"))
