"""The judged set: every kind in every suitable context of its family, and clean texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from random import Random
from types import MappingProxyType

from tests.security.credentials.clean import clean_samples
from tests.security.credentials.contexts import contexts_of, fits, placed
from tests.security.credentials.kinds import KINDS
from tests.security.credentials.model import Context, Half, Kind, Sample, Span

_MIXED = 400
_JOINTS: Mapping[Half, tuple[str, ...]] = MappingProxyType(
    {"tuning": ("\n", "\n\n", "\n---\n"), "held_out": ("\n\n\n", "\n> \n", "\n* * *\n")}
)
_NEIGHBOURS = 150
_BESIDE: Mapping[Half, tuple[str, ...]] = MappingProxyType(
    {
        "tuning": (", ", " and ", " | ", "\t"),
        "held_out": ("; ", " or ", "` `", "** / **", "</li><li>", '", "'),
    }
)
_BINARY = frozenset({"docx", "pptx", "xlsx", "pdf"})
_BINARY_EVERY = 6
"""Documents that have to be written and parsed take longer: they get each sixth kind."""


@cache
def samples(half: Half, *, seed: int = 2026) -> tuple[Sample, ...]:
    """Return all samples of a half, which are cached because they take some seconds.

    Args:
        half: tuning or held_out.
        seed: of the random values; the same seed gives the same samples.
    """
    return (
        *credential_samples(half, seed=seed),
        *mixed_samples(half, seed=seed),
        *clean_samples(half, Random(f"{seed}/{half}/clean")),
    )


def credential_samples(half: Half, *, seed: int = 2026) -> Iterator[Sample]:
    """Yield each kind in each suitable context of its family."""
    for number, kind in enumerate(KINDS):
        for place, (name, context) in enumerate(contexts_of(kind.family, half)):
            if context.media_type in _BINARY and (number + place) % _BINARY_EVERY:
                continue
            rng = Random(f"{seed}/{half}/{kind.name}/{name}")
            credential = kind.make(rng)
            if fits(kind, context, credential):
                yield placed(kind, name, context, credential, rng, half)


def mixed_samples(half: Half, *, seed: int = 2026) -> Iterator[Sample]:
    """Yield two to five credentials of any kinds below one another, each in its own context."""
    plain = [s for s in credential_samples(half, seed=seed + 1) if s.media_type is None]
    rng = Random(f"{seed}/{half}/mixed")
    for _ in range(_MIXED):
        yield _joined(rng.sample(plain, rng.randint(2, 5)), rng.choice(_JOINTS[half]))
    alone = [kind for kind in KINDS if kind.family == "token"]
    lines = [kind for kind in KINDS if kind.family == "line" and not kind.whole_line]
    for _ in range(_NEIGHBOURS):
        yield _side_by_side(rng.sample(alone, rng.randint(2, 5)), _BESIDE[half], half, rng)
        yield _side_by_side(rng.choices(lines, k=rng.randint(2, 4)), ("\n",), half, rng)


def _side_by_side(kinds: Sequence[Kind], joints: Sequence[str], half: Half, rng: Random) -> Sample:
    """Join credentials with only a joint between them."""
    bare = Context("", "«X»")
    parts = [placed(kind, "", bare, kind.make(rng), rng, half) for kind in kinds]
    return _joined(parts, rng.choice(joints))


def _joined(parts: Sequence[Sample], joint: str) -> Sample:
    at = [0, *accumulate(len(part.text) + len(joint) for part in parts)]

    def moved(spans: Sequence[Sequence[Span]]) -> tuple[Span, ...]:
        return tuple(
            (start + offset, end + offset)
            for offset, those in zip(at, spans, strict=False)
            for start, end in those
        )

    return Sample(
        joint.join(part.text for part in parts),
        moved([part.spans for part in parts]),
        "mixed",
        "mixed/" + "+".join(sorted({part.kind for part in parts})),
        parts[0].half,
        may=moved([part.may for part in parts]),
    )
