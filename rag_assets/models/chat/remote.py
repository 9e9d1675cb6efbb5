"""A chat model over the network, with a time limit and retries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from rag_assets.common.errors import ChatTimeout, ProviderError, RagAssetsError
from rag_assets.common.tokens import count_text
from rag_assets.models.chat.failures import failure_of_chat
from rag_assets.models.chat.protocol import Completion, Prompt
from rag_assets.models.transport.loop_clients import LoopClients
from rag_assets.models.transport.retries import RetriedCall, RetryPolicy
from rag_assets.models.transport.sdk_connection import encodable
from rag_assets.models.transport.traffic import Traffic

MOST_ANSWER_BYTES = 4 * 1024 * 1024
"""Maximum bytes of an answer: of a single response as JSON, or of a streamed response as text."""
MOST_STREAM_BYTES = 64 * 1024 * 1024
"""Maximum bytes of a streamed response as sent: 4 KiB for each token that may be configured."""
CONCURRENCY = 16
"""Maximum concurrent requests of a process to a tenant's model; further requests wait."""

_TURN_SECONDS = 5.0
_TRIES = 3
_LEAST_SECONDS = 2.0
# The inner time limit must not end first, since that would look like a different failure.
_SLACK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a request.

    Attributes:
        text: the text as the model wrote it.
        input_tokens, output_tokens: tokens that the provider charges for; None if it does not
            report them.
        cut: see Completion.
    """

    text: str
    input_tokens: int | None
    output_tokens: int | None
    cut: bool


class ChatEndpoint(Protocol):
    """A chat model at a provider, for one event loop; it does not retry."""

    async def request(self, prompt: Prompt, seconds: float) -> Reply:
        """Send a request without retries.

        Raises:
            ProviderError: the request failed; see SdkConnection.exchange.
        """
        ...

    async def close(self) -> None:
        """Close connections; must be called in the event loop in which request was called."""
        ...


class RemoteChat:
    """A chat model over the network; see ChatModel.

    After a transient failure, a request is retried up to twice, after a pause or after the time
    that the provider requires; all attempts must fit into the time limit of the answer. Safe to use
    from several event loops.

    Args:
        connect: creates the endpoint for one event loop.
        id_: provider and model, for messages.
        first_pause: longest pause before the second attempt, in seconds.
        module: module that requests need; importing it does not count towards a time limit.
    """

    def __init__(
        self,
        connect: Callable[[], ChatEndpoint],
        id_: str,
        *,
        first_pause: float = 0.5,
        module: str | None = None,
    ) -> None:
        self._connections = LoopClients(connect, module)
        self._traffic = Traffic(concurrency=CONCURRENCY)
        self._id = id_
        self._first_pause = first_pause

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        """See ChatModel."""
        await self._connections.load()
        request = Prompt(encodable(instructions), encodable(prompt), max_tokens)
        within = seconds + _SLACK_SECONDS
        call = RetriedCall(
            lambda: self._attempt(request, within),
            self._traffic,
            tokens=0,
            policy=RetryPolicy(
                _TURN_SECONDS, _TRIES, within, _LEAST_SECONDS, first_pause=self._first_pause
            ),
            source=self._id,
        )
        failure: RagAssetsError
        try:
            async with asyncio.timeout(seconds):
                completion = await call.answer(None)
            return replace(completion, requests=call.attempts)
        except TimeoutError:
            failure = ChatTimeout(f"{self._id} did not answer within {seconds:g} seconds")
            failure.requests = call.attempts
        except ProviderError as error:
            failure = failure_of_chat(error, self._id)
        # Raise it outside the except block, so that its context is not the provider's error.
        raise failure

    async def close(self) -> None:
        """Close this event loop's connections after the last request that uses them."""
        await self._connections.close()

    async def _attempt(self, prompt: Prompt, seconds: float) -> Completion:
        async with self._connections.use() as endpoint:
            reply = await endpoint.request(prompt, seconds)
        read, written = reply.input_tokens, reply.output_tokens
        return Completion(
            reply.text,
            tokens_of(prompt.instructions, prompt.text) if read is None else read,
            count_text(reply.text) if written is None else written,
            cut=reply.cut,
        )


def tokens_of(instructions: str, prompt: str) -> int:
    """Estimate the input tokens of a request."""
    return count_text(instructions) + count_text(prompt)
