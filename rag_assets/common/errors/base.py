"""The root of the tree of errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem of the API.

    Attributes:
        name: in its type.
        detail: for the caller, in place of the error's, which is for the operator.
    """

    status: int
    name: str
    title: str
    detail: str | None = None


class RagAssetsError(Exception):
    """Base of all expected errors.

    Args:
        message: what is wrong and where, in one line.
        hint: the remedy, in one line.

    Attributes:
        exit_status: of a command that fails with it.
        problem_kind: what the API answers; None if its table of kinds says it (api/problems.py).
    """

    exit_status = 1
    problem_kind: ClassVar[ProblemKind | None] = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def advice(self) -> str:
        """Message and hint in one line."""
        return f"{self.message}; {self.hint}" if self.hint else self.message
