"""Results of a batch at OpenAI: a file of up to 1 GiB, read line by line."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import BatchLost, MalformedResponse, ProviderError
from rag_assets.models.embedding.batch_api import BatchResult
from rag_assets.models.providers.openai.embedding import OpenAIEndpoint

_READ_SECONDS = 1_800.0
"""Time limit of a whole file: a server may send a byte a minute for ever."""
_LINE_BYTES = 1024 * 1024
"""Limit of a line: many times a vector of 4,096 dimensions as JSON."""
_MOST_TOKENS = 1_000_000
"""Limit of a text's tokens, far more than any model reads."""
_OK = 200


class ResultFiles(OpenAIEndpoint):
    """Result files of an account's batches, which are the only large responses."""

    most_bytes = 1024 * 1024 * 1024
    """Room for 50,000 vectors of 3,072 dimensions as base64."""

    async def read(self, file_id: str) -> AsyncIterator[BatchResult]:
        """The result of each text.

        Raises:
            BatchLost: the provider no longer has the file.
            MalformedResponse: a line is malformed, or too long.
            ProviderError: see SdkConnection.exchange.
        """
        async with self._client() as client:
            try:
                async with client.sdk.files.with_streaming_response.content(file_id) as response:
                    async for line in _lines(response.iter_bytes()):
                        yield _result(line, self.model.embedder_id)
            except Exception as error:
                failure = self._error_of_file(error)
            else:
                return
        raise failure

    def _error_of_file(self, error: Exception) -> ProviderError:
        from openai import NotFoundError

        if isinstance(error, NotFoundError):
            return BatchLost("its results are gone")
        return self._classified(error)


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Split a stream into lines, within a time limit.

    Raises:
        TimeoutError: the stream takes too long.
        MalformedResponse: a line is too long.
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
            raise MalformedResponse(
                f"a batch's results have a line of more than {_LINE_BYTES:,} bytes"
            )
    if line.strip():
        yield bytes(line)


def _result(line: bytes, embedder_id: str) -> BatchResult:
    """Parse one line of a result file.

    Raises:
        MalformedResponse: it is malformed.
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
    except Exception:  # huge numbers, deep nesting: a line can fail in any way
        raise MalformedResponse(
            f"the results of a batch of {embedder_id} have a malformed line"
        ) from None


def _vector(embedding: Any) -> npt.ArrayLike:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return np.asarray(embedding, dtype=np.float32)


def _tokens(body: dict[str, Any]) -> int:
    tokens = int((body.get("usage") or {}).get("total_tokens") or 0)
    if not 0 <= tokens <= _MOST_TOKENS:
        raise ValueError("not a number of tokens")
    return tokens
