"""Chat models of OpenAI, and of servers that implement its API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rag_assets.models.chat.endpoint import SdkChatEndpoint
from rag_assets.models.chat.protocol import Prompt
from rag_assets.models.chat.remote import Reply
from rag_assets.models.providers.openai.connection import OpenAIConnection, without_key
from rag_assets.models.transport.sdk_connection import plausible_tokens

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""Some self-hosted servers put the model's thinking in front of its answer."""


class OpenAIChat(OpenAIConnection, SdkChatEndpoint["AsyncOpenAI"]):
    """One chat model of OpenAI; see SdkChatEndpoint."""

    length_option = "max_completion_tokens"

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
