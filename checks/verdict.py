"""What a check concludes: the same shape for all of them, and no Dagster in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar

Severity: TypeAlias = Literal["ERROR", "WARN"]
Cell: TypeAlias = str | int | float | bool | None

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Compared:
    """One thing that was compared."""

    what: str
    expected: Cell
    actual: Cell


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one check.

    Attributes:
        passed: whether everything is as it should be.
        description: one line for people: what was found, and what to do.
        compared: expected against actual, always, also when the check passed.
        columns: names of the columns of offenders.
        offenders: who is at fault; never a credential nor the text of a document.
        severity: of a failure. WARN: a person should look, but nothing wrong is served.
        notes: more for the run page, by title.
    """

    passed: bool
    description: str
    compared: tuple[Compared, ...]
    columns: tuple[str, ...] = ()
    offenders: tuple[tuple[Cell, ...], ...] = ()
    severity: Severity = "ERROR"
    notes: Mapping[str, Cell] = field(default_factory=dict)


def batches(
    items: Sequence[_T], size: int, weights: Sequence[int] | None = None, most: int = 0
) -> Iterator[Sequence[_T]]:
    """Cut a sequence into runs of bounded length and weight.

    Args:
        items: what to cut.
        size: items that a run holds at most.
        weights: of each item.
        most: weight that a run holds at most; a heavier item makes a run of its own.
    """
    start = weight = 0
    for position in range(len(items)):
        heavy = weights[position] if weights is not None else 0
        if position > start and (position - start >= size or weight + heavy > most > 0):
            yield items[start:position]
            start, weight = position, 0
        weight += heavy
    if start < len(items):
        yield items[start:]
