"""Values of all expressions except chains of calls."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rag_assets.systems.code_memory.laravel.routes.expressions import Json
from rag_assets.systems.code_memory.laravel.routes.frames import Frame
from rag_assets.systems.code_memory.laravel.routes.groups import joined
from rag_assets.systems.code_memory.laravel.routes.program import ROOT, Program
from rag_assets.systems.code_memory.laravel.routes.values import (
    ROUTER,
    Body,
    Closure,
    Instance,
    Unknown,
    Value,
    bounded,
    key_of,
    listed,
    text_of,
    truth_of,
)

_ROUTERS = frozenset({"router", "Illuminate\\Routing\\Router"})


class Machine(Protocol):
    """The part of the machine's interface that the evaluation of expressions needs."""

    program: Program

    def chain(self, node: Mapping[str, Any], frame: Frame) -> Value:
        """Return the value of a chain of calls."""

    def load(self, path: Value, frame: Frame, *, stated: bool) -> Value:
        """Evaluate a file."""

    def assume(self, *reasons: str) -> None:
        """Record assumptions behind the value of the current statement."""

    def assumed_since(self, mark: int) -> tuple[str, ...]:
        """Return the assumptions that were recorded after a call of mark()."""

    def spend(self, steps: int) -> None:
        """Count steps against the limit of a run."""

    def mark(self) -> int:
        """Return the number of recorded assumptions; pass it to assumed_since."""


def evaluate(machine: Machine, node: Json, frame: Frame) -> Value:
    """Return the value of an expression.

    Args:
        machine: evaluates calls and files.
        node: the expression as JSON.
    """
    machine.spend(1)
    if not isinstance(node, dict):
        return bounded(node)
    read = _READERS.get(node["of"])
    return Unknown("syntax") if read is None else bounded(read(machine, node, frame))


def _array(machine: Machine, node: Json, frame: Frame) -> Value:
    found: dict[str | int, Value] = {}
    following = 0
    for key, held in node["items"]:
        if isinstance(held, dict) and held.get("of") == "spread":
            unpacked = listed(evaluate(machine, held["value"], frame))
            machine.spend(len(unpacked))
            for value in unpacked:
                found[following] = value
                following += 1
            continue
        value = evaluate(machine, held, frame)
        named = following if key is None else key_of(evaluate(machine, key, frame))
        if named is None:
            return Unknown("a key of an array")
        found[named] = value
        if isinstance(named, int):
            following = max(following, named + 1)
    return found


def _join(machine: Machine, node: Json, frame: Frame) -> Value:
    return joined(*(evaluate(machine, part, frame) for part in node["parts"]))


def _variable(machine: Machine, node: Json, frame: Frame) -> Value:
    name = node["name"]
    if name == "this":
        return frame.this if frame.this is not None else Unknown("$this")
    if name in frame.variables:
        machine.assume(*frame.assumed.get(name, ()))
        return frame.variables[name]
    return ROUTER if name == "router" else Unknown(f"${name}")


def _property(machine: Machine, node: Json, frame: Frame) -> Value:
    name = node["name"]
    held = evaluate(machine, node["object"], frame)
    if name == "router":
        return ROUTER
    if name in {"value", "name"} and isinstance(held, str | int):
        return held
    if not isinstance(held, Instance):
        return Unknown(f"the property {name}")
    found = machine.program.member(held.name, name)
    if found is None:
        # Laravel's own providers have a null namespace.
        return None if name == "namespace" else Unknown(f"the property {name}")
    path, value = found
    inner = Frame(path, f"{held.name}::", held, {}, frame.context, frame.depth)
    return evaluate(machine, value, inner)


def _constant(machine: Machine, node: Json, frame: Frame) -> Value:
    owner, name = node["class"], node["name"]
    if owner.lower() in {"self", "static"}:
        owner = frame.this.name if isinstance(frame.this, Instance) else frame.owner
    value = machine.program.constant(owner, name) if owner else None
    return Unknown(f"the constant {name}") if value is None else value


def _item(machine: Machine, node: Json, frame: Frame) -> Value:
    held = evaluate(machine, node["array"], frame)
    key = evaluate(machine, node["key"], frame)
    if isinstance(held, dict):
        named = None if isinstance(key, Unknown) else key_of(key)
        return Unknown("a key of an array") if named is None else held.get(named)
    if text_of(key) in _ROUTERS:
        return ROUTER
    return held if isinstance(held, Unknown) else Unknown("an element")


def _choice(machine: Machine, node: Json, frame: Frame) -> Value:
    condition = evaluate(machine, node["condition"], frame)
    truth = truth_of(condition)
    if truth is None:
        return Unknown("a choice")
    if truth:
        return evaluate(machine, node["yes"], frame) if "yes" in node else condition
    return evaluate(machine, node["no"], frame)


def _default(machine: Machine, node: Json, frame: Frame) -> Value:
    value = evaluate(machine, node["value"], frame)
    return evaluate(machine, node["otherwise"], frame) if value is None else value


def _not(machine: Machine, node: Json, frame: Frame) -> Value:
    truth = truth_of(evaluate(machine, node["value"], frame))
    return Unknown("a condition") if truth is None else not truth


def _closure(machine: Machine, node: Json, frame: Frame) -> Value:
    if not node["block"]:
        return Closure(None)
    # As in PHP, variables are bound with their current values.
    machine.spend(len(frame.variables) // 10)
    body = Body(frame.path, frame.symbol, node["block"])
    return Closure(body, tuple(node["parameters"]), dict(frame.variables), frame.this)


def _new(_machine: Machine, node: Json, _frame: Frame) -> Value:
    return Instance(node["class"])


def _load(machine: Machine, node: Json, frame: Frame) -> Value:
    return machine.load(evaluate(machine, node["path"], frame), frame, stated=False)


def _set(machine: Machine, node: Json, frame: Frame) -> Value:
    mark = machine.mark()
    value = evaluate(machine, node["value"], frame)
    frame.variables[node["name"]] = value
    frame.assumed[node["name"]] = machine.assumed_since(mark)
    return value


_READERS: Mapping[str, Callable[[Machine, Json, Frame], Value]] = {
    "array": _array,
    "join": _join,
    "variable": _variable,
    "property": _property,
    "constant": _constant,
    "directory": lambda _, __, frame: ROOT + posixpath.dirname(frame.path),
    "file": lambda _, __, frame: ROOT + frame.path,
    "item": _item,
    "choice": _choice,
    "default": _default,
    "not": _not,
    "chain": lambda machine, node, frame: machine.chain(node, frame),
    "new": _new,
    "closure": _closure,
    "load": _load,
    "set": _set,
    "computed": lambda _, node, __: Unknown(node["why"]),
}
