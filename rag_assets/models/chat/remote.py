"""A chat model behind a network: asked within a time, again where that helps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from rag_assets.common.errors import ChatTimeout, EmbeddingError, RagAssetsError
from rag_assets.common.tokens import count_text
from rag_assets.models.chat.failures import failure_of_chat
from rag_assets.models.chat.protocol import Completion, Prompt
from rag_assets.models.transport.loop_clients import LoopClients
from rag_assets.models.transport.retries import RetriedCall, RetryPolicy
from rag_assets.models.transport.sdk_connection import encodable
from rag_assets.models.transport.traffic import Traffic

MOST_ANSWER_BYTES = 4 * 1024 * 1024
"""Of an answer as JSON: many times what a model may write."""
CONCURRENCY = 16
"""Answers that one process has a tenant's model write at once; others wait their turn."""

_TURN_SECONDS = 5.0
_TRIES = 3
_LEAST_SECONDS = 2.0
# What is inside must not end first: then it would look like a failure of another kind.
_SLACK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request came back with.

    Attributes:
        text: as the model wrote it.
        input_tokens, output_tokens: that the provider charges for; None where it does not say.
        cut: see Completion.
    """

    text: str
    input_tokens: int | None
    output_tokens: int | None
    cut: bool


class ChatEndpoint(Protocol):
    """One chat model at one provider, for one event loop: asked once, its failure named."""

    async def request(self, prompt: Prompt, seconds: float) -> Reply:
        """Ask for an answer, once.

        Raises:
            EmbeddingError: as connections name what went wrong; see SdkConnection.exchange.
        """
        ...

    async def close(self) -> None:
        """Let go of connections, in the loop that request was called in."""
        ...


class RemoteChat:
    """A chat model behind a network; see ChatModel.

    Passing failures are tried again twice, after a pause or as long as the provider asks, all
    within the time that an answer may take. Safe to use from several event loops.

    Args:
        connect: makes the endpoint for one event loop.
        id_: provider and model, for messages.
        first_pause: seconds before the second attempt at most.
    """

    def __init__(
        self, connect: Callable[[], ChatEndpoint], id_: str, *, first_pause: float = 0.5
    ) -> None:
        self._connections = LoopClients(connect)
        self._traffic = Traffic(concurrency=CONCURRENCY)
        self._id = id_
        self._first_pause = first_pause

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        """See ChatModel."""
        asked = Prompt(encodable(instructions), encodable(prompt), max_tokens)
        within = seconds + _SLACK_SECONDS
        call = RetriedCall(
            lambda: self._ask(asked, within),
            self._traffic,
            tokens=0,
            patience=RetryPolicy(
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
        except EmbeddingError as error:
            failure = failure_of_chat(error, self._id)
        # Raised out here, it carries no context, as what it stands for carries none.
        raise failure

    async def close(self) -> None:
        """Let go of this loop's connections, once no request is under way on them."""
        await self._connections.close()

    async def _ask(self, asked: Prompt, seconds: float) -> Completion:
        async with self._connections.use() as endpoint:
            reply = await endpoint.request(asked, seconds)
        read, written = reply.input_tokens, reply.output_tokens
        return Completion(
            reply.text,
            tokens_of(asked.instructions, asked.text) if read is None else read,
            count_text(reply.text) if written is None else written,
            cut=reply.cut,
        )


def tokens_of(instructions: str, prompt: str) -> int:
    """What a request counts for, as near as can be told before the provider does."""
    return count_text(instructions) + count_text(prompt)
