"""Chat models of tenants, which answer instructions and a prompt with text.

Belongs here: the ChatModel protocol, requests with retries, the conversion of failures, context
windows. Does not: the contents of prompts and the use of answers (search), keys and costs
(billing), requests to one provider (providers).
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from rag_assets.common.errors import (
    ChatError,
    ChatFailed,
    ChatRefused,
    ChatTimeout,
    ChatUnavailable,
    InputRejected,
    KeyUnreadable,
    NoProviderKey,
    PromptRejected,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    RagAssetsError,
)
from rag_assets.common.tokens import count_text
from rag_assets.models.transport.connection import (
    LoopClients,
    Sdk,
    SdkConnection,
    replace_surrogates,
)
from rag_assets.models.transport.retries import RetriedCall, RetryPolicy, Traffic

MAX_ANSWER_TOKENS = 16_384
"""Maximum token limit of an answer that can be configured, thinking included."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a chat model; `max_tokens` limits the answer, including hidden thinking."""

    instructions: str
    text: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a chat model."""

    text: str
    input_tokens: int
    output_tokens: int
    cut: bool = False
    """Whether the answer was cut off at the token limit."""
    requests: int = 1

    @property
    def tokens(self) -> int:
        """Return the number of tokens charged, for input and output together."""
        return self.input_tokens + self.output_tokens


class ChatModel(Protocol):
    """A model that answers prompts."""

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        """Answer a prompt within a number of seconds for all attempts, or raise a ChatError.

        Connections stay open for the next call. Errors of the tenant's key are raised as they are.
        """
        ...

    async def close(self) -> None:
        """Close this event loop's connections, which complete() opened."""
        ...


MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Maximum bytes of an answer: of a single response as JSON, or of a streamed response as text."""
MAX_STREAM_BYTES = 64 * 1024 * 1024
"""Maximum bytes of a streamed response as sent: 4 KiB for each token that may be configured."""
CONCURRENCY = 16
"""Maximum concurrent requests of a process to a tenant's model; further requests wait."""

_TURN_SECONDS = 5.0
_MAX_ATTEMPTS = 3
_MIN_SECONDS = 2.0
# The inner time limit must not end first, since that would look like a different failure.
_SLACK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A provider's response to one chat request; a token count that is not reported is None."""

    text: str
    input_tokens: int | None
    output_tokens: int | None
    cut: bool


