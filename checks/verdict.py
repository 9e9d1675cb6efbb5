"""The verdict of a check, in one form for all checks and without Dagster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["ERROR", "WARN"]
Cell: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison of an expected with an actual value."""

    what: str
    expected: Cell
    actual: Cell


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one check.

    Attributes:
        passed: whether no fault was found.
        description: one line for people: the finding and its remedy.
        compared: expected against actual, always, also when the check passed.
        columns: names of the columns of offenders.
        offenders: the rows at fault; never a credential nor the text of a document.
        severity: of a failure. WARN: a person should act, but searches stay correct.
        notes: more for the run page, by title.
    """

    passed: bool
    description: str
    compared: tuple[Compared, ...]
    columns: tuple[str, ...] = ()
    offenders: tuple[tuple[Cell, ...], ...] = ()
    severity: Severity = "ERROR"
    notes: Mapping[str, Cell] = field(default_factory=dict)
