"""Context windows of chat models: how many tokens they read at once, as their providers state it.

Models come and go: AS_OF says how old this table is. A model that is not in it has no known window.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Final

AS_OF: Final = date(2025, 8, 1)

WINDOWS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "gpt-3.5-turbo": 16_385,
        "gpt-4": 8_192,
        "gpt-4-0125": 128_000,
        "gpt-4-1106": 128_000,
        "gpt-4-32k": 32_768,
        "gpt-4-turbo": 128_000,
        "gpt-4o": 128_000,
        "gpt-4.1": 1_047_576,
        "gpt-4.5": 128_000,
        "gpt-5": 400_000,
        "o1": 200_000,
        "o1-mini": 128_000,
        "o1-preview": 128_000,
        "o3": 200_000,
        "o4-mini": 200_000,
        "claude-2.0": 100_000,
        "claude": 200_000,
        "gemini-1.0": 32_760,
        "gemini-1.5-flash": 1_048_576,
        "gemini-1.5-pro": 2_097_152,
        "gemini-2": 1_048_576,
        "mistral-large": 128_000,
        "mistral-small": 128_000,
        "llama-3": 8_192,
        "llama-3.1": 128_000,
        "llama-3.2": 128_000,
        "llama-3.3": 128_000,
        "deepseek-chat": 128_000,
        "deepseek-reasoner": 128_000,
        "qwen2.5": 128_000,
        "qwen3": 128_000,
    }
)
"""Tokens by the beginning of a model's name; the longest beginning counts."""

_ENDS: Final = "-.:@"


def context_window(model: str) -> int | None:
    """The tokens that a model reads at once; None if that is not known.

    Args:
        model: its name, with the provider before it or not: openai/gpt-4o-2024-11-20.
    """
    name = model.strip().lower().rpartition("/")[2]
    known = [one for one in WINDOWS if _begins(name, one)]
    return WINDOWS[max(known, key=len)] if known else None


def _begins(name: str, beginning: str) -> bool:
    """Whether a name is another, or another with a version after it: gpt-4o is no gpt-4."""
    rest = name.removeprefix(beginning)
    return rest != name and (not rest or rest[0] in _ENDS)
