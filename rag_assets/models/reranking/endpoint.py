"""Reranking by a server: Cohere, Jina, Voyage, vLLM, text-embeddings-inference, and their like.

They share one request and nearly one answer:

    POST {"model": …, "query": …, "documents": […]}
    {"results": [{"index": 1, "relevance_score": 0.98}, …]}

Voyage says `data` for `results`; text-embeddings-inference takes `texts`, and answers with the bare
list and `score`. How many come back is not limited in the request: by default all do, everywhere,
and the name of the limit (`top_n`, `top_k`) is what differs.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from rag_assets.common.errors import (
    BadVectors,
    EmbedderRefused,
    EmbeddingError,
    InputRejected,
    RerankFailed,
    RerankFault,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.reranking.config import RerankConfig
from rag_assets.models.transport.credentials import Credentials
from rag_assets.models.transport.failures import Refusal, failure_of
from rag_assets.models.transport.loop_clients import LoopClients
from rag_assets.models.transport.sdk_connection import SdkConnection, Server, encodable

if TYPE_CHECKING:
    import httpx2

_MOST_BYTES = 8 * 1024 * 1024
"""Of an answer: vLLM sends the passages back."""


class RerankEndpoint:
    """A reranker behind a network, asked once for all passages of a question.

    Its server is reached as an embedder's is: public, encrypted, at the addresses that were judged,
    without redirects, unless the operator lets it through. Nothing that it says gets into an error.

    Args:
        config: with a url.
        credentials: gives the tenant's key, where it has one.
        allowed: servers beyond the public internet that the operator lets through.
    """

    def __init__(
        self, config: RerankConfig, credentials: Credentials, allowed: PrivateEndpoints
    ) -> None:
        self._config = config
        self._id = f"{urlsplit(config.url or '').hostname}/{config.model or 'default'}"
        server = Server(self._id, config.url, key_optional=config.api_key is None)
        self._connections = LoopClients(partial(_Connection, server, credentials, allowed))

    @property
    def reranker_id(self) -> str:
        """The server's host and the model's name."""
        return self._id

    async def scores(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> list[float]:
        """One score for each passage; see Reranker.scores.

        Raises:
            RerankFailed: see there.
        """
        try:
            async with asyncio.timeout(seconds), self._connections.use() as connection:
                said = await connection.post(self._body(question, passages))
            return scores_of(said, len(passages))
        except TimeoutError:
            failure = RerankFailed(f"{self._id} did not answer in time", "late")
        except EmbeddingError as error:
            failure = RerankFailed(error.message, _fault(error), hint=error.hint)
        except ValueError as error:
            failure = RerankFailed(f"{self._id} sent a malformed answer: {error}", "malformed")
        # Raised out here, it carries no context: that quotes the server's answer.
        raise failure

    async def close(self) -> None:
        """Let go of this loop's connections; see Reranker.close."""
        await self._connections.close()

    def _body(self, question: str, passages: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "query": encodable(question),
            self._config.takes or "documents": [encodable(passage) for passage in passages],
        }
        return body if self._config.model is None else {"model": self._config.model, **body}


def scores_of(said: object, count: int) -> list[float]:
    """The scores in an answer, in the order of the passages.

    Args:
        said: an answer's JSON.
        count: how many passages there were.

    Raises:
        ValueError: it does not hold one finite score for each; does not quote it.
    """
    if isinstance(said, Mapping):
        said = said.get("results", said.get("data"))
    if not isinstance(said, list) or len(said) != count:
        raise ValueError(f"not a list of {count} results")
    scores: dict[int, float] = {}
    for result in said:
        if not isinstance(result, Mapping):
            raise ValueError("a result is no object")  # noqa: TRY004 - what is wrong is a value
        index, score = result.get("index"), result.get("relevance_score", result.get("score"))
        if type(index) is not int or not 0 <= index < count or index in scores:
            raise ValueError("an index is missing, out of range, or there twice")
        if type(score) not in {int, float} or not math.isfinite(score):
            raise ValueError("a score is no finite number")
        scores[index] = float(score)
    return [scores[index] for index in range(count)]


def _fault(error: EmbeddingError) -> RerankFault:
    match error:
        case EmbedderRefused() | InputRejected():
            return "refused"
        case BadVectors():
            return "malformed"
    return "unavailable"


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"HTTP {refusal.status}")
        self.refusal = refusal


class _Connection(SdkConnection["httpx2.AsyncClient"]):
    """The way to the endpoint; there is no SDK, the HTTP client itself is asked."""

    own_server = ""
    most_bytes = _MOST_BYTES

    async def post(self, body: Mapping[str, Any]) -> object:
        """Send a request; returns the answer's JSON.

        Raises:
            EmbeddingError: see SdkConnection.exchange.
        """
        return await self.exchange(lambda http: self._post(http, body))

    async def _post(self, http: httpx2.AsyncClient, body: Mapping[str, Any]) -> object:
        response = await http.post(self.server.base_url or "", json=body)
        if response.status_code != HTTPStatus.OK:
            raise _Refused(Refusal(response.status_code, response.headers))
        try:
            answer: object = response.json()
        except RecursionError:
            raise ValueError("nested too deep") from None
        return answer

    def _open(self, key: SecretStr | None, http: httpx2.AsyncClient) -> httpx2.AsyncClient:
        if key is not None:
            http.headers["authorization"] = f"Bearer {key.get_secret_value()}"
        return http

    def _refusal(self, error: Exception) -> EmbeddingError | None:
        return failure_of(error.refusal, self.server.id) if isinstance(error, _Refused) else None
