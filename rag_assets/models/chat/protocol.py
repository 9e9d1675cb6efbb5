"""The interface of chat models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

MOST_WRITTEN = 16_384
"""The highest token limit of an answer that can be configured, thinking included."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a chat model.

    Attributes:
        instructions: the system prompt, which the project writes.
        text: the question and the passages.
        max_tokens: limit of the answer, including hidden thinking.
    """

    instructions: str
    text: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a chat model.

    Attributes:
        text: empty if the model wrote no text.
        input_tokens, output_tokens: charged for the request, thinking included.
        cut: whether it ends at the token limit.
        requests: number of attempts.
    """

    text: str
    input_tokens: int
    output_tokens: int
    cut: bool = False
    requests: int = 1

    @property
    def tokens(self) -> int:
        """Return all tokens charged."""
        return self.input_tokens + self.output_tokens


class ChatModel(Protocol):
    """Answers prompts."""

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        """Answer a prompt; connections are kept for the next call.

        Args:
            instructions, prompt, max_tokens: see Prompt.
            seconds: limit of all attempts together.

        Raises:
            ChatError: the model returned no usable answer.
            NoProviderKey: the tenant's key for its provider is missing.
            KeyUnreadable: the tenant's key cannot be decrypted.
        """
        ...

    async def close(self) -> None:
        """Close connections, in the event loop in which complete was called."""
        ...
