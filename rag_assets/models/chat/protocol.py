"""The interface of chat models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

MOST_WRITTEN = 16_384
"""Maximum token limit of an answer that can be configured, thinking included."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a chat model.

    Attributes:
        instructions: the system prompt, which comes from this project.
        text: the question and the passages.
        max_tokens: maximum tokens of the answer, including hidden thinking.
    """

    instructions: str
    text: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a chat model.

    Attributes:
        text: text of the answer; empty if the model wrote none.
        input_tokens, output_tokens: tokens charged for the request, thinking included.
        cut: whether the answer was cut off at the token limit.
        requests: number of attempts.
    """

    text: str
    input_tokens: int
    output_tokens: int
    cut: bool = False
    requests: int = 1

    @property
    def tokens(self) -> int:
        """Return the number of all tokens charged."""
        return self.input_tokens + self.output_tokens


class ChatModel(Protocol):
    """Answers prompts."""

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        """Answer a prompt; connections stay open for the next call.

        Args:
            instructions, prompt, max_tokens: see Prompt.
            seconds: time limit of all attempts together.

        Raises:
            ChatError: the model returned no usable answer.
            NoProviderKey: the tenant's key for its provider is missing.
            KeyUnreadable: the tenant's key cannot be decrypted.
        """
        ...

    async def close(self) -> None:
        """Close connections; must be called in the event loop in which complete was called."""
        ...
