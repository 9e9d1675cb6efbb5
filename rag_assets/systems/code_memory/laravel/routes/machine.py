"""Evaluates the statements that create routes, without executing any code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.laravel.routes import chains
from rag_assets.systems.code_memory.laravel.routes.drafts import Context
from rag_assets.systems.code_memory.laravel.routes.evaluation import evaluate
from rag_assets.systems.code_memory.laravel.routes.frames import (
    DEEPEST,
    MOST_STEPS,
    MOST_STEPS_OF_ONE,
    Arguments,
    Exhausted,
    Frame,
)
from rag_assets.systems.code_memory.laravel.routes.guards import Guards
from rag_assets.systems.code_memory.laravel.routes.marks import ROUTER_TYPES
from rag_assets.systems.code_memory.laravel.routes.model import Evidence, Unresolved
from rag_assets.systems.code_memory.laravel.routes.program import Function, Program
from rag_assets.systems.code_memory.laravel.routes.resources import Naming, Pending, Registrar
from rag_assets.systems.code_memory.laravel.routes.router import Router
from rag_assets.systems.code_memory.laravel.routes.values import (
    ROUTER,
    Body,
    Closure,
    Instance,
    Unknown,
    Value,
    truth_of,
)


def _is_class(program: Program) -> Callable[[str], bool]:
    return lambda name: "\\" in name or name in program.classes


_STEPS_OF_RESOURCE = 100
_ASSUMED = 20
"""Maximum number of assumptions recorded for one value."""

_GOES_ON = object()
"""Result of a body that ends without `return`."""


class Machine:
    """The state of an evaluation of a repository.

    Attributes:
        program: the repository.
        router: contains the routes.
        naming: the naming rules of resources.
        guards: aliases and groups of middleware.
        macros: the macros of the router, of routes and of registrars, by name.
        deferred: closures that a provider passed to `routes()`, each with the statement.
        unresolved: statements that could not be resolved.
        loaded: paths of files that were evaluated.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.router = Router(_is_class(program), program.version)
        self.naming = Naming()
        self.guards = Guards()
        self.macros: dict[tuple[str, str], Closure] = {}
        self.deferred: list[tuple[Closure, Evidence]] = []
        self.unresolved: list[Unresolved] = []
        self.loaded: set[str] = set()
        self._loading: list[str] = []
        self._assumed: list[str] = []
        self._left = MOST_STEPS
        self._left_of_one = MOST_STEPS_OF_ONE

    def function(self, function: Function, this: Value, given: Arguments, frame: Frame) -> Value:
        """Evaluate a function or a method, and return its result."""
        inner = Frame(
            path=function.body.path,
            symbol=function.body.symbol,
            this=this,
            variables={},
            # The call of a function is not a group around the routes that the function creates.
            context=replace(frame.context, evidence=frame.context.evidence[:-1]),
            depth=frame.depth + 1,
        )
        self._bind(function.parameters, given, inner)
        return self._returned(function.body, inner)

    def closure(
        self, closure: Closure, given: Arguments, frame: Frame, *, this: Value = None
    ) -> Value:
        """Evaluate a closure, and return its result."""
        if closure.body is None:
            return Unknown("a function")
        self.spend(len(closure.variables) // 10)
        inner = Frame(
            path=closure.body.path,
            symbol=closure.body.symbol,
            this=closure.this if this is None else this,
            variables=dict(closure.variables),
            context=frame.context,
            depth=frame.depth + 1,
        )
        self._bind(closure.parameters, given, inner)
        return self._returned(closure.body, inner)

    def load(self, path: Value, frame: Frame, *, stated: bool) -> Value:
        """Evaluate a file.

        Args:
            path: the path of the file, as evaluated.
            frame: the frame of the statement that loads it.
            stated: whether the file is declared to contain routes.
        """
        if not isinstance(path, str):
            why = path.why if isinstance(path, Unknown) else "no text"
            self.miss(f"the path of a file is computed: {why}", frame)
            return Unknown("a file")
        found = self.program.file_of(path, frame.path)
        if found is None:
            if stated or "route" in path.lower():
                self.miss("a file that is not in the repository", frame)
            return Unknown("a file")
        if found in self._loading:
            return Unknown("a file that loads itself")
        self.spend(len(frame.variables) // 10)
        variables = {**frame.variables, "router": ROUTER}
        inner = Frame(found, "", frame.this, variables, frame.context, frame.depth + 1)
        self.loaded.add(found)
        self._loading.append(found)
        try:
            return self._returned(Body(found, "", 0), inner)
        finally:
            self._loading.pop()

    def begin(self) -> None:
        """Reset the limits that count per provider, before the next provider is evaluated."""
        self._left_of_one = MOST_STEPS_OF_ONE

    def spend(self, steps: int) -> None:
        """Count evaluation steps.

        Raises:
            Exhausted: the limit is reached.
        """
        self._left -= steps
        self._left_of_one -= steps
        if min(self._left, self._left_of_one) < 0:
            raise Exhausted

    def chain(self, node: Mapping[str, Any], frame: Frame) -> Value:
        """Return the value of a chain of calls."""
        return chains.run(self, node, frame)

    def call(self, called: Value, given: Arguments, frame: Frame) -> Value:
        """Evaluate a callable value, and return its result."""
        return chains.call_back(self, called, given, frame)

    def miss(self, reason: str, frame: Frame) -> None:
        """Record that a part of the current statement is unresolved."""
        if frame.context.evidence:
            self.unresolved.append(Unresolved(reason, frame.context.evidence[-1]))

    def assume(self, *reasons: str) -> None:
        """Record assumptions behind the value of the current statement."""
        self._assumed += reasons

    def mark(self) -> int:
        """Return the number of recorded assumptions; pass it to assumed_since."""
        return len(self._assumed)

    def assumed_since(self, mark: int) -> tuple[str, ...]:
        """Return the assumptions that were recorded after a call of mark()."""
        return tuple(dict.fromkeys(self._assumed[mark:]))[:_ASSUMED]

    def context(self, frame: Frame) -> Context:
        """Return the context of the current statement, with its assumptions."""
        missing = tuple(dict.fromkeys((*frame.context.missing, *self._assumed)))[:_ASSUMED]
        return replace(frame.context, missing=missing)

    @contextmanager
    def within(self, frame: Frame) -> Iterator[None]:
        """Make the current statement the group of all routes that are created in the block."""
        outer, assumed = frame.context, self._assumed
        frame.context, self._assumed = self.context(frame), []
        try:
            yield
        finally:
            frame.context, self._assumed = outer, assumed

    def settle(self, value: Value, frame: Frame) -> None:
        """Register a pending resource at the end of its statement."""
        if not isinstance(value, Pending):
            return
        computed = [key for key, held in value.options.items() if isinstance(held, Unknown)]
        if not isinstance(value.name, str) or computed:
            what = ", ".join(computed) if isinstance(value.name, str) else "the name"
            self.miss(f"a resource of which {what} is computed", frame)
        else:
            self.spend(_STEPS_OF_RESOURCE)
            Registrar(self.router, self.naming).register(value, self.context(frame))

    def _bind(
        self, parameters: Sequence[Mapping[str, Any]], given: Arguments, frame: Frame
    ) -> None:
        for position, one in enumerate(parameters):
            missing = Unknown(f"${one['name']}")
            value = given.at(position, one["name"], missing)
            if value is missing and "default" in one:
                value = evaluate(self, one["default"], frame)
            elif value is missing and one["type"] in ROUTER_TYPES:
                value = ROUTER
            elif value is missing and one["type"] in self.program.classes:
                value = Instance(one["type"])
            frame.variables[one["name"]] = value

    def _returned(self, body: Body, frame: Frame) -> Value:
        value = self._body(body, frame)
        return None if value is _GOES_ON else value

    def _body(self, body: Body, frame: Frame) -> Value:
        """Evaluate the statements of a body; return its result, or _GOES_ON."""
        if frame.depth > DEEPEST:
            self.miss("what lies too deep", frame)
            return _GOES_ON
        outer, assumed = frame.context, self._assumed
        frame.depth += 1
        try:
            for fact in self.program.body(body):
                self.spend(10 + len(outer.evidence))
                evidence = (*outer.evidence, Evidence(frame.path, fact))
                frame.context = replace(frame.context, evidence=evidence)
                self._assumed = []
                value = self._statement(fact, frame)
                if value is not _GOES_ON:
                    return value
        finally:
            frame.context, self._assumed = outer, assumed
            frame.depth -= 1
        return _GOES_ON

    def _statement(self, fact: Fact, frame: Frame) -> Value:
        values = fact.values
        op = values["op"]
        if op in {"do", "return"}:
            value = evaluate(self, values["value"], frame)
            self.settle(value, frame)
            return value if op == "return" else _GOES_ON
        if op == "if":
            return self._branches(values, frame)
        body = Body(frame.path, frame.symbol, values["body"])
        outer = frame.context
        # Loops and conditions are not groups, so routes do not list them as evidence.
        frame.context = replace(outer, evidence=outer.evidence[:-1])
        try:
            if op == "each":
                return self._each(values, body, frame, outer)
            if values["repeats"]:
                self.miss_at("a loop that only running it would end", outer)
                frame.context = replace(frame.context, conditional=True)
            return self._body(body, frame)
        finally:
            frame.context = outer

    def miss_at(self, reason: str, context: Context) -> None:
        """Record that the last statement of a context has an unresolved part."""
        self.unresolved.append(Unresolved(reason, context.evidence[-1]))

    def _branches(self, values: Mapping[str, Any], frame: Frame) -> Value:
        outer = frame.context
        plain = replace(outer, evidence=outer.evidence[:-1])
        returns = []
        for condition, block in [*values["branches"], [True, values.get("otherwise")]]:
            truth = truth_of(evaluate(self, condition, frame))
            if truth is False or block is None:
                continue
            sure = truth is True and frame.context is outer
            frame.context = plain if sure else replace(plain, conditional=True)
            value = self._branch(Body(frame.path, frame.symbol, block), frame, sure=sure)
            if sure:
                return value
            returns.append(value is not _GOES_ON)
            if truth is True:
                break
        frame.context = replace(outer, conditional=outer.conditional or any(returns))
        return _GOES_ON

    def _branch(self, body: Body, frame: Frame, *, sure: bool) -> Value:
        """Evaluate a branch; if it may not run, the variables that it sets become unknown."""
        self.spend(len(frame.variables) // 10)
        before = dict(frame.variables)
        value = self._body(body, frame)
        if not sure:
            changed = {
                name: Unknown(f"${name}, which a condition decides")
                for name, held in frame.variables.items()
                if name not in before or before[name] is not held
            }
            frame.variables = {**before, **changed}
        return value

    def _each(self, values: Mapping[str, Any], body: Body, frame: Frame, outer: Context) -> Value:
        over = evaluate(self, values["over"], frame)
        if not isinstance(over, dict):
            self.miss_at("a loop over what is computed", outer)
            frame.context = replace(frame.context, conditional=True)
            over = {Unknown("a key"): Unknown("an element")}
        for key, item in over.items():
            frame.variables |= {values["key"]: key} if values["key"] else {}
            frame.variables[values["item"]] = item
            value = self._body(body, frame)
            if value is not _GOES_ON:
                return value
        return _GOES_ON
