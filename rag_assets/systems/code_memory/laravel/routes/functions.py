"""Laravel functions that return paths, settings and services, as far as the code shows them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.laravel.routes import builtins
from rag_assets.systems.code_memory.laravel.routes.evaluation import evaluate
from rag_assets.systems.code_memory.laravel.routes.frames import Arguments, Frame
from rag_assets.systems.code_memory.laravel.routes.marks import ROUTER_TYPES
from rag_assets.systems.code_memory.laravel.routes.program import ROOT
from rag_assets.systems.code_memory.laravel.routes.values import (
    ROUTER,
    Instance,
    Unknown,
    Value,
    array,
    text_of,
)

if TYPE_CHECKING:
    from rag_assets.systems.code_memory.laravel.routes.machine import Machine

FOLDERS: Final = {
    "base_path": "",
    "app_path": "app",
    "basepath": "",
    "path": "app",
    "config_path": "config",
    "configpath": "config",
    "database_path": "database",
    "resource_path": "resources",
    "resourcepath": "resources",
    "public_path": "public",
    "storage_path": "storage",
}
"""Folders below the application's root, by the functions and methods that return them."""


def called(machine: Machine, name: str, given: Arguments, frame: Frame) -> Value:
    """Return the result of a function.

    Args:
        name: the name without its namespace.
    """
    lower = name.lower()
    own = machine.program.functions.get(lower)
    if own is not None:
        return machine.function(own, None, given, frame)
    if lower in FOLDERS:
        return path_below(machine, FOLDERS[lower], given, frame)
    known = _FUNCTIONS.get(lower)
    if known is not None:
        return known(machine, given, frame)
    machine.spend(sum(len(one) for one in given.all if isinstance(one, str | dict)) // 10)
    return builtins.called(lower, given.given)


def path_below(machine: Machine, folder: str, given: Arguments, frame: Frame) -> Value:
    """Return a path in a folder of the application.

    Args:
        folder: the folder below its root.
        given: arguments, first the path below the folder.
        frame: the frame of the calling file.
    """
    below = text_of(given.at(0, "path", ""))
    if below is None:
        return Unknown("a path")
    root = machine.program.root_of(frame.path)
    return f"{ROOT}{root}{posixpath.join(folder, below.lstrip('/'))}".rstrip("/")


def setting(machine: Machine, given: Arguments, frame: Frame) -> Value:
    """Return the value of a setting in its file, or else the default that the call states."""
    name = given.at(0, "key")
    if not isinstance(name, str):
        return Unknown("config()")
    machine.spend(machine.program.settings_in(name))
    found = machine.program.setting(name, frame.path)
    if found is None:
        return Unknown(f"config('{name}')")
    path, value = found
    if isinstance(value, dict) and "env" in value:
        machine.assume(f"the default of config('{name}')")
        return value["default"]
    if isinstance(value, dict) and "of" in value:
        machine.assume(f"what config('{name}') computes")
        return evaluate(machine, value, Frame(path, "", None, {}, frame.context, frame.depth))
    if isinstance(value, dict):
        return {
            key: setting(machine, Arguments((f"{name}.{key}",)), frame) for key in value["keys"]
        }
    return array(value) if isinstance(value, list) else value


def names_router(given: Arguments) -> bool:
    """Return whether a call asks the container for the router."""
    named = given.at(0)
    return isinstance(named, str) and (named == "router" or named in ROUTER_TYPES)


def _application(machine: Machine, given: Arguments, _frame: Frame) -> Value:
    named = given.at(0, "abstract")
    if names_router(given):
        return ROUTER
    known = isinstance(named, str) and named in machine.program.classes
    return Instance(named) if known else Unknown("app()")


def _config(machine: Machine, given: Arguments, frame: Frame) -> Value:
    return setting(machine, given, frame) if given.all else Unknown("config()")


def _environment(machine: Machine, given: Arguments, _frame: Frame) -> Value:
    machine.assume("what the environment does not say")
    return given.at(1, "default")


def _glob(machine: Machine, given: Arguments, frame: Frame) -> Value:
    machine.spend(len(machine.program.paths))
    pattern = given.at(0)
    if not isinstance(pattern, str):
        return Unknown("glob()")
    return array(ROOT + path for path in machine.program.matching(pattern, frame.path))


def _module(machine: Machine, given: Arguments, _frame: Frame) -> Value:
    """Return the path of a file in a module: `module_path('Blog', '/routes/web.php')`."""
    machine.spend(len(machine.program.paths))
    name, below = text_of(given.at(0)), text_of(given.at(1, default=""))
    wanted = f"{name}/{(below or '').lstrip('/')}".lower()
    found = [one for one in machine.program.paths if f"/{one.lower()}".endswith(f"/{wanted}")]
    return ROOT + found[0] if len(found) == 1 else Unknown("module_path()")


def _tap(machine: Machine, given: Arguments, frame: Frame) -> Value:
    machine.call(given.at(1), Arguments(given.given[:1]), frame)
    return given.at(0)


_FUNCTIONS: Final[Mapping[str, Callable[[Machine, Arguments, Frame], Value]]] = {
    "app": _application,
    "resolve": _application,
    "config": _config,
    "env": _environment,
    "glob": _glob,
    "module_path": _module,
    "tap": _tap,
}
