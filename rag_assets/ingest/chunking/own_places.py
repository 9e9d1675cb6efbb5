"""Passages with unique starts, so that a start identifies its passage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rag_assets.ingest.chunking.passages import Passage


def with_own_places(passages: Sequence[Passage]) -> Iterator[Passage]:
    """Yield passages with strictly increasing starts, so that a start identifies its passage.

    A passage that would start no later than the previous one starts with its new text instead. It
    is left out if it has no new text.

    Args:
        passages: the passages of a document, in order.
    """
    last = -1
    for passage in passages:
        start = passage.start if passage.start > last else max(passage.new_start, last + 1)
        if start < passage.end:
            yield replace(passage, start=start)
            last = start
