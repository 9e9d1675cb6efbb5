"""Passages that say the same, word for word: one hit that names every document it stands in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_assets.indexing.model import Candidate


@dataclass(frozen=True, slots=True)
class Distinct:
    """A candidate, and where else its text stands.

    Attributes:
        also: uris of other documents, in order of rank.
    """

    candidate: Candidate
    also: tuple[str, ...] = ()


def collapse(candidates: Sequence[Candidate]) -> list[Distinct]:
    """Keep the first candidate of each text, with the uris of the others.

    Args:
        candidates: best first, only such as whoever asks may read.
    """
    alike: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        alike.setdefault(candidate.fields["text"], []).append(candidate)
    return [Distinct(first, _uris(first, others)) for first, *others in alike.values()]


def _uris(first: Candidate, others: Sequence[Candidate]) -> tuple[str, ...]:
    uris = dict.fromkeys(other.fields["uri"] for other in others)
    uris.pop(first.fields["uri"], None)
    return tuple(uris)
