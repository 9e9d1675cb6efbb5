"""Prices of chat models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from rag_assets.models.transport.prices import MILLION, DollarsPerMillion


class ChatPrice(BaseModel):
    """The price of a million tokens of a chat model, in dollars.

    Attributes:
        input_per_million: price of tokens that the model reads.
        output_per_million: price of tokens that the model writes, thinking included.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_per_million: DollarsPerMillion
    output_per_million: DollarsPerMillion

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Return the cost of a number of tokens, in dollars."""
        read = self.input_per_million * input_tokens
        return (read + self.output_per_million * output_tokens) / MILLION
