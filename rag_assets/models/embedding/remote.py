"""Embedders over the network: properties of models, requests, retries, and batch APIs.

A batch API returns vectors within a day, for half the price of requests.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy.typing as npt

from rag_assets.common.batches import batched
from rag_assets.common.errors import (
    InputRejected,
    MalformedResponse,
    ProviderUnavailable,
    WrongShape,
)
from rag_assets.common.hashing import compute_key
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.common.tokens import count_tokens
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.protocol import PROBE_TEXT, Answer, CallLimits, Embedder, Purpose
from rag_assets.models.embedding.vectors import MAX_BATCH, validate_answer
from rag_assets.models.prices import Price
from rag_assets.models.transport.connection import (
    LoopClients,
    Sdk,
    SdkConnection,
    Server,
    replace_surrogates,
)
from rag_assets.models.transport.retries import (
    DOCUMENT_RETRIES,
    QUERY_RETRIES,
    RetriedCall,
    RetryPolicy,
    Traffic,
)
from rag_assets.models.transport.settings import ConnectionSettings, Credentials

T = TypeVar("T")

_FAILURES_BEFORE_PROBE = 2


@dataclass(frozen=True, slots=True)
class EmbeddingReply:
    """A provider's response to one embedding request."""

    vectors: npt.ArrayLike
    tokens: int | None
    """Tokens that the provider charges for; None if it does not report them."""


_MIN_CALLS_PER_MINUTE = 8
"""Minimum number of calls into which a minute's tokens are divided, so that no call waits for
long."""


