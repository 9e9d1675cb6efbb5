"""What came of a batch at OpenAI: a file of up to 1 GiB, read line by line."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import BadVectors, BatchLost, EmbeddingError
from rag_assets.models.embedding.batch_api import BatchResult
from rag_assets.models.providers.openai.embedding import OpenAIEndpoint

_READ_SECONDS = 1_800.0
"""For a whole file: a server may send a byte a minute for ever."""
_LINE_BYTES = 1024 * 1024
"""Many times what a vector of 4,096 dimensions takes as JSON."""
_MOST_TOKENS = 1_000_000
"""Of a text, and far more than any model reads."""
_OK = 200


class ResultFiles(OpenAIEndpoint):
    """The files that an account's batches have ended in: the one kind of answer that is large."""

    most_bytes = 1024 * 1024 * 1024
    """50,000 vectors of 3,072 dimensions as base64."""

    async def read(self, file_id: str) -> AsyncIterator[BatchResult]:
        """What came of each text.

        Raises:
            BatchLost: the provider has no such file.
            BadVectors: a line is none, or too long.
            EmbeddingError: as SdkConnection.exchange does.
        """
        async with self._client() as client:
            try:
                async with client.sdk.files.with_streaming_response.content(file_id) as response:
                    async for line in _lines(response.iter_bytes()):
                        yield _result(line, self.model.embedder_id)
            except Exception as error:
                failure = self._named_of_file(error)
            else:
                return
        raise failure

    def _named_of_file(self, error: Exception) -> EmbeddingError:
        from openai import NotFoundError

        if isinstance(error, NotFoundError):
            return BatchLost("its results are gone")
        return self._named(error)


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Cut into lines what comes in any parts, in a bounded time.

    Raises:
        TimeoutError: it takes too long.
        BadVectors: a line is too long.
    """
    until = time.monotonic() + _READ_SECONDS
    line = bytearray()
    while True:
        async with asyncio.timeout(until - time.monotonic()):
            part = await anext(parts, None)
        if part is None:
            break
        *ended, rest = part.split(b"\n")
        for end in ended:
            line += end
            if line.strip():
                yield bytes(line)
            line.clear()
        line += rest
        if len(line) > _LINE_BYTES:
            raise BadVectors(f"a batch has a line of more than {_LINE_BYTES:,} bytes")
    if line.strip():
        yield bytes(line)


def _result(line: bytes, embedder_id: str) -> BatchResult:
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
        return BatchResult(key, _vector(data["embedding"]), _tokens(body))
    except Exception:  # numbers without end, brackets without end: a line can fail in any way
        raise BadVectors(f"a batch of {embedder_id} has a line that is malformed") from None


def _vector(embedding: Any) -> npt.ArrayLike:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return np.asarray(embedding, dtype=np.float32)


def _tokens(body: dict[str, Any]) -> int:
    tokens = int((body.get("usage") or {}).get("total_tokens") or 0)
    if not 0 <= tokens <= _MOST_TOKENS:
        raise ValueError("no number of tokens")
    return tokens
