"""The root of the tree of errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem in API responses.

    Attributes:
        name: the last part of the problem's type.
        detail: text for the caller; replaces the error's message, which is for the operator.
    """

    status: int
    name: str
    title: str
    detail: str | None = None


class RagAssetsError(Exception):
    """Base of all expected errors.

    Args:
        message: the problem and its place, in one line.
        hint: the remedy, in one line.

    Attributes:
        exit_status: exit status of a command that fails with this error.
        problem_kind: the API's response; None if the table in api/problems.py defines it.
    """

    exit_status = 1
    problem_kind: ClassVar[ProblemKind | None] = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def advice(self) -> str:
        """Return message and hint in one line."""
        return f"{self.message}; {self.hint}" if self.hint else self.message
