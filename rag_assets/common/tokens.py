"""Counts of cl100k_base tokens: the unit of chunk limits and of providers' charges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

ENCODING = "cl100k_base"

_MAX_SEPARATE_TEXTS = 64
"""Up to this number of texts, counting each separately is faster than the 25 µs set-up of a
batch."""


def count_tokens(texts: Sequence[str]) -> list[int]:
    """Count the cl100k_base tokens in each text; one call for many texts is cheaper."""
    try:
        return _count_each(texts)
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 encoding and thus no token: its replacement character is
        # counted.
        return _count_each([text.encode("utf-8", "replace").decode() for text in texts])


def count_text(text: str) -> int:
    """Count the cl100k_base tokens in one text."""
    return count_tokens([text])[0]


def _count_each(texts: Sequence[str]) -> list[int]:
    tokenizer = _load_tokenizer()
    if len(texts) <= _MAX_SEPARATE_TEXTS:
        return [tokenizer.count(text) for text in texts]
    counts: list[int] = tokenizer.count_batch(texts, 1, False)
    return counts


@cache
def _load_tokenizer() -> Any:
    # The package's public functions take three times as long for one short text.
    from toktok._toktok import Tokenizer

    return Tokenizer(ENCODING, "")
