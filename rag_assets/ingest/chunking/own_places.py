"""Passages whose beginnings identify them: no two begin at one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rag_assets.ingest.chunking.passages import Passage


def with_own_places(passages: Sequence[Passage]) -> Iterator[Passage]:
    """Passages that begin one after another, so that their places identify them.

    One that would begin where the one before it does begins with its new text, or is left out if
    it has none.

    Args:
        passages: of a document, in order.
    """
    last = -1
    for passage in passages:
        start = passage.start if passage.start > last else max(passage.new_start, last + 1)
        if start < passage.end:
            yield replace(passage, start=start)
            last = start
