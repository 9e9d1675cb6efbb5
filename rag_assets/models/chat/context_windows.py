"""Context windows of chat models: the number of tokens that a model reads at once.

The numbers come from the providers, as of AS_OF. The window of a model that is not in the table is
unknown; a tenant may configure its own model's window (`chat_model.context_window`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Final

AS_OF: Final = date(2025, 12, 1)

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
        "gpt-5-chat": 128_000,
        "gpt-oss": 131_072,
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
        "gemini-3": 1_048_576,
        "gemma-2": 8_192,
        "gemma-3": 128_000,
        "grok-2": 131_072,
        "grok-3": 131_072,
        "grok-4": 256_000,
        "grok-4-fast": 2_000_000,
        "grok-4-1-fast": 2_000_000,
        "grok-code-fast-1": 256_000,
        "codestral": 256_000,
        "devstral": 128_000,
        "ministral": 128_000,
        "mistral-large": 128_000,
        "mistral-medium": 128_000,
        "mistral-small": 128_000,
        "llama-3": 8_192,
        "llama-3.1": 128_000,
        "llama-3.2": 128_000,
        "llama-3.3": 128_000,
        "llama-4": 1_048_576,
        "llama-4-scout": 10_485_760,
        "command-r": 128_000,
        "command-a": 256_000,
        "deepseek-chat": 128_000,
        "deepseek-reasoner": 128_000,
        "deepseek-r1": 128_000,
        "deepseek-v3": 128_000,
        "glm-4.5": 128_000,
        "glm-4.6": 200_000,
        "kimi-k2": 131_072,
        "nova-lite": 300_000,
        "nova-micro": 128_000,
        "nova-pro": 300_000,
        "phi-4": 16_384,
        "qwen2.5": 128_000,
        "qwen3": 128_000,
        "qwen3-coder": 262_144,
    }
)
"""Number of tokens by the prefix of a model's name; the longest matching prefix wins."""

UNKNOWN_WINDOW: Final = 32_768
"""Assumed for a model whose window is unknown: most models in use can read more, few only less."""

_ENDS: Final = "-.:@"


def context_window(model: str) -> int | None:
    """Return the number of tokens that a model reads at once; None if unknown.

    Args:
        model: name of the model, with or without a provider prefix: openai/gpt-4o-2024-11-20.
    """
    name = model.strip().lower().rpartition("/")[2]
    known = [one for one in WINDOWS if _begins(name, one)]
    return WINDOWS[max(known, key=len)] if known else None


def _begins(name: str, beginning: str) -> bool:
    """Return whether a name is another name, perhaps with a version suffix: gpt-4o is not gpt-4."""
    rest = name.removeprefix(beginning)
    return rest != name and (not rest or rest[0] in _ENDS)
