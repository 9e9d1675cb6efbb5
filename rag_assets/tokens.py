"""Counting cl100k_base tokens: the unit of every chunk limit, and of what providers charge for."""

from __future__ import annotations

from collections.abc import Sequence

ENCODING = "cl100k_base"


def count_tokens(texts: Sequence[str]) -> list[int]:
    """The number of cl100k_base tokens in each text, in order.

    One call for many texts is far cheaper than many calls: the vocabulary is native code and
    counts about 90 MB/s, a call costs some microseconds.
    """
    from toktok import batch_count

    try:
        counts: list[int] = batch_count(texts, ENCODING, threads=1)
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 and so no token: it is counted as its replacement.
        counts = batch_count([_encodable(text) for text in texts], ENCODING, threads=1)
    return counts


def count_text(text: str) -> int:
    """The number of cl100k_base tokens in one text."""
    return count_tokens([text])[0]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
