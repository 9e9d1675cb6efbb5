"""Reranking over the network: through a provider's SDK, or by any rerank endpoint's address.

Servers such as Cohere, Jina, Voyage, vLLM and text-embeddings-inference share one request format,
and almost share one response format:

    POST {"model": …, "query": …, "documents": […]}
    {"results": [{"index": 1, "relevance_score": 0.98}, …]}

Voyage has `data` in place of `results`. text-embeddings-inference takes `texts`, and returns only
the list, with `score`. Requests do not limit the number of results: by default every server returns
all results, and the name of the limit (`top_n`, `top_k`) differs.
"""

from __future__ import annotations

import asyncio
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import SecretStr

from rag_assets.common.errors import (
    InputRejected,
    MalformedResponse,
    ProviderError,
    ProviderRefused,
    RagAssetsError,
    RerankFailed,
    RerankFault,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.transport.connection import (
    LoopClients,
    Sdk,
    SdkConnection,
    Server,
    replace_surrogates,
)
from rag_assets.models.transport.failures import HttpRefusal
from rag_assets.models.transport.settings import Credentials

if TYPE_CHECKING:
    import httpx2


MODELS: Final = Path(__file__).parent / "models"
MS_MARCO: Final = "ms-marco-minilm-l12"
"""The name of the shipped cross-encoder, and of its folder."""


class Reranker(Protocol):
    """A slow and accurate model that scores a passage as an answer to a question."""

    reranker_id: str
    """The model's name, as shown to people and in logs."""

    async def score_passages(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> Sequence[float | None]:
        """Return one finite score for each passage, in the order of the passages; higher is better.

        If the time ends early, the first passages have a score, and the other entries are None.
        Scores have the model's own scale: they order the passages of one question, but cannot be
        compared across questions.
        """
        ...

    async def close(self) -> None:
        """Close this event loop's connections; a later call opens them again."""
        ...


FAILURES = 3
"""Number of consecutive failures after which the circuit opens."""

OPEN_SECONDS = 30.0
"""Seconds for which the circuit stays open; afterwards one search tries the reranker."""


class CircuitBreakerReranker:
    """A reranker that is not called for a while after several failures in a row."""

    def __init__(self, reranker: Reranker, clock: Callable[[], float] = time.monotonic) -> None:
        self._reranker = reranker
        self.reranker_id = reranker.reranker_id
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0

    async def score_passages(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> Sequence[float | None]:
        """Return the passages' scores; raise RerankFailed while the circuit is open."""
        self._require_closed_circuit()
        try:
            scores = await self._reranker.score_passages(question, passages, seconds=seconds)
        except RerankFailed:
            self._count_failure()
            raise
        except RagAssetsError as error:
            self._count_failure()
            raise RerankFailed(error.message, "not usable", hint=error.hint) from error
        self._failures = 0
        return scores

    async def close(self) -> None:
        """Close the wrapped reranker's connections; see Reranker.close."""
        await self._reranker.close()

    def _require_closed_circuit(self) -> None:
        if self._failures < FAILURES:
            return
        now = self._clock()
        if now < self._open_until:
            raise RerankFailed(f"{self.reranker_id} failed {self._failures} times", "resting")
        # One search tries the reranker; until that succeeds, other searches do not wait for it.
        self._open_until = now + OPEN_SECONDS

    def _count_failure(self) -> None:
        self._failures += 1
        if self._failures >= FAILURES:
            self._open_until = self._clock() + OPEN_SECONDS


_MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""Maximum bytes of a response, since vLLM returns the passages too."""

HTTP_MODULE: Final = "rag_assets.models.transport.http_client"


class RerankEndpoint:
    """A reranker over the network, with one request for all passages of a question.

    Connections follow the rules for all providers: unless the operator allows the server, they are
    encrypted, go only to public, validated addresses, and do not follow redirects. No error quotes
    a response.
    """

    def __init__(
        self, connect: Callable[[], SdkReranker[Any]], id_: str, module: str = HTTP_MODULE
    ) -> None:
        self.reranker_id = id_  # PROVIDER/MODEL, or HOST/MODEL for an endpoint at a url
        self._connections = LoopClients(connect, module)

    async def score_passages(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> list[float]:
        """Return one score for each passage; see Reranker.score_passages."""
        await self._connections.load()
        texts = [replace_surrogates(passage) for passage in passages]
        try:
            async with asyncio.timeout(seconds), self._connections.use() as connection:
                answer = await connection.rank(replace_surrogates(question), texts)
            return extract_scores(answer, len(passages))
        except TimeoutError:
            failure = RerankFailed(f"{self.reranker_id} did not answer in time", "late")
        except ProviderError as error:
            failure = RerankFailed(error.message, _classify_fault(error), hint=error.hint)
        except ValueError as error:
            failure = RerankFailed(
                f"{self.reranker_id} sent a malformed response: {error}", "malformed"
            )
        # Raise it outside the except block, since the context would quote the server's response.
        raise failure

    async def close(self) -> None:
        """Close this event loop's connections; see Reranker.close."""
        await self._connections.close()


def extract_scores(answer: object, count: int) -> list[float]:
    """Return a response's scores in the order of the passages; each must be a finite number."""
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


def _classify_fault(error: ProviderError) -> RerankFault:
    match error:
        case ProviderRefused() | InputRejected():
            return "refused"
        case MalformedResponse():
            return "malformed"
    return "unavailable"


class SdkReranker(SdkConnection[Sdk]):
    """A reranker at one server, for one event loop; it does not retry."""

    most_bytes = _MAX_RESPONSE_BYTES

    async def rank(self, question: str, passages: Sequence[str]) -> object:
        """Request the scores of all passages; return the response's JSON or its list of results."""
        return await self.exchange(lambda sdk: self._rank(sdk, question, passages))

    @abstractmethod
    async def _rank(self, sdk: Sdk, question: str, passages: Sequence[str]) -> object:
        """Send one request; raise the SDK's errors, or ValueError for a malformed response."""


class UrlReranker(SdkReranker["httpx2.AsyncClient"]):
    """A reranker at any address, which is the server's base_url; used without an SDK."""

    own_server = ""

    def __init__(
        self,
        server: Server,
        credentials: Credentials,
        allowed: PrivateEndpoints,
        model: str,
        passages_field: str = "documents",
    ) -> None:
        super().__init__(server, credentials, allowed, model)
        self._passages_field = passages_field

    async def _rank(
        self, sdk: httpx2.AsyncClient, question: str, passages: Sequence[str]
    ) -> object:
        body: dict[str, Any] = {"model": self._model} if self._model else {}
        body |= {"query": question, self._passages_field: passages}
        response = await sdk.post(self.get_address(), json=body)
        if response.status_code != HTTPStatus.OK:
            raise HttpRefusal(response.status_code, response.headers)
        try:
            answer: object = response.json()
        except RecursionError:
            raise ValueError("nested too deep") from None
        return answer

    def _open_sdk(self, key: SecretStr | None, http: httpx2.AsyncClient) -> httpx2.AsyncClient:
        if key is not None:
            http.headers["authorization"] = f"Bearer {key.get_secret_value()}"
        return http
