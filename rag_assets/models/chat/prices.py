"""What a number of tokens costs at the price of a chat model."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from rag_assets.models.transport.prices import MILLION, DollarsPerMillion


class ChatPrice(BaseModel):
    """What a million tokens of a chat model cost, in dollars.

    Attributes:
        input_per_million: that it reads.
        output_per_million: that it writes, thoughts included.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_per_million: DollarsPerMillion
    output_per_million: DollarsPerMillion

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """What so many tokens cost, in dollars."""
        read = self.input_per_million * input_tokens
        return (read + self.output_per_million * output_tokens) / MILLION
