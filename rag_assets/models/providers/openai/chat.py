"""Chat models of OpenAI, and of servers that implement its API."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from rag_assets.common.errors import MalformedResponse
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.chat.endpoint import SdkChatEndpoint
from rag_assets.models.chat.protocol import Prompt
from rag_assets.models.chat.remote import MOST_ANSWER_BYTES, MOST_STREAM_BYTES, Reply
from rag_assets.models.providers.openai.connection import OpenAIConnection, without_key
from rag_assets.models.transport.credentials import Credentials
from rag_assets.models.transport.sdk_connection import Server, plausible_tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_BETWEEN_TOKENS_SECONDS = 60.0
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""Some self-hosted servers put the model's thinking in front of its answer."""


class OpenAIChat(OpenAIConnection, SdkChatEndpoint["AsyncOpenAI"]):
    """One chat model of OpenAI; see SdkChatEndpoint."""

    length_option = "max_completion_tokens"

    def __init__(
        self, server: Server, credentials: Credentials, allowed: PrivateEndpoints, model: str
    ) -> None:
        super().__init__(server, credentials, allowed, model)
        if server.silent_seconds is not None:
            # Each token comes in an event with fields of its own; the text is counted apart.
            self.most_bytes = MOST_STREAM_BYTES

    async def _complete(self, sdk: AsyncOpenAI, prompt: Prompt) -> Reply:
        options: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": prompt.instructions},
                {"role": "user", "content": prompt.text},
            ],
            self.length_option: prompt.max_tokens,
            **without_key(sdk),
        }
        if self.server.silent_seconds is not None:
            return await _streamed(sdk, options)
        answer = await sdk.chat.completions.create(**options)
        choice = answer.choices[0]
        text = choice.message.content or ""
        if not isinstance(text, str):
            raise ValueError("no text")  # noqa: TRY004 - the value comes from a server
        return Reply(
            _THOUGHTS.sub("", text),
            plausible_tokens(getattr(answer.usage, "prompt_tokens", None)),
            plausible_tokens(getattr(answer.usage, "completion_tokens", None)),
            cut=choice.finish_reason == "length",
        )


async def _streamed(sdk: AsyncOpenAI, options: dict[str, Any]) -> Reply:
    """Return an answer that comes token by token.

    Raises:
        TimeoutError: nothing came for a minute after the first token.
        MalformedResponse: the text is longer than an answer may be.
        ValueError: the answer is malformed, or ended without its end.
    """
    stream = await sdk.chat.completions.create(
        **options, stream=True, stream_options={"include_usage": True}
    )
    parts: list[str] = []
    size = 0
    reason: str | None = None
    usage: object = None
    begun = False
    async with stream:
        chunks = aiter(stream)
        while True:
            # How long the prompt is read is bounded by the limit of the whole answer alone.
            async with asyncio.timeout(_BETWEEN_TOKENS_SECONDS if begun else None):
                chunk = await anext(chunks, None)
            if chunk is None:
                break
            usage = chunk.usage or usage
            for choice in chunk.choices[:1]:
                part = choice.delta.content or ""
                begun = begun or bool(part)
                parts.append(part)
                size += len(part.encode("utf-8", "replace"))
                if size > MOST_ANSWER_BYTES:
                    raise MalformedResponse(
                        f"a streamed answer is longer than {MOST_ANSWER_BYTES:,} bytes"
                    )
                reason = choice.finish_reason or reason
    if reason is None:
        raise ValueError("the stream ended before the answer")
    return Reply(
        _THOUGHTS.sub("", "".join(parts)),
        plausible_tokens(getattr(usage, "prompt_tokens", None)),
        plausible_tokens(getattr(usage, "completion_tokens", None)),
        cut=reason == "length",
    )


class CompatibleChat(OpenAIChat):
    """One chat model of a server that implements OpenAI's API."""

    length_option = "max_tokens"
    """Deprecated by OpenAI, and supported by every such server."""
