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
        name: that agents list it by.
        description: what it gives.
        function: makes the function that writes it, as that of a Tool; its parameters are texts.
    """

    name: str
    description: str
    function: Callable[[Knowledge], PromptFunction]
