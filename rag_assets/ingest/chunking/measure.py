"""Measures of text size: the tokens or characters in which a chunker's limits are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag_assets.common.tokens import count_tokens


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of the size of texts.

    Attributes:
        count: returns the sizes of texts, in order.
        reach: number of characters of prose that nearly always have a size of at least 1.
        in_tokens: whether sizes are cl100k_base tokens.
    """

    count: Callable[[Sequence[str]], list[int]]
    reach: int
    in_tokens: bool

    def of(self, text: str) -> int:
        """Return the size of one text."""
        return self.count([text])[0]


def count_characters(texts: Sequence[str]) -> list[int]:
    """Return the number of Unicode code points in each text, in order."""
    return [len(text) for text in texts]


TOKENS = Measure(count_tokens, reach=8, in_tokens=True)
CHARACTERS = Measure(count_characters, reach=2, in_tokens=False)
