"""An embedder behind a network: what its provider is asked, within limits, until it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy.typing as npt

from rag_assets.common.errors import BadVectors, InputRejected
from rag_assets.common.tokens import count_tokens
from rag_assets.models.embedding.protocol import Answer, CallLimits, Purpose
from rag_assets.models.embedding.vectors import checked_vectors
from rag_assets.models.transport.loop_clients import LoopClients
from rag_assets.models.transport.retries import (
    DOCUMENT_RETRIES,
    QUERY_RETRIES,
    RetriedCall,
    RetryPolicy,
)
from rag_assets.models.transport.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request came back with.

    Attributes:
        vectors: one for each text, in the order of the texts; not checked yet.
        tokens: that the provider charges for; None where it does not say.
    """

    vectors: npt.ArrayLike
    tokens: int | None


class Endpoint(Protocol):
    """One model at one provider: a request goes out once, and its failure is given a name.

    It neither waits, nor tries again, nor bounds how many requests are under way; it belongs to
    the event loop it is first used in.
    """

    async def request(self, texts: Sequence[str], purpose: Purpose) -> Reply:
        """Ask for the vectors of these texts, once.

        Raises:
            EmbedderUnavailable: passing: no answer, cut off, too many requests, an error of the
                provider's; retry_after as it says.
            EmbedderRefused: until a person changes something: the key, the model, the quota.
            InputRejected: one of these texts can never be embedded.
            BadVectors: the answer is malformed, or has not one vector for each text; with the
                tokens that it says it is charged for.
        """
        ...

    async def close(self) -> None:
        """Let go of connections, in the loop that request was called in.

        A later request opens them again.
        """
        ...


class RemoteEmbedder:
    """An embedder behind a network: an endpoint within its limits, tried again where that helps.

    Safe to use from several tasks, event loops and threads: each loop has connections of its own,
    all share one Traffic. Passing failures are tried again after a pause that grows and is drawn
    at random from zero on ("full jitter"), so that callers who failed together do not return
    together; where the provider says how long to wait, all wait so long.
    docs/providers.md says what becomes of each failure.

    Args:
        connect: makes the endpoint for one event loop; nothing is opened before its first request.
        embedder_id, dimensions: see Embedder.
        limits: of a call; its concurrency is the traffic's.
        traffic: of this tenant at this provider, shared with its other embedders there.
        count: tokens of each text, as near to the provider's tokenizer as can be.
        patience: with documents.
        prompt: with questions.
    """

    def __init__(
        self,
        connect: Callable[[], Endpoint],
        *,
        embedder_id: str,
        dimensions: int,
        limits: CallLimits,
        traffic: Traffic,
        count: Callable[[Sequence[str]], list[int]] = count_tokens,
        patience: RetryPolicy = DOCUMENT_RETRIES,
        prompt: RetryPolicy = QUERY_RETRIES,
    ) -> None:
        self._embedder_id = embedder_id
        self._dimensions = dimensions
        self._limits = replace(limits, concurrency=traffic.concurrency)
        if traffic.tokens_per_minute is not None:
            most = min(traffic.tokens_per_minute, limits.tokens or traffic.tokens_per_minute)
            self._limits = replace(self._limits, tokens=most)
        self._traffic = traffic
        self._count = count
        self._patience: Mapping[Purpose, RetryPolicy] = {"document": patience, "query": prompt}
        self._connections = LoopClients(connect)

    @property
    def embedder_id(self) -> str:
        """What the vectors are kept under."""
        return self._embedder_id

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._dimensions

    @property
    def limits(self) -> CallLimits:
        """How much it takes at once; never more tokens than a minute allows."""
        return self._limits

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
    ) -> Answer:
        """Vectors of these texts, asked for until that is no longer worth while; see Embedder.

        Raises:
            InputRejected: also where a text is empty, which no provider takes.
        """
        _require_text(texts)
        call = RetriedCall(
            lambda: self._ask(texts, purpose),
            self._traffic,
            tokens=self._weight(texts),
            patience=self._patience[purpose],
            source=self._embedder_id,
        )
        answer = await call.answer(deadline)
        return replace(answer, requests=call.attempts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens the provider will charge for each text, as near as can be told."""
        return self._count(texts)

    async def close(self) -> None:
        """Let go of this loop's connections, once no request is under way on them."""
        await self._connections.close()

    async def _ask(self, texts: Sequence[str], purpose: Purpose) -> Answer:
        """One attempt, its answer checked; it is charged for even where it cannot be used."""
        said: int | None = None
        try:
            async with self._connections.use() as endpoint:
                reply = await endpoint.request(texts, purpose)
            said = reply.tokens
            vectors = checked_vectors(
                reply.vectors,
                count=len(texts),
                dimensions=self._dimensions,
                source=self._embedder_id,
            )
        except BadVectors as error:
            error.tokens = error.tokens or said or self._tokens_of(texts)
            raise
        return Answer(vectors, self._tokens_of(texts) if said is None else said)

    def _weight(self, texts: Sequence[str]) -> int:
        """What a call counts for in the traffic; counted only where that is limited."""
        return 0 if self._traffic.tokens_per_minute is None else self._tokens_of(texts)

    def _tokens_of(self, texts: Sequence[str]) -> int:
        return sum(self._count(texts))


def _require_text(texts: Sequence[str]) -> None:
    for position, text in enumerate(texts, start=1):
        if not text.strip():
            error = InputRejected(f"text {position} of {len(texts)} is empty")
            error.requests = 0
            raise error
