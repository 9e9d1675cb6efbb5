"""Duplicates: equal texts become one hit, and so do a passage and a block that it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_assets.storage.index.model import Candidate


@dataclass(frozen=True, slots=True)
class Distinct:
    """A candidate, and the other documents that hold its text.

    Attributes:
        also: uris of other documents, in order of rank.
        block: the best of the blocks in it that were found.
    """

    candidate: Candidate
    also: tuple[str, ...] = ()
    block: Candidate | None = None

    @property
    def id(self) -> str:
        """Of the candidate."""
        return self.candidate.id

    def with_fields(
        self, fields: Mapping[str, Any], block_fields: Mapping[str, Any] | None = None
    ) -> Passage:
        """The same, with what is stored of it, and of its block."""
        return Passage(self.candidate, self.also, fields, block_fields)


@dataclass(frozen=True, slots=True)
class Passage:
    """A distinct text with its stored fields.

    Attributes:
        candidate: that it stands for.
        also: see Distinct.
        fields: that are stored.
        block_fields: those of the block in it that the question is about, where one was found.
    """

    candidate: Candidate
    also: tuple[str, ...]
    fields: Mapping[str, Any]
    block_fields: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        """Of the candidate."""
        return self.candidate.id


def collapse(candidates: Sequence[Candidate]) -> list[Distinct]:
    """Keep the first candidate of each text, with the uris of the others.

    Of a passage and the blocks in it, which are entries as well, what ranks first stays: the
    passage without these blocks, or the block without this passage.

    Args:
        candidates: best first; only what the caller may read.
    """
    equal: dict[str, list[Candidate]] = {}
    for candidate in _outermost_first(candidates):
        equal.setdefault(candidate.text_key, []).append(candidate)
    return [
        Distinct(same[0], _uris(same[0], same[1:]) if len(same) > 1 else ())
        for same in equal.values()
    ]


def _outermost_first(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """The candidates without those that hold, or lie in, one that ranks higher."""
    held: set[tuple[str, str, int]] = set()
    kept: set[tuple[str, str, int]] = set()
    for candidate in candidates:
        version = candidate.document_id, candidate.index_key
        around = [(*version, ordinal) for ordinal in candidate.within]
        own = (*version, candidate.ordinal)
        if own in held or not kept.isdisjoint(around):
            continue
        kept.add(own)
        held.update(around)
        yield candidate


def _uris(first: Candidate, others: Sequence[Candidate]) -> tuple[str, ...]:
    uris = dict.fromkeys(other.uri for other in others if other.uri)
    uris.pop(first.uri, None)
    return tuple(uris)
