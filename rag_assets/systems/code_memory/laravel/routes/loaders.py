"""Calls of providers, packages and the application that load route files, or configure loading."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.laravel.routes import packages, registrars
from rag_assets.systems.code_memory.laravel.routes.frames import Arguments, Frame
from rag_assets.systems.code_memory.laravel.routes.guards import Configuration
from rag_assets.systems.code_memory.laravel.routes.program import ROOT
from rag_assets.systems.code_memory.laravel.routes.values import Closure, Value, listed, text_of

if TYPE_CHECKING:
    from rag_assets.systems.code_memory.laravel.routes.machine import Machine


def _load(machine: Machine, given: Arguments, frame: Frame) -> None:
    with machine.within(frame):
        machine.load(given.at(0, "path"), frame, stated=True)


def _defer(machine: Machine, given: Arguments, frame: Frame) -> None:
    last = frame.context.evidence[-1:]
    machine.deferred += [(one, at) for one in given.all if isinstance(one, Closure) for at in last]


def _package(machine: Machine, given: Arguments, frame: Frame) -> None:
    """Load the route files that a package names: `hasRoutes('web', 'api')`."""
    folder = posixpath.dirname(posixpath.dirname(frame.path))
    with machine.within(frame):
        for one in given.all:
            for name in listed(one):
                machine.load(f"{ROOT}{folder}/routes/{text_of(name)}.php", frame, stated=True)


def _channels(machine: Machine, path: Value, frame: Frame) -> None:
    """Add the routes that authorize listeners of channels, if a channels file exists."""
    if isinstance(path, str) and machine.program.file_of(path, frame.path) is not None:
        packages.broadcasting(machine, "routes", Arguments(()), frame)


def _broadcasting(machine: Machine, given: Arguments, frame: Frame) -> None:
    packages.broadcasting(machine, "routes", Arguments(given.given[1:]), frame)


def _configured(machine: Machine, given: Arguments, frame: Frame) -> None:
    """Apply `withRouting` of Laravel 11 and later."""
    names = ("using", "web", "api", "commands", "channels", "pages", "health", "apiPrefix", "then")
    told = {name: given.at(position, name) for position, name in enumerate(names)}
    with machine.within(frame):
        if told["using"] is not None:
            machine.call(told["using"], Arguments(()), frame)
            _channels(machine, told["channels"], frame)
            return
        prefix = "api" if told["apiPrefix"] is None else told["apiPrefix"]
        for path in listed(told["api"]):
            attributes = {"middleware": ["api"], "prefix": prefix}
            registrars.group(machine, attributes, path, frame)
        if isinstance(told["health"], str):
            machine.router.add(("GET",), told["health"], Closure(None), machine.context(frame))
        for path in listed(told["web"]):
            registrars.group(machine, {"middleware": ["web"]}, path, frame)
        machine.call(told["then"], Arguments(()), frame)
        _channels(machine, told["channels"], frame)


def _guarded(machine: Machine, given: Arguments, frame: Frame) -> None:
    """Apply `withMiddleware` of Laravel 11 and later."""
    configuration = Configuration()
    machine.call(given.at(0, "callback"), Arguments((configuration,)), frame)
    configuration.applied_to(machine.guards)


LOADERS: Final[Mapping[str, Callable[[Machine, Arguments, Frame], None]]] = {
    "loadroutesfrom": _load,
    "loadroutesusing": _defer,
    "routes": _defer,
    "hasroute": _package,
    "hasroutes": _package,
    "withrouting": _configured,
    "withbroadcasting": _broadcasting,
    "withmiddleware": _guarded,
}
"""Functions that load route files, by the name of the call in lower case."""
