"""The root of the tree of errors."""

from __future__ import annotations


class RagAssetsError(Exception):
    """Base of all expected errors.

    Args:
        message: what is wrong and where, in one line.
        hint: the remedy, in one line.

    Attributes:
        exit_status: of a command that fails with it.
    """

    exit_status = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def advice(self) -> str:
        """Message and hint in one line."""
        return f"{self.message}; {self.hint}" if self.hint else self.message
