"""What embedding costs at each provider."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DOLLARS_PER_MILLION_TOKENS: Mapping[str, float] = MappingProxyType(
    {"local": 0.0, "deterministic": 0.0}
)
"""By provider. What runs on one's own machine costs no money."""


def cost_in_dollars(provider: str, tokens: int) -> float:
    """What so many tokens cost at a provider."""
    return DOLLARS_PER_MILLION_TOKENS[provider] * tokens / 1_000_000