class RemoteEmbedder(Embedder):
    """An embedder over the network: an endpoint with limits and retries.

    Safe to use from several tasks, event loops and threads: each loop has its own connections, and
    all share one Traffic. After a transient failure, a call is retried after a random pause between
    zero and a growing maximum ("full jitter"), so that callers that failed together do not retry
    together. If the provider requires a pause, all callers wait for it. docs/providers.md lists how
    each failure is handled.

    Args:
        connect: creates the endpoint for one event loop; no connection is opened before its
            first request.
        traffic: the limits of this tenant at this provider, shared with the tenant's other
            embedders there.
        module: module that requests need; importing it does not count towards a time limit.
    """

    def __init__(
        self,
        connect: Callable[[], SdkEndpoint[Any]],
        *,
        embedder_id: str,
        dimensions: int,
        limits: CallLimits,
        traffic: Traffic,
        count: Callable[[Sequence[str]], list[int]] = count_tokens,
        document_retries: RetryPolicy = DOCUMENT_RETRIES,
        query_retries: RetryPolicy = QUERY_RETRIES,
        module: str | None = None,
    ) -> None:
        self.embedder_id = embedder_id
        self.dimensions = dimensions
        self.limits = replace(limits, concurrency=traffic.concurrency)
        if traffic.tokens_per_minute is not None:
            tokens_per_call = max(1, traffic.tokens_per_minute // _MIN_CALLS_PER_MINUTE)
            self.limits = replace(
                self.limits, tokens=min(tokens_per_call, limits.tokens or tokens_per_call)
            )
        self._traffic = traffic
        self._count = count
        self._retries: Mapping[Purpose, RetryPolicy] = {
            "document": document_retries,
            "query": query_retries,
        }
        self._connections = LoopClients(connect, module)

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
        is_bulk: bool = False,
    ) -> Answer:
        """Return the vectors of these texts, which must not be empty; see Embedder."""
        _require_texts(texts)
        await self._connections.load()
        attempts = _Attempts(self._attempt, texts, purpose)
        call = RetriedCall(
            attempts.send_next if purpose == "document" else attempts.send,
            self._traffic,
            tokens=0 if self._traffic.tokens_per_minute is None else self._count_tokens(texts),
            policy=self._retries[purpose],
            source=self.embedder_id,
            is_bulk=is_bulk,
        )
        answer = await call.answer(deadline)
        return replace(answer, requests=call.attempts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Estimate the number of tokens that the provider charges for each text."""
        return self._count(texts)

    async def close(self) -> None:
        """Close this event loop's connections as soon as no request uses them."""
        await self._connections.close()

    async def _attempt(self, texts: Sequence[str], purpose: Purpose) -> Answer:
        """Make one attempt, and return its validated vectors.

        An error carries the tokens charged, since a response is charged even if it is unusable.
        """
        charged: int | None = None
        started = time.monotonic()
        try:
            async with self._connections.use() as endpoint:
                reply = await endpoint.request(texts, purpose)
            charged = reply.tokens
            vectors = validate_answer(reply.vectors, len(texts), self)
        except MalformedResponse as error:
            error.tokens = error.tokens or charged or self._count_tokens(texts)
            raise
        tokens = self._count_tokens(texts) if charged is None else charged
        return Answer(vectors, tokens, seconds=time.monotonic() - started)

    def _count_tokens(self, texts: Sequence[str]) -> int:
        return sum(self._count(texts))


class _Attempts:
    """The attempts of one call, which find out whether its texts cause the failures.

    A single text may cause a server error. After two such errors a harmless text is sent instead,
    until the server accepts it or the attempts are used up. So an outage of any length costs only
    two batches. If the call has a single text, that text is sent again before it is rejected.
    """

    def __init__(
        self,
        attempt: Callable[[Sequence[str], Purpose], Awaitable[Answer]],
        texts: Sequence[str],
        purpose: Purpose,
    ) -> None:
        self._attempt = attempt
        self._texts = texts
        self._purpose = purpose
        self._failures = 0
        self._reason = ""
        self._is_verified = len(texts) > 1

    async def send(self) -> Answer:
        """Send the texts once, and return their vectors."""
        return await self._attempt(self._texts, self._purpose)

    async def send_next(self) -> Answer:
        """Send the texts, or a harmless text after two failures that the texts may have caused.

        Reject the texts if the server fails for them and accepts the harmless text.
        """
        if self._failures < _FAILURES_BEFORE_PROBE:
            return await self._send_and_count_failure()
        answer = await self._attempt([PROBE_TEXT], self._purpose)
        if not self._is_verified:
            self._is_verified = True
            return await self._send_and_count_failure()
        error = InputRejected(f"{self._reason} for this text, but not for others")
        error.tokens, error.is_compared = answer.tokens, True
        raise error

    async def _send_and_count_failure(self) -> Answer:
        try:
            return await self.send()
        except ProviderUnavailable as error:
            self._failures += error.may_be_input
            self._reason = error.message
            raise


def _require_texts(texts: Sequence[str]) -> None:
    for position, text in enumerate(texts, start=1):
        if not text.strip():
            error = InputRejected(f"text {position} of {len(texts)} is empty")
            error.requests = 0
            raise error


@dataclass(frozen=True, slots=True)
class KnownModel:
    """The properties of a model, the same for all tenants."""

    dimensions: int = 0
    """Default number of dimensions of a vector."""
    choices: tuple[int, ...] = ()
    """The numbers of dimensions that may be chosen, if only some may be."""
    shortens: bool = True
    """Whether a request may set the number of dimensions."""
    native: int | None = None
    """Number of dimensions of the vectors that the model returns; they are padded with zeros to the
    chosen number. None if it returns vectors with the chosen number."""
    input_tokens: int = 8192
    request_tokens: int | None = None
    """Maximum tokens of a request; None for no limit."""
    request_texts: int = MAX_BATCH
    task_types: bool = False
    """Whether a request states the use of its texts."""
    document_prefix: str = ""
    query_prefix: str = ""
    price: Price | None = None
    """Price at the provider's own server; None if unknown."""

    @property
    def possible_dimensions(self) -> tuple[int, ...]:
        """Return the numbers of dimensions to choose from; empty: any number up to the default."""
        return self.choices or (() if self.shortens else (self.dimensions,))

    def find_dimensions_problem(self, dimensions: int) -> str | None:
        """Return why the model cannot return vectors of this length; None if it can."""
        possible = self.possible_dimensions
        if possible and dimensions not in possible:
            listed = ", ".join(map(str, possible))
            return f"the model has vectors of {listed} dimensions, not {dimensions}"
        if not possible and dimensions > self.dimensions:
            max_dimensions = self.dimensions
            return f"the model's vectors have {max_dimensions} dimensions at most, not {dimensions}"
        return None


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model with a tenant's settings; no property needs a request to the provider."""

    provider: str
    name: str
    dimensions: int
    requested_dimensions: int | None
    """Number of dimensions sent with a request; None if requests cannot set it."""
    native: int
    """Number of dimensions of the returned vectors, which are padded with zeros to `dimensions`."""
    task_types: bool
    base_url: str | None
    """Address of a server other than the provider's own."""
    document_prefix: str
    query_prefix: str
    limits: CallLimits
    key_optional: bool
    """Whether the server may accept requests without a key."""
    settings: ConnectionSettings = field(default_factory=ConnectionSettings)

    @property
    def embedder_id(self) -> str:
        """Return PROVIDER/MODEL@DIMENSIONS, and a digest of all else that affects a vector."""
        plain = f"{self.provider}/{self.name}@{self.dimensions}"
        recipe = {
            name: value
            for name, value in (
                ("base_url", self.base_url),
                ("document_prefix", self.document_prefix),
                ("query_prefix", self.query_prefix),
                ("native", None if self.native == self.dimensions else self.native),
                ("task_types", self.task_types),
                ("settings", self.settings.list_vector_settings()),
            )
            if value
        }
        return f"{plain}+{compute_key('remote_embedder', recipe)[:12]}" if recipe else plain

    def get_prefix(self, purpose: Purpose) -> str:
        """Return the prefix for texts with this purpose."""
        return self.query_prefix if purpose == "query" else self.document_prefix

    def get_dimension_option(self, name: str) -> dict[str, Any]:
        """Return the request option that sets the number of dimensions; empty if none does."""
        return {} if self.requested_dimensions is None else {name: self.requested_dimensions}

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Estimate the tokens of documents by OpenAI's encoding, which is close to the others."""
        return count_tokens([self.document_prefix + text for text in texts])


class SdkEndpoint(SdkConnection[Sdk]):
    """A model at a provider, through its SDK; sends single requests without limits and retries."""

    def __init__(
        self, model: RemoteModel, credentials: Credentials, allowed: PrivateEndpoints
    ) -> None:
        server = Server(
            model.embedder_id, model.base_url, model.key_optional, settings=model.settings
        )
        super().__init__(server, credentials, allowed, model.name)
        self.model = model

    async def request(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:
        """Send one request for the vectors of these texts; see SdkConnection.exchange.

        Raises:
            InputRejected: one of these texts can never be embedded.
            MalformedResponse: the response does not have one vector for each text, or is
                malformed otherwise; the error has the tokens charged, if the response states them.
        """
        prefix = self.model.get_prefix(purpose)
        prefixed = [replace_surrogates(prefix + text) for text in texts]
        return await self.exchange(lambda sdk: self._embed(sdk, prefixed, purpose))

    @abstractmethod
    async def _embed(self, sdk: Sdk, texts: list[str], purpose: Purpose) -> EmbeddingReply:
        """Send one request; raise the SDK's errors, or ValueError for a malformed response."""

    def _require_count(self, vectors: Sequence[T] | None, count: int) -> Sequence[T]:
        """Return the vectors, after checking that there is one for each text."""
        if vectors is None or len(vectors) != count:
            raise WrongShape(
                f"{self.model.embedder_id} returned {len(vectors or ())} vectors for {count} texts",
                hint="check the embedder's model, batch_size and base_url",
            )
        return vectors

    def _build_reply(
        self, vectors: Callable[[], npt.ArrayLike], tokens: int | None
    ) -> EmbeddingReply:
        """Unpack the vectors, and return them as a reply; an error has the tokens charged."""
        try:
            return EmbeddingReply(vectors(), tokens)
        except Exception as error:
            failure = self._classify_error(error)
        failure.tokens = tokens or 0
        # Raise it outside the except block, so that it has no context, as in exchange.
        raise failure


BATCH_WINDOW = timedelta(hours=24)
"""Time after which a provider has ended a batch, or lets it expire."""

ABANDONED_AFTER = 2 * BATCH_WINDOW
"""Age at which a batch that has not ended counts as failed."""

MAX_BATCH_TEXTS = 50_000
MAX_BATCH_BYTES = 100 * 1024 * 1024
"""Maximum bytes of a batch's texts: half of a provider's file limit, since the file contains more
data."""

State: TypeAlias = Literal["under way", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The status of a batch at its provider."""

    state: State
    """An "ended" batch has results, possibly only for some texts; a "failed" one has none, and
    nothing is charged."""
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of one text of a batch."""

    key: str
    vector: npt.ArrayLike | None
    """The vector as the provider returned it, not validated; None if it returned none."""
    tokens: int = 0


class BatchApi(Protocol):
    """A model's batch API at a provider; it raises the errors of SdkConnection.exchange."""

    dimensions: int
    """Length of every vector."""

    async def submit(self, items: Sequence[EmbedItem], tag: str) -> str:
        """Submit texts as one batch, and return the batch's id; `find` finds it by its tag."""
        ...

    async def find(self, tag: str, since: datetime) -> str | None:
        """Return the id of the batch with this tag, submitted after `since`; None if missing."""
        ...

    async def status(self, batch_id: str) -> BatchStatus:
        """Return the status of a batch; it is "failed" if the provider does not know the batch."""
        ...

    def results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """Yield the results of a batch's texts, in any order; some texts may have no result.

        Raise BatchLost if the provider does not know the batch, or has deleted its results.
        """
        ...

    async def close(self) -> None:
        """Close the connections; must be called in the event loop of the other calls."""
        ...


def split_into_batches(items: Iterable[EmbedItem]) -> Iterator[Sequence[EmbedItem]]:
    """Split texts into batches, in order, each within MAX_BATCH_TEXTS and MAX_BATCH_BYTES."""

    def count_bytes(item: EmbedItem) -> int:
        return len(item.text.encode("utf-8", "replace"))

    return batched(items, MAX_BATCH_TEXTS, weight=count_bytes, max_weight=MAX_BATCH_BYTES)


async def run_and_close(api: BatchApi, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work on a batch API, and close the API's connections afterwards."""
    try:
        return await work
    finally:
        await api.close()
