"""The classes behind middleware names in a repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rag_assets.systems.code_memory.laravel.routes.guards import Configuration
from rag_assets.systems.code_memory.laravel.routes.machine import Machine

_WITHOUT_KERNEL: Final = 11
"""From this version on, the framework itself names its middleware."""


def middleware_of(machine: Machine) -> Mapping[str, tuple[str, ...]]:
    """Return the classes of each alias and group of middleware, in order.

    They come from kernels, from `withMiddleware`, or from router calls in providers. Parameters are
    left out: `throttle:api` in a group is the class of `throttle`. Names that only a package
    defines are left out.

    Args:
        machine: after a full run of a repository; read its routes first.
    """
    late = (machine.program.version or 0) >= _WITHOUT_KERNEL
    if late and not machine.guards.aliases:
        Configuration().applied_to(machine.guards)
    return machine.guards.classes()
