"""What is asked of a chat model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

MOST_WRITTEN = 16_384
"""Tokens that an answer may have: far more than anybody reads, thoughts included."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request.

    Attributes:
        instructions: what the model is told to do, by us.
        text: what it is to do that with.
        max_tokens: it may write at most, thoughts that are not shown included.
    """

    instructions: str
    text: str
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Completion:
    """What a chat model wrote.

    Attributes:
        text: empty where it wrote nothing.
        input_tokens, output_tokens: that it is charged for, thoughts included.
        cut: whether it stopped because it may write no more.
        requests: attempts that it took.
    """

    text: str
    input_tokens: int
    output_tokens: int
    cut: bool = False
    requests: int = 1

    @property
    def tokens(self) -> int:
        """All that it is charged for."""
        return self.input_tokens + self.output_tokens


class ChatModel(Protocol):
    """Writes what it is asked to."""

    async def complete(
        self, instructions: str, prompt: str, *, max_tokens: int, seconds: float
    ) -> Completion:
        """What the model writes; connections are kept for the next time.

        Args:
            instructions, prompt, max_tokens: see Prompt.
            seconds: for all attempts together.

        Raises:
            ChatError: it wrote nothing that could be used.
            NoProviderKey: the tenant has no key for its provider.
            KeyUnreadable: it has one, and it does not decrypt.
        """
        ...

    async def close(self) -> None:
        """Let go of connections, in the loop that complete was called in."""
        ...
