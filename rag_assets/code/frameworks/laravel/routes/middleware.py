"""The classes that the names of middleware stand for in a repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rag_assets.code.frameworks.laravel.routes.guards import Configuration
from rag_assets.code.frameworks.laravel.routes.machine import Machine

_WITHOUT_KERNEL: Final = 11
"""Since this version, the framework itself names its middleware."""


def middleware_of(machine: Machine) -> Mapping[str, tuple[str, ...]]:
    """The classes of each alias and each group of middleware, in order.

    Kernels state them, or `withMiddleware`, or calls on the router by providers. Parameters are
    left out: `throttle:api` in a group is the class that `throttle` stands for. A name that only
    a package explains is not here.

    Args:
        machine: that ran all of a repository; its routes are to be read before.
    """
    late = (machine.program.version or 0) >= _WITHOUT_KERNEL
    if late and not machine.guards.aliases:
        Configuration().applied_to(machine.guards)
    return machine.guards.classes()
