"""Prices of tokens, in dollars."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

MILLION = 1_000_000

DollarsPerMillion: TypeAlias = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]
"""The price of a million tokens."""
