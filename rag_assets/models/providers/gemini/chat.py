"""Chat models of Google Gemini."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_assets.common.errors import InputRejected
from rag_assets.models.chat.endpoint import SdkChatEndpoint
from rag_assets.models.chat.protocol import Prompt
from rag_assets.models.chat.remote import Reply
from rag_assets.models.providers.gemini.connection import GeminiConnection
from rag_assets.models.transport.sdk_connection import plausible_tokens

if TYPE_CHECKING:
    from google.genai import Client
    from google.genai.types import Candidate, GenerateContentResponse


class GeminiChat(GeminiConnection, SdkChatEndpoint["Client"]):
    """One chat model of Google, or of a server that implements its API; see SdkChatEndpoint."""

    async def _complete(self, sdk: Client, prompt: Prompt) -> Reply:
        from google.genai.types import (
            AutomaticFunctionCallingConfig,
            Content,
            FinishReason,
            GenerateContentConfig,
            Part,
        )

        answer = await sdk.aio.models.generate_content(
            model=self._model,
            contents=[Content(role="user", parts=[Part(text=prompt.text)])],
            config=GenerateContentConfig(
                system_instruction=prompt.instructions,
                max_output_tokens=prompt.max_tokens,
                automatic_function_calling=AutomaticFunctionCallingConfig(disable=True),
            ),
        )
        if not answer.candidates and answer.prompt_feedback is not None:
            raise InputRejected(f"{self.server.id} rejects the question")
        candidate = (answer.candidates or [])[0]
        return Reply(
            "".join(_text_parts(candidate)),
            plausible_tokens(getattr(answer.usage_metadata, "prompt_token_count", None)),
            _written(answer),
            cut=candidate.finish_reason == FinishReason.MAX_TOKENS,
        )


def _text_parts(candidate: Candidate) -> Iterator[str]:
    """The text of an answer without thinking; empty if it stopped before any text."""
    parts = candidate.content.parts if candidate.content else None
    return (part.text for part in parts or () if part.text and not part.thought)


def _written(answer: GenerateContentResponse) -> int | None:
    """The output tokens charged; the response counts thinking separately."""
    usage = answer.usage_metadata
    text = plausible_tokens(getattr(usage, "candidates_token_count", None))
    thoughts = plausible_tokens(getattr(usage, "thoughts_token_count", None))
    return None if text is None and thoughts is None else (text or 0) + (thoughts or 0)
