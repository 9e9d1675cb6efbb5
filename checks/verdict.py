"""What a check concludes: the same shape for all of them, and no Dagster in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["ERROR", "WARN"]
Cell: TypeAlias = str | int | float | bool | None


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
        passed: whether nothing wrong was found.
        description: one line for people: what was found, and what to do.
        compared: expected against actual, always, also when the check passed.
        columns: names of the columns of offenders.
        offenders: what is at fault; never a credential nor the text of a document.
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