class RemoteChat:
    """A chat model over the network; see ChatModel.

    After a transient failure, a request is retried up to twice, after a pause or after the time
    that the provider requires; all attempts must fit into the time limit of the answer. Safe to use
    from several event loops.

    Args:
        module: module that requests need; importing it does not count towards a time limit.
    """

    def __init__(
        self,
        connect: Callable[[], SdkChatEndpoint[Any]],
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
        """Answer a prompt, with retries; see ChatModel.complete."""
        await self._connections.load()
        request = Prompt(replace_surrogates(instructions), replace_surrogates(prompt), max_tokens)
        within = seconds + _SLACK_SECONDS
        call = RetriedCall(
            lambda: self._attempt(request, within),
            self._traffic,
            tokens=0,
            policy=RetryPolicy(
                _TURN_SECONDS, _MAX_ATTEMPTS, within, _MIN_SECONDS, first_pause=self._first_pause
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
            failure = convert_failure(error, self._id)
        # Raise it outside the except block, so that its context is not the provider's error.
        raise failure

    async def close(self) -> None:
        """Close this event loop's connections as soon as no request uses them."""
        await self._connections.close()

    async def _attempt(self, prompt: Prompt, seconds: float) -> Completion:
        async with self._connections.use() as endpoint:
            reply = await endpoint.request(prompt, seconds)
        read, written = reply.input_tokens, reply.output_tokens
        return Completion(
            reply.text,
            estimate_input_tokens(prompt.instructions, prompt.text) if read is None else read,
            count_text(reply.text) if written is None else written,
            cut=reply.cut,
        )


def estimate_input_tokens(instructions: str, prompt: str) -> int:
    """Return the estimated number of input tokens of a chat request."""
    return count_text(instructions) + count_text(prompt)


class SdkChatEndpoint(SdkConnection[Sdk]):
    """A chat model at a provider, through the provider's SDK; it does not retry."""

    most_bytes = MAX_ANSWER_BYTES

    async def request(self, prompt: Prompt, seconds: float) -> ChatReply:
        """Send one request, and return the response; see SdkConnection.exchange."""
        return await self.exchange(
            lambda sdk: self._request_completion(sdk, prompt), seconds=seconds
        )

    @abstractmethod
    async def _request_completion(self, sdk: Sdk, prompt: Prompt) -> ChatReply:
        """Send one request; raise the SDK's errors, or ValueError for a malformed response."""


def convert_failure(error: ProviderError, model: str) -> ChatError | NoProviderKey | KeyUnreadable:
    """Convert a connection's error to a ChatError; return an error about the key unchanged."""
    if isinstance(error, NoProviderKey | KeyUnreadable):
        return error.with_traceback(None)
    failure: ChatError
    match error:
        case ProviderUnavailable():
            failure = ChatUnavailable(error.message, retry_after=error.retry_after)
        case ProviderRefused():
            hint = "increase the quota at the provider" if error.fault == "quota" else error.hint
            failure = ChatRefused(error.message, hint=hint, fault=error.fault)
        case InputRejected():
            failure = PromptRejected(
                f"{model} rejects the request",
                hint="the request may be too long for the model: set a smaller token_budget or"
                " max_tokens",
            )
        case _:
            failure = ChatFailed(error.message)
    failure.requests = error.requests
    return failure


CONTEXT_WINDOWS: Final[Mapping[str, int]] = {
    name: window
    for window, names in {
        8_192: "gemma-2 gpt-4 llama-3",
        16_384: "phi-4",
        16_385: "gpt-3.5-turbo",
        32_760: "gemini-1.0",
        32_768: "gpt-4-32k",
        100_000: "claude-2.0",
        128_000: (
            "command-r deepseek-chat deepseek-r1 deepseek-reasoner deepseek-v3 devstral "
            "gemma-3 glm-4.5 gpt-4-0125 gpt-4-1106 gpt-4-turbo gpt-4.5 gpt-4o gpt-5-chat "
            "llama-3.1 llama-3.2 llama-3.3 ministral mistral-large mistral-medium "
            "mistral-small nova-micro o1-mini o1-preview qwen2.5 qwen3"
        ),
        131_072: "gpt-oss grok-2 grok-3 kimi-k2",
        200_000: "claude glm-4.6 o1 o3 o4-mini",
        256_000: "codestral command-a grok-4 grok-code-fast-1",
        262_144: "qwen3-coder",
        300_000: "nova-lite nova-pro",
        400_000: "gpt-5",
        1_047_576: "gpt-4.1",
        1_048_576: "gemini-1.5-flash gemini-2 gemini-3 llama-4",
        2_000_000: "grok-4-1-fast grok-4-fast",
        2_097_152: "gemini-1.5-pro",
        10_485_760: "llama-4-scout",
    }.items()
    for name in names.split()
}
"""Number of tokens by the longest matching prefix of a model's name, as of December 2025."""

UNKNOWN_WINDOW: Final = 32_768
"""Assumed for a model whose window is unknown: most models in use can read more, few only less."""

_PREFIX_ENDS: Final = "-.:@"


def find_context_window(model: str) -> int | None:
    """Return the context window of `model` or `provider/model`, in tokens; None if unknown."""
    name = model.strip().lower().rpartition("/")[2]
    prefixes = [prefix for prefix in CONTEXT_WINDOWS if _is_model_version(name, prefix)]
    return CONTEXT_WINDOWS[max(prefixes, key=len)] if prefixes else None


def _is_model_version(name: str, prefix: str) -> bool:
    """Return whether a name is `prefix` or a version of it: gpt-4-0613 is one of gpt-4."""
    suffix = name.removeprefix(prefix)
    return suffix != name and (not suffix or suffix[0] in _PREFIX_ENDS)
