"""Prices of embedding models and chat models, in dollars."""

from __future__ import annotations

from typing import Annotated, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

MILLION = 1_000_000

DollarsPerMillion: TypeAlias = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]
"""The price of a million tokens."""


class Price(BaseModel):
    """The price of a million tokens, in dollars; through the batch API by default the same."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    per_million: DollarsPerMillion
    batch_per_million: DollarsPerMillion | None = None

    @model_validator(mode="after")
    def _require_lower_batch_price(self) -> Self:
        if self.batch_per_million is not None and self.batch_per_million > self.per_million:
            raise ValueError("batch_per_million must not be higher than per_million")
        return self

    def compute_cost(self, tokens: int, *, is_batch: bool = False) -> float:
        """Return the cost of a number of tokens, in dollars."""
        if is_batch and self.batch_per_million is not None:
            return self.batch_per_million * tokens / MILLION
        return self.per_million * tokens / MILLION


FREE = Price(per_million=0)
"""The price of models on this machine."""


def split_embedder_id(embedder_id: str) -> tuple[str, str]:
    """Return the provider and the model in an embedder's id."""
    provider, _, model_and_digest = embedder_id.partition("/")
    return provider, model_and_digest.rpartition("@")[0] or model_and_digest


class ChatPrice(BaseModel):
    """The price of a million tokens of a chat model, in dollars; output includes thinking."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_per_million: DollarsPerMillion
    output_per_million: DollarsPerMillion

    def compute_cost(self, input_tokens: int, output_tokens: int) -> float:
        """Return the cost of these input and output tokens together, in dollars."""
        read = self.input_per_million * input_tokens
        return (read + self.output_per_million * output_tokens) / MILLION


def build_chat_price(read: float, written: float) -> ChatPrice:
    """Return the price of a chat model from its rates in dollars per million tokens."""
    return ChatPrice(input_per_million=read, output_per_million=written)
