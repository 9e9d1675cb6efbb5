"""Chat models of OpenAI, and of servers that implement its API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.chat.protocol import Prompt
from rag_assets.models.chat.remote import MOST_ANSWER_BYTES, Reply
from rag_assets.models.providers.openai.connection import OpenAIConnection, without_key
from rag_assets.models.transport.credentials import Credentials
from rag_assets.models.transport.sdk_connection import Server, plausible_tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""Some self-hosted servers put the model's thinking in front of its answer."""


class OpenAIChat(OpenAIConnection):
    """One chat model; see remote.ChatEndpoint.

    Args:
        server, credentials, allowed: see SdkConnection.
        model: the model's name at the provider.
    """

    most_bytes = MOST_ANSWER_BYTES
    length_option = "max_completion_tokens"

    def __init__(
        self, server: Server, credentials: Credentials, allowed: PrivateEndpoints, model: str
    ) -> None:
        super().__init__(server, credentials, allowed)
        self._model = model

    async def request(self, prompt: Prompt, seconds: float) -> Reply:
        """Send one request; see remote.ChatEndpoint."""
        return await self.exchange(lambda sdk: self._complete(sdk, prompt), seconds=seconds)

    async def _complete(self, sdk: AsyncOpenAI, prompt: Prompt) -> Reply:
        options: dict[str, Any] = {self.length_option: prompt.max_tokens, **without_key(sdk)}
        answer = await sdk.chat.completions.create(
            model=self._model,
            messages=[
                {"role": "system", "content": prompt.instructions},
                {"role": "user", "content": prompt.text},
            ],
            **options,
        )
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


class CompatibleChat(OpenAIChat):
    """One chat model of a server that implements OpenAI's API."""

    length_option = "max_tokens"
    """Deprecated by OpenAI, and supported by every such server."""
