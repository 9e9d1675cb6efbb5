"""Signatures of client methods, taken from the operations that they call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def described_by(operation: Callable[..., Any]) -> Callable[[F], F]:
    """Give a method the name, docstring and, after `self`, the parameters of an operation."""

    def describe(method: F) -> F:
        taken = inspect.signature(operation)
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        # `functools.wraps` is not used, because a bound method would then appear without its first
        # argument.
        described: Any = method
        described.__name__ = operation.__name__
        described.__doc__ = operation.__doc__
        described.__signature__ = taken.replace(parameters=[itself, *taken.parameters.values()])
        return method

    return describe
