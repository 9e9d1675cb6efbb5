"""Reranking by a server such as Cohere, Jina, Voyage, vLLM or text-embeddings-inference.

They share one request format, and nearly share one response format:

    POST {"model": …, "query": …, "documents": […]}
    {"results": [{"index": 1, "relevance_score": 0.98}, …]}

Voyage has `data` for `results`; text-embeddings-inference takes `texts`, and returns the bare list
with `score`. A request sets no limit of results: by default every server returns all of them, and
the name of the limit (`top_n`, `top_k`) differs.
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
    InputRejected,
    MalformedResponse,
    ProviderError,
    ProviderRefused,
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
"""Limit of a response: vLLM returns the passages too."""

_MODULE = "rag_assets.models.transport.http_client"


class RerankEndpoint:
    """A reranker over the network, with one request for all passages of a question.

    Connections follow the rules of all providers: public, encrypted, only to validated addresses,
    without redirects, unless the operator allows the server. No error quotes its response.

    Args:
        config: with a url.
        credentials: returns the tenant's key, if it has one.
        allowed: private endpoints that the operator allows.
    """

    def __init__(
        self, config: RerankConfig, credentials: Credentials, allowed: PrivateEndpoints
    ) -> None:
        self._config = config
        self._id = f"{urlsplit(config.url or '').hostname}/{config.model or 'default'}"
        server = Server(self._id, config.url, key_optional=config.api_key is None)
        self._connections = LoopClients(partial(_Connection, server, credentials, allowed), _MODULE)

    @property
    def reranker_id(self) -> str:
        """The server's host and the model's name."""
        return self._id

    async def scores(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> list[float]:
        """One score for each passage; see Reranker.scores.

        Raises:
            RerankFailed: see Reranker.scores.
        """
        await self._connections.load()
        try:
            async with asyncio.timeout(seconds), self._connections.use() as connection:
                answer = await connection.post(self._body(question, passages))
            return scores_of(answer, len(passages))
        except TimeoutError:
            failure = RerankFailed(f"{self._id} did not answer in time", "late")
        except ProviderError as error:
            failure = RerankFailed(error.message, _fault(error), hint=error.hint)
        except ValueError as error:
            failure = RerankFailed(f"{self._id} sent a malformed response: {error}", "malformed")
        # Raised outside of the except block: the context would quote the server's response.
        raise failure

    async def close(self) -> None:
        """Close this loop's connections; see Reranker.close."""
        await self._connections.close()

    def _body(self, question: str, passages: Sequence[str]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "query": encodable(question),
            self._config.takes or "documents": [encodable(passage) for passage in passages],
        }
        return body if self._config.model is None else {"model": self._config.model, **body}


def scores_of(answer: object, count: int) -> list[float]:
    """The scores in a response, in the order of the passages.

    Args:
        answer: a response's JSON.
        count: number of passages.

    Raises:
        ValueError: it does not have one finite score for each; does not quote it.
    """
    if isinstance(answer, Mapping):
        answer = answer.get("results", answer.get("data"))
    if not isinstance(answer, list) or len(answer) != count:
        raise ValueError(f"not a list of {count} results")
    scores: dict[int, float] = {}
    for result in answer:
        if not isinstance(result, Mapping):
            raise ValueError("a result is not an object")  # noqa: TRY004 - a server's value
        index, score = result.get("index"), result.get("relevance_score", result.get("score"))
        if type(index) is not int or not 0 <= index < count or index in scores:
            raise ValueError("an index is missing, out of range, or duplicate")
        if type(score) not in {int, float} or not math.isfinite(score):
            raise ValueError("a score is not a finite number")
        scores[index] = float(score)
    return [scores[index] for index in range(count)]


def _fault(error: ProviderError) -> RerankFault:
    match error:
        case ProviderRefused() | InputRejected():
            return "refused"
        case MalformedResponse():
            return "malformed"
    return "unavailable"


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"HTTP {refusal.status}")
        self.refusal = refusal


class _Connection(SdkConnection["httpx2.AsyncClient"]):
    """A connection to the endpoint, through the HTTP client: there is no SDK."""

    own_server = ""
    most_bytes = _MOST_BYTES

    async def post(self, body: Mapping[str, Any]) -> object:
        """Send a request; returns the response's JSON.

        Raises:
            ProviderError: see SdkConnection.exchange.
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

    def _refusal(self, error: Exception) -> ProviderError | None:
        return failure_of(error.refusal, self.server.id) if isinstance(error, _Refused) else None
