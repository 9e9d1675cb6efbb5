"""The judged set: every kind in every context of its family that it fits, and clean texts."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.security.credentials.clean import clean_samples
from tests.security.credentials.contexts import contexts_of, fits, placed
from tests.security.credentials.kinds import KINDS
from tests.security.credentials.model import Half, Sample

_BINARY = frozenset({"docx", "pptx", "xlsx", "pdf"})
_BINARY_EVERY = 6
"""Documents that have to be written and parsed take longer: they get each sixth kind."""


def samples(half: Half, *, seed: int = 2026) -> Iterator[Sample]:
    """All samples of a half.

    Args:
        half: tuning or held_out.
        seed: of the random values: the same set for the same seed.
    """
    yield from credential_samples(half, seed=seed)
    yield from clean_samples(half, Random(f"{seed}/{half}/clean"))


def credential_samples(half: Half, *, seed: int = 2026) -> Iterator[Sample]:
    """Each kind in each context of its family that it fits."""
    for number, kind in enumerate(KINDS):
        for place, (name, context) in enumerate(contexts_of(kind.family, half)):
            if context.media_type in _BINARY and (number + place) % _BINARY_EVERY:
                continue
            rng = Random(f"{seed}/{half}/{kind.name}/{name}")
            credential = kind.make(rng)
            if fits(kind, context, credential):
                yield placed(kind, name, context, credential, rng, half)
