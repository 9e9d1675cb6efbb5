"""What chat models cost at their providers.

Dollars per million tokens up to 200,000 tokens of input, as of March 2026:

- OpenAI: https://platform.openai.com/docs/pricing
- Gemini: https://ai.google.dev/gemini-api/docs/pricing

They change: `chat_model.prices` in tenants.yaml goes before this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, Field

CHAT_PRICES_AS_OF = date(2026, 3, 1)
_MILLION = 1_000_000
_MOST = 1_000.0


class ChatPrice(BaseModel):
    """What a million tokens of a chat model cost, in dollars.

    Attributes:
        input_per_million: that it reads.
        output_per_million: that it writes, thoughts included.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_per_million: float = Field(ge=0, le=_MOST, allow_inf_nan=False)
    output_per_million: float = Field(ge=0, le=_MOST, allow_inf_nan=False)

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """What so many tokens cost, in dollars."""
        read = self.input_per_million * input_tokens
        return (read + self.output_per_million * output_tokens) / _MILLION


def _price(read: float, written: float) -> ChatPrice:
    return ChatPrice(input_per_million=read, output_per_million=written)


CHAT_PRICES: Mapping[tuple[str, str], ChatPrice] = MappingProxyType(
    {
        ("openai", "gpt-5"): _price(1.25, 10.0),
        ("openai", "gpt-5-mini"): _price(0.25, 2.0),
        ("openai", "gpt-5-nano"): _price(0.05, 0.40),
        ("openai", "gpt-4.1"): _price(2.0, 8.0),
        ("openai", "gpt-4.1-mini"): _price(0.40, 1.60),
        ("openai", "gpt-4.1-nano"): _price(0.10, 0.40),
        ("openai", "gpt-4o"): _price(2.50, 10.0),
        ("openai", "gpt-4o-mini"): _price(0.15, 0.60),
        ("gemini", "gemini-2.5-pro"): _price(1.25, 10.0),
        ("gemini", "gemini-2.5-flash"): _price(0.30, 2.50),
        ("gemini", "gemini-2.5-flash-lite"): _price(0.10, 0.40),
    }
)
"""By provider and model, as of CHAT_PRICES_AS_OF."""


def listed_chat_price(provider: str, model: str) -> ChatPrice | None:
    """The price of a model at its provider's own server; None if none is known."""
    return CHAT_PRICES.get((provider, model.removeprefix("models/")))
