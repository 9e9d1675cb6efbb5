"""Find the masked credentials that spans of text touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from rag_assets.ingest.parsing.model import MaskedSpan


class Span(Protocol):
    """Anything with character offsets, half open."""

    @property
    def start(self) -> int:
        """Return the offset of the first character."""
        ...

    @property
    def end(self) -> int:
        """Return the offset after the last character."""
        ...


def touching(masked: Sequence[MaskedSpan], spans: Iterable[Span]) -> Iterator[list[MaskedSpan]]:
    """Yield for each span the masked spans that it touches; spans must be ordered by start."""
    ordered = sorted(masked, key=lambda mask: mask.start)
    first = 0
    for span in spans:
        while first < len(ordered) and ordered[first].end <= span.start:
            first += 1
        found, index = [], first
        while index < len(ordered) and ordered[index].start < span.end:
            if ordered[index].end > span.start:
                found.append(ordered[index])
            index += 1
        yield found
