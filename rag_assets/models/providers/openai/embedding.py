"""Embeddings of OpenAI, and of servers that implement its API."""

from __future__ import annotations

import json
from binascii import a2b_base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import WrongShape
from rag_assets.models.embedding.endpoint import SdkEndpoint
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.remote import Reply
from rag_assets.models.providers.openai.connection import OpenAIConnection, without_key
from rag_assets.models.transport.sdk_connection import plausible_tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIEndpoint(OpenAIConnection, SdkEndpoint["AsyncOpenAI"]):
    """A model of OpenAI; see SdkEndpoint."""

    encoding: Literal["base64", "float"] = "base64"

    async def _embed(self, sdk: AsyncOpenAI, texts: list[str], purpose: Purpose) -> Reply:
        options: dict[str, Any] = without_key(sdk)
        if self.model.requested_dimensions is not None:
            options["dimensions"] = self.model.requested_dimensions
        answer = await sdk.embeddings.with_raw_response.create(
            model=self.model.name,
            input=texts,
            encoding_format=self.encoding,
            **options,
        )
        # The SDK's own objects and lists of numbers would take twice as long as all else.
        body = json.loads(answer.content)
        return self._reply(
            lambda: _in_order(body["data"], len(texts), self.model.embedder_id), _tokens(body)
        )


class CompatibleEndpoint(OpenAIEndpoint):
    """A model of a server that implements OpenAI's API; see SdkEndpoint."""

    encoding: Literal["base64", "float"] = "float"
    """Every such server returns lists of numbers."""


def _in_order(data: Sequence[Any], count: int, embedder: str) -> list[Any]:
    """Vectors in the order of the texts; the response may have any order.

    Raises:
        WrongShape: there is not exactly one for each text.
    """
    by_index = {item["index"]: item["embedding"] for item in data}
    if len(data) != count or by_index.keys() != set(range(count)):
        raise WrongShape(
            f"{embedder} returned {len(data)} vectors for {count} texts,"
            " or did not assign them to the texts",
            hint="check the embedder's model and base_url",
        )
    return [_unpacked(by_index[position]) for position in range(count)]


def _unpacked(vector: Any) -> npt.NDArray[np.float32] | list[float]:
    """Return a vector as numbers, whether it was sent as such or packed; empty if it is neither."""
    if isinstance(vector, str):
        try:
            return np.frombuffer(a2b_base64(vector, strict_mode=True), dtype="<f4")
        except ValueError:
            return []
    return vector if isinstance(vector, list) else []


def _tokens(body: Mapping[str, Any]) -> int | None:
    """The tokens charged, if the response has them."""
    usage = body.get("usage") or {}
    return plausible_tokens(usage.get("total_tokens") or usage.get("prompt_tokens"))
