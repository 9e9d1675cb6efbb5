"""Prompts that people choose in their agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from rag_assets.mcp.knowledge import Knowledge

PromptFunction: TypeAlias = Callable[..., Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of the server.

    Attributes:
        name: name in the agent's list of prompts.
        description: what the prompt does, for the agent's user.
        function: creates the function that writes the prompt, as in Tool; all parameters of the
            created function are strings.
    """

    name: str
    description: str
    function: Callable[[Knowledge], PromptFunction]
