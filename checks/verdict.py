"""The verdict of a check, in the same form for all checks and without Dagster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["ERROR", "WARN"]
Cell: TypeAlias = str | int | float | bool | None
_COMMAND = re.compile("`rag-assets [^`]*`")


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
        description: the finding in one line, with the placeholder TENANT in commands.
        compared: comparisons of expected with actual values, also if the check passed.
        columns: names of the columns of offenders.
        offenders: faulty rows, without credentials and texts of documents.
        severity: severity of a failure; WARN means that searches stay correct, but a person should
            act.
        notes: further values for the run page, by title.
        mend: remedy for a failure: actions and commands; empty if the description contains them.
    """

    passed: bool
    description: str
    compared: tuple[Compared, ...]
    columns: tuple[str, ...] = ()
    offenders: tuple[tuple[Cell, ...], ...] = ()
    severity: Severity = "ERROR"
    notes: Mapping[str, Cell] = field(default_factory=dict)
    mend: str = ""

    def for_tenant(self, tenant_id: str) -> Verdict:
        """Return the verdict with the tenant's id in its commands.

        The remedy of a failure is added to the description.
        """
        # Names of documents in the texts stay unchanged.
        description, mend = (
            _COMMAND.sub(lambda command: command[0].replace("TENANT", tenant_id), text)
            for text in (self.description, self.mend)
        )
        if not self.passed and mend not in description:
            description = f"{description}; {mend}"
        return replace(self, description=description, mend=mend)
