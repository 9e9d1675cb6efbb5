"""What embedding costs at each provider, and what a number of tokens costs at a price.

Dollars per million tokens, as the providers' own price pages said in November 2026:

- OpenAI: https://platform.openai.com/docs/pricing
- Gemini: https://ai.google.dev/gemini-api/docs/pricing

They change: `embedder.price` in tenants.yaml goes before this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

PRICES_AS_OF = date(2026, 11, 1)
_MILLION = 1_000_000
_ON_ONES_OWN_MACHINE = frozenset({"local", "deterministic"})
_MOST = 1_000.0


class Price(BaseModel):
    """What a million tokens cost, in dollars.

    Attributes:
        per_million: sent as they come.
        batch_per_million: through the provider's batch API; by default as much.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    per_million: float = Field(ge=0, le=_MOST, allow_inf_nan=False)
    batch_per_million: float | None = Field(default=None, ge=0, le=_MOST, allow_inf_nan=False)

    @model_validator(mode="after")
    def _batches_cost_no_more(self) -> Self:
        if self.batch_per_million is not None and self.batch_per_million > self.per_million:
            raise ValueError("batch_per_million is above per_million")
        return self

    def of(self, tokens: int, *, batch: bool = False) -> float:
        """What so many tokens cost, in dollars.

        Args:
            tokens: as the provider counts them.
            batch: whether they go through its batch API.
        """
        if batch and self.batch_per_million is not None:
            return self.batch_per_million * tokens / _MILLION
        return self.per_million * tokens / _MILLION


FREE = Price(per_million=0)
"""Of what runs on one's own machine."""

PRICES: Mapping[tuple[str, str], Price] = MappingProxyType(
    {
        ("openai", "text-embedding-3-small"): Price(per_million=0.02, batch_per_million=0.01),
        ("openai", "text-embedding-3-large"): Price(per_million=0.13, batch_per_million=0.065),
        ("gemini", "gemini-embedding-001"): Price(per_million=0.15, batch_per_million=0.075),
        ("gemini", "gemini-embedding-2"): Price(per_million=0.20, batch_per_million=0.10),
    }
)
"""By provider and model, as of PRICES_AS_OF."""


def listed_price(provider: str, model: str) -> Price | None:
    """The price of a model at its provider's own server; None if none is known."""
    return FREE if provider in _ON_ONES_OWN_MACHINE else PRICES.get((provider, model))


def provider_and_model(embedder_id: str) -> tuple[str, str]:
    """Take an embedder's id apart: whom its vectors are paid to, and for which model."""
    provider, _, rest = embedder_id.partition("/")
    return provider, rest.rpartition("@")[0] or rest
