"""OpenAI's batch API: a file of requests, answered within a day at half the price."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from rag_assets.embedding.batch_api import BatchResult, Standing
from rag_assets.embedding.packing import EmbedItem
from rag_assets.embedding.providers.endpoint import encodable
from rag_assets.embedding.providers.openai import OpenAIEndpoint
from rag_assets.errors import BadVectors

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

_TAG = "rag_assets"
_PATH: Final = "/v1/embeddings"
_TRANSFER_SECONDS = 900.0
_PAGE = 100
_UNDER_WAY = frozenset({"validating", "in_progress", "finalizing", "cancelling"})
_OK = 200


class OpenAIBatches(OpenAIEndpoint):
    """One model's batch API; see batch_api.BatchApi.

    A text is a request of its own, so that one that is refused costs no other its vector.
    """

    most_bytes = 1024 * 1024 * 1024
    """50,000 vectors of 3,072 dimensions as base64; they are read line by line."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self.model.dimensions

    async def submit(self, items: Sequence[EmbedItem], tag: str) -> str:
        """Upload texts, and have them embedded; see BatchApi.submit."""
        content = b"".join(self._lines_of(items))

        async def hand_over(sdk: AsyncOpenAI) -> str:
            file = await sdk.files.create(file=("texts.jsonl", content), purpose="batch")
            batch = await sdk.batches.create(
                input_file_id=file.id,
                endpoint=_PATH,
                completion_window="24h",
                metadata={_TAG: tag},
            )
            return batch.id

        return await self.exchange(hand_over, seconds=_TRANSFER_SECONDS)

    async def find(self, tag: str, since: datetime) -> str | None:
        """Look through the account's batches, the newest first; see BatchApi.find."""

        async def look(sdk: AsyncOpenAI) -> str | None:
            async for batch in sdk.batches.list(limit=_PAGE):
                if (batch.metadata or {}).get(_TAG) == tag:
                    return batch.id
                if batch.created_at < since.timestamp():
                    return None
            return None

        return await self.exchange(look)

    async def standing(self, batch_id: str) -> Standing:
        """How it stands; see BatchApi.standing."""
        batch = await self._batch(batch_id)
        if batch is None:
            return Standing("failed", "the provider does not know it any more")
        if batch.status in _UNDER_WAY:
            return Standing("under way")
        if batch.output_file_id or batch.status == "completed":
            return Standing("ended")
        return Standing("failed", _code(batch))

    async def results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """Read what came of it, line by line; see BatchApi.results."""
        batch = await self._batch(batch_id)
        for file_id in (batch.output_file_id, batch.error_file_id) if batch else ():
            if file_id:
                async for line in self._lines_in(file_id):
                    yield _result(line, self.model.embedder_id)

    async def _batch(self, batch_id: str) -> Batch | None:
        async def ask(sdk: AsyncOpenAI) -> Batch | None:
            from openai import NotFoundError

            try:
                return await sdk.batches.retrieve(batch_id)
            except NotFoundError:
                return None

        return await self.exchange(ask)

    async def _lines_in(self, file_id: str) -> AsyncIterator[str]:
        async with self._client() as client:
            content = client.sdk.files.with_streaming_response.content(file_id)
            try:
                async with content as response:
                    async for line in response.iter_lines():
                        if line.strip():
                            yield line
            except Exception as error:
                failure = self._named(error)
            else:
                return
        raise failure

    def _lines_of(self, items: Sequence[EmbedItem]) -> Iterator[bytes]:
        options: dict[str, Any] = {"model": self.model.name, "encoding_format": "base64"}
        if self.model.asked_dimensions is not None:
            options["dimensions"] = self.model.asked_dimensions
        prefix = self.model.prefix("document")
        for item in items:
            body = {"input": encodable(prefix + item.text), **options}
            line = {"custom_id": item.key, "method": "POST", "url": _PATH, "body": body}
            yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _code(batch: Batch) -> str:
    """Why a batch came to nothing, in a word of the provider's; its sentences may hold a text."""
    errors = batch.errors.data if batch.errors and batch.errors.data else []
    code = next((error.code for error in errors if error.code), batch.status)
    return code if code.replace("_", "").isalnum() else batch.status


def _result(line: str, embedder_id: str) -> BatchResult:
    """One line of a file of results.

    Raises:
        BadVectors: it is none.
    """
    try:
        answer = json.loads(line)
        key = str(answer["custom_id"])
        response = answer.get("response") or {}
        if answer.get("error") or response.get("status_code") != _OK:
            return BatchResult(key, None)
        body = response["body"]
        [data] = body["data"]
        tokens = int((body.get("usage") or {}).get("total_tokens") or 0)
        return BatchResult(key, _vector(data["embedding"]), tokens)
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error):
        raise BadVectors(f"a batch of {embedder_id} has a line that is malformed") from None


def _vector(embedding: Any) -> npt.ArrayLike:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return np.asarray(embedding, dtype=np.float32)
