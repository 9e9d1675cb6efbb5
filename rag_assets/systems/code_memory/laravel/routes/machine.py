"""Evaluation of the statements that create routes; the code itself is not executed."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.laravel.routes.calls import call_member, evaluate_chain
from rag_assets.systems.code_memory.laravel.routes.expressions import Json
from rag_assets.systems.code_memory.laravel.routes.model import (
    MAX_BODY_DEPTH,
    MAX_PROVIDER_STEPS,
    MAX_STEPS,
    ROUTER,
    Arguments,
    CallFrame,
    ClosureValue,
    Exhausted,
    Instance,
    LaravelRoutes,
    LocatedFact,
    StatementBlock,
    StatementContext,
    Unknown,
    UnresolvedRouting,
    Value,
    join_texts,
    limit_size,
    list_values,
    to_array_key,
    to_bool,
    to_text,
)
from rag_assets.systems.code_memory.laravel.routes.program import (
    ROOT,
    LaravelProgram,
    is_test,
    iter_providers,
)
from rag_assets.systems.code_memory.laravel.routes.reader import (
    DIRECT,
    FACADES,
    RESOURCES,
    ROUTER_TYPES,
    VERBS,
)
from rag_assets.systems.code_memory.laravel.routes.router import (
    PendingResource,
    Router,
    register_resource,
)
from rag_assets.systems.code_memory.symbols.model import FileFacts

_ROUTE_PROVIDER: Final = "Illuminate\\Foundation\\Support\\Providers\\RouteServiceProvider"
_CREATING_CALLS: Final = VERBS | RESOURCES | DIRECT | {"group"}
_ROUTERS = frozenset({"router", "Illuminate\\Routing\\Router"})


def _evaluate_array(machine: Machine, node: Json) -> Value:
    array: dict[str | int, Value] = {}
    next_index = 0
    for key, item in node["items"]:
        if isinstance(item, dict) and item.get("of") == "spread":
            unpacked = list_values(machine.evaluate(item["value"]))
            machine.spend_steps(len(unpacked))
            for value in unpacked:
                array[next_index] = value
                next_index += 1
            continue
        value = machine.evaluate(item)
        key_value = next_index if key is None else to_array_key(machine.evaluate(key))
        if key_value is None:
            return Unknown("a key of an array")
        array[key_value] = value
        if isinstance(key_value, int):
            next_index = max(next_index, key_value + 1)
    return array


def _evaluate_variable(machine: Machine, node: Json) -> Value:
    name, frame = node["name"], machine.frame
    if name == "this":
        return frame.this if frame.this is not None else Unknown("$this")
    if name in frame.variables:
        machine.record_assumptions(*frame.assumed.get(name, ()))
        return frame.variables[name]
    return ROUTER if name == "router" else Unknown(f"${name}")


def _evaluate_property(machine: Machine, node: Json) -> Value:
    name = node["name"]
    object_ = machine.evaluate(node["object"])
    if name == "router":
        return ROUTER
    if name in {"value", "name"} and isinstance(object_, str | int):
        return object_
    is_object = isinstance(object_, Instance)
    property_ = machine.program.find_property(object_.name, name) if is_object else None
    if property_ is not None:
        path, value = property_
        return machine.evaluate_in_file(value, path, object_)
    # Laravel's own providers have a null namespace.
    return None if is_object and name == "namespace" else Unknown(f"the property {name}")


def _evaluate_constant(machine: Machine, node: Json) -> Value:
    owner, name, this = node["class"], node["name"], machine.frame.this
    if owner.lower() in {"self", "static"}:
        owner = this.name if isinstance(this, Instance) else machine.frame.owner
    value = machine.program.find_constant(owner, name) if owner else None
    return Unknown(f"the constant {name}") if value is None else value


def _evaluate_item(machine: Machine, node: Json) -> Value:
    array = machine.evaluate(node["array"])
    key = machine.evaluate(node["key"])
    if isinstance(array, dict):
        key_value = None if isinstance(key, Unknown) else to_array_key(key)
        return Unknown("a key of an array") if key_value is None else array.get(key_value)
    if to_text(key) in _ROUTERS:
        return ROUTER
    return array if isinstance(array, Unknown) else Unknown("an element")


def _evaluate_choice(machine: Machine, node: Json) -> Value:
    condition = machine.evaluate(node["condition"])
    truth = to_bool(condition)
    if truth is None:
        return Unknown("a choice")
    if truth:
        return machine.evaluate(node["yes"]) if "yes" in node else condition
    return machine.evaluate(node["no"])


def _evaluate_null_coalescing(machine: Machine, node: Json) -> Value:
    value = machine.evaluate(node["value"])
    return machine.evaluate(node["otherwise"]) if value is None else value


def _evaluate_not(machine: Machine, node: Json) -> Value:
    truth = to_bool(machine.evaluate(node["value"]))
    return Unknown("a condition") if truth is None else not truth


def _evaluate_closure(machine: Machine, node: Json) -> Value:
    if not node["block"]:
        return ClosureValue(None)
    # As in PHP, variables are bound with their current values.
    frame = machine.frame
    machine.spend_steps(len(frame.variables) // 10)
    body, parameters = frame.get_block(node["block"]), tuple(node["parameters"])
    return ClosureValue(body, parameters, dict(frame.variables), frame.this)


_READERS: Mapping[str, Callable[[Machine, Json], Value]] = {
    "array": _evaluate_array,
    "join": lambda machine, node: join_texts(*map(machine.evaluate, node["parts"])),
    "variable": _evaluate_variable,
    "property": _evaluate_property,
    "constant": _evaluate_constant,
    "directory": lambda machine, _: ROOT + posixpath.dirname(machine.frame.path),
    "file": lambda machine, _: ROOT + machine.frame.path,
    "item": _evaluate_item,
    "choice": _evaluate_choice,
    "default": _evaluate_null_coalescing,
    "not": _evaluate_not,
    "chain": evaluate_chain,
    "new": lambda _, node: Instance(node["class"]),
    "closure": _evaluate_closure,
    "load": lambda machine, node: machine.load_file(
        machine.evaluate(node["path"]), is_route_file=False
    ),
    "set": lambda machine, node: machine.set_variable(node["name"], node["value"]),
    "computed": lambda _, node: Unknown(node["why"]),
}


_RESOURCE_STEPS: Final = 100
_MAX_ASSUMPTIONS = 20
"""Maximum number of assumptions recorded for one value."""

_NO_RETURN = object()
"""Result of a body that ends without `return`."""


class Machine:
    """An evaluator of the route statements of one repository, with its state.

    Attributes:
        deferred: closures that a provider passed to `routes()`, each with the statement.
        unresolved: statements that could not be evaluated.
    """

    def __init__(self, program: LaravelProgram) -> None:
        self.program = program
        self.router = Router(program.classes, program.version)
        self.frame: CallFrame = CallFrame("")
        self.deferred: list[tuple[ClosureValue, LocatedFact]] = []
        self.unresolved: list[UnresolvedRouting] = []
        self.loaded: set[str] = set()
        self._loading: list[str] = []
        self._assumed: list[str] = []
        self._left = MAX_STEPS
        self._left_of_one = MAX_PROVIDER_STEPS

    def run(self, call: Callable[[], Value], evidence: LocatedFact) -> None:
        """Call code of a provider in a new frame; if a limit stops it, record `evidence`."""
        self.frame = CallFrame(evidence.path)
        self._left_of_one = MAX_PROVIDER_STEPS
        try:
            call()
        except RecursionError:
            self.unresolved.append(UnresolvedRouting("code that is nested too deeply", evidence))
        except Exhausted:
            reason = "the evaluation stopped at its limit of steps"
            self.unresolved.append(UnresolvedRouting(reason, evidence))

    def call_function(self, function: LocatedFact, this: Value, arguments: Arguments) -> Value:
        """Return the result of calling a function or a method of the repository."""
        body = StatementBlock(function.path, function.fact.symbol, 0)
        # The call of a function is not a group around the routes that the function creates.
        context = self._get_outer_context()
        parameters = function.fact.values["parameters"]
        return self._call(body, parameters, arguments, this=this, context=context)

    def call_closure(self, closure: ClosureValue, arguments: Arguments) -> Value:
        """Return the result of calling a closure."""
        if closure.body is None:
            return Unknown("a function")
        self.spend_steps(len(closure.variables) // 10)
        variables, context = dict(closure.variables), self.frame.context
        values = {"this": closure.this, "variables": variables, "context": context}
        return self._call(closure.body, closure.parameters, arguments, **values)

    def call_value(self, callback: Value, arguments: Arguments) -> Value:
        """Return the result of calling a closure, or a pair of an object and a method name."""
        if isinstance(callback, ClosureValue):
            return self.call_closure(callback, arguments)
        if isinstance(callback, dict) and isinstance(callback.get(1), str):
            receiver = callback.get(0)
            value = Instance(receiver) if isinstance(receiver, str) else receiver
            if isinstance(value, Instance):
                return call_member(self, value, callback[1], arguments)
        return Unknown("a function")

    def _call(
        self,
        body: StatementBlock,
        parameters: Sequence[Mapping[str, Any]],
        arguments: Arguments,
        **values: Any,
    ) -> Value:
        """Return the result of a body, evaluated in a new frame with these values."""
        frame = CallFrame(body.path, body.symbol, depth=self.frame.depth + 1, **values)
        with self._enter_frame(frame):
            self._bind_parameters(parameters, arguments)
            value = self._evaluate_body(body)
        return None if value is _NO_RETURN else value

    @contextmanager
    def _enter_frame(self, frame: CallFrame) -> Iterator[None]:
        outer, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = outer

    def _get_outer_context(self) -> StatementContext:
        """Return the context of the current statement without the statement itself."""
        return replace(self.frame.context, evidence=self.frame.context.evidence[:-1])

    def load_file(self, path: Value, *, is_route_file: bool) -> Value:
        """Evaluate a file, and return its return value; a computed path is unresolved.

        Args:
            is_route_file: whether the statement that loads the file marks it as a file of routes.
        """
        if not isinstance(path, str):
            why = path.why if isinstance(path, Unknown) else "no text"
            self.record_unresolved(f"the path of a file is computed: {why}")
            return Unknown("a file")
        file = self.program.find_file(path, self.frame.path)
        if file is None:
            if is_route_file or "route" in path.lower():
                self.record_unresolved("a loaded file is not in the repository")
            return Unknown("a file")
        if file in self._loading:
            return Unknown("a file that loads itself")
        frame = self.frame
        self.spend_steps(len(frame.variables) // 10)
        variables = {**frame.variables, "router": ROUTER}
        values = {"this": frame.this, "variables": variables, "context": frame.context}
        self.loaded.add(file)
        self._loading.append(file)
        try:
            return self._call(StatementBlock(file, "", 0), (), Arguments(), **values)
        finally:
            self._loading.pop()

    def spend_steps(self, steps: int) -> None:
        """Count evaluation steps.

        Raises:
            Exhausted: the limit of the evaluation or of the current provider is reached.
        """
        self._left -= steps
        self._left_of_one -= steps
        if min(self._left, self._left_of_one) < 0:
            raise Exhausted

    def evaluate(self, node: Json) -> Value:
        """Return the value of an expression, given as JSON (see `expressions`)."""
        self.spend_steps(1)
        if not isinstance(node, dict):
            return limit_size(node)
        read = _READERS.get(node["of"])
        return Unknown("syntax") if read is None else limit_size(read(self, node))

    def evaluate_in_file(self, node: Json, path: str, this: Instance | None = None) -> Value:
        """Return the value of an expression in another file, within the class of `this`."""
        symbol = "" if this is None else f"{this.name}::"
        frame = CallFrame(path, symbol, this, {}, self.frame.context, self.frame.depth)
        with self._enter_frame(frame):
            return self.evaluate(node)

    def set_variable(self, name: str, node: Json) -> Value:
        """Set a variable to the value of an expression, and return the value."""
        count = len(self._assumed)
        value = self.evaluate(node)
        assumed = tuple(dict.fromkeys(self._assumed[count:]))[:_MAX_ASSUMPTIONS]
        self.frame.variables[name], self.frame.assumed[name] = value, assumed
        return value

    def record_unresolved(self, reason: str, context: StatementContext | None = None) -> None:
        """Record that the innermost statement of a context could not be resolved, and why."""
        evidence = (context or self.frame.context).evidence
        if evidence:
            self.unresolved.append(UnresolvedRouting(reason, evidence[-1]))

    def record_assumptions(self, *reasons: str) -> None:
        """Record assumptions that the value of the current statement depends on."""
        self._assumed += reasons

    def build_context(self) -> StatementContext:
        """Return the context of the current statement, including its recorded assumptions."""
        missing = dict.fromkeys((*self.frame.context.missing, *self._assumed))
        return replace(self.frame.context, missing=tuple(missing)[:_MAX_ASSUMPTIONS])

    @contextmanager
    def enter_group(self) -> Iterator[None]:
        """Treat the current statement as the group of all routes created in the `with` block."""
        outer, assumed = self.frame.context, self._assumed
        self.frame.context, self._assumed = self.build_context(), []
        try:
            yield
        finally:
            self.frame.context, self._assumed = outer, assumed

    def register_resource(self, value: Value) -> None:
        """Add the routes of a pending resource when its statement ends; ignore other values."""
        if not isinstance(value, PendingResource):
            return
        computed = [key for key, option in value.options.items() if isinstance(option, Unknown)]
        if not isinstance(value.name, str) or computed:
            computed_names = ", ".join(computed) if isinstance(value.name, str) else "the name"
            self.record_unresolved(f"a resource with computed parts: {computed_names}")
        else:
            self.spend_steps(_RESOURCE_STEPS)
            register_resource(self.router, value, self.build_context())

    def _bind_parameters(
        self, parameters: Sequence[Mapping[str, Any]], arguments: Arguments
    ) -> None:
        for position, parameter in enumerate(parameters):
            name, type_ = parameter["name"], parameter["type"]
            missing = Unknown(f"${name}")
            value = arguments.get(position, name, missing)
            if value is missing and "default" in parameter:
                value = self.evaluate(parameter["default"])
            elif value is missing and type_ in ROUTER_TYPES:
                value = ROUTER
            elif value is missing and type_ in self.program.classes:
                value = Instance(type_)
            self.frame.variables[name] = value

    def _evaluate_body(self, body: StatementBlock) -> Value:
        """Evaluate the statements of a body; return its result; without a `return`, _NO_RETURN."""
        frame = self.frame
        if frame.depth > MAX_BODY_DEPTH:
            self.record_unresolved("code that is nested too deeply")
            return _NO_RETURN
        outer, assumed = frame.context, self._assumed
        frame.depth += 1
        try:
            for fact in self.program.list_statements(body):
                self.spend_steps(10 + len(outer.evidence))
                evidence = (*outer.evidence, LocatedFact(frame.path, fact))
                frame.context = replace(frame.context, evidence=evidence)
                self._assumed = []
                value = self._evaluate_statement(fact)
                if value is not _NO_RETURN:
                    return value
        finally:
            frame.context, self._assumed = outer, assumed
            frame.depth -= 1
        return _NO_RETURN

    def _evaluate_statement(self, fact: Fact) -> Value:
        values = fact.values
        op = values["op"]
        if op in {"do", "return"}:
            value = self.evaluate(values["value"])
            self.register_resource(value)
            return value if op == "return" else _NO_RETURN
        if op == "if":
            return self._evaluate_branches(values)
        outer = self.frame.context
        # Loops and conditions are not groups, so routes do not list them as evidence.
        self.frame.context = self._get_outer_context()
        try:
            if op == "each":
                return self._evaluate_loop(values, outer)
            if values["repeats"]:
                reason = "a loop whose number of passes is known only at run time"
                self._mark_conditional(reason, outer)
            return self._evaluate_body(self.frame.get_block(values["body"]))
        finally:
            self.frame.context = outer

    def _mark_conditional(self, reason: str, statement: StatementContext) -> None:
        self.record_unresolved(reason, statement)
        self.frame.context = replace(self.frame.context, conditional=True)

    def _evaluate_branches(self, values: Mapping[str, Any]) -> Value:
        """Evaluate the branches that may run; a variable that only some branches set is unknown."""
        frame, outer, plain = self.frame, self.frame.context, self._get_outer_context()
        returns = []
        for condition, block in [*values["branches"], [True, values.get("otherwise")]]:
            truth = to_bool(self.evaluate(condition))
            if truth is False or block is None:
                continue
            sure = truth is True and frame.context is outer
            frame.context = plain if sure else replace(plain, conditional=True)
            before = dict(frame.variables)
            self.spend_steps(len(before) // 10)
            value = self._evaluate_body(frame.get_block(block))
            if sure:
                return value
            frame.variables = before | {
                name: Unknown(f"${name}, which depends on a condition")
                for name, variable in frame.variables.items()
                if before.get(name, _NO_RETURN) is not variable
            }
            returns.append(value is not _NO_RETURN)
            if truth is True:
                break
        frame.context = replace(outer, conditional=outer.conditional or any(returns))
        return _NO_RETURN

    def _evaluate_loop(self, values: Mapping[str, Any], statement: StatementContext) -> Value:
        over = self.evaluate(values["over"])
        if not isinstance(over, dict):
            self._mark_conditional("a loop over a computed value", statement)
            over = {Unknown("a key"): Unknown("an element")}
        for key, item in over.items():
            self.frame.variables |= {values["key"]: key} if values["key"] else {}
            self.frame.variables[values["item"]] = item
            value = self._evaluate_body(self.frame.get_block(values["body"]))
            if value is not _NO_RETURN:
                return value
        return _NO_RETURN


def run_providers(files: Iterable[FileFacts]) -> Machine:
    """Evaluate all statements of a repository that create routes; return the machine.

    Files are loaded by providers, `withRouting`, `loadRoutesFrom` and `require`. A file that is
    never loaded has no routes, and is reported as unresolved.
    """
    program = LaravelProgram(files)
    machine = Machine(program)
    providers = list(iter_providers(program))
    for name in providers:
        _run_methods(machine, name, "register", "configurePackage")
    for name in providers:
        machine.deferred.clear()
        _run_methods(machine, name, "boot")
        # After boot, a route provider runs the last closure passed to `routes()`, else `map`.
        if machine.deferred:
            last, evidence = machine.deferred[-1]
            machine.run(partial(machine.call_closure, last, Arguments()), evidence)
        elif _ROUTE_PROVIDER in program.list_ancestors(name):
            _run_methods(machine, name, "map")
    for path in sorted(program.iter_top_level_paths()):
        if path.endswith("bootstrap/app.php") and not is_test(path):
            first = program.list_statements(StatementBlock(path, "", 0))[0]
            load = partial(machine.load_file, ROOT + path, is_route_file=False)
            machine.run(load, LocatedFact(path, first))
    return machine


def _run_methods(machine: Machine, name: str, *methods: str) -> None:
    for method in methods:
        function = machine.program.find_method(name, method)
        if function is not None:
            call = partial(machine.call_function, function, Instance(name), Arguments())
            machine.run(call, function)


def collect_routes(machine: Machine) -> LaravelRoutes:
    """Return the routes that an evaluation created, and the statements that stay unresolved."""
    routes, unresolved = [], list(machine.unresolved)
    for draft in machine.router.drafts:
        if isinstance(draft.uri, str):
            routes.append(draft.build_route())
        elif draft.context.evidence:
            reason = f"the URI is computed: {draft.uri.why}"
            unresolved.append(UnresolvedRouting(reason, draft.context.evidence[-1]))
    unresolved += _report_unloaded_files(machine)
    return LaravelRoutes(tuple(routes), tuple(dict.fromkeys(unresolved)))


def _report_unloaded_files(machine: Machine) -> Iterator[UnresolvedRouting]:
    for path in sorted(machine.program.iter_top_level_paths()):
        if path in machine.loaded or is_test(path):
            continue
        facts = machine.program.list_statements(StatementBlock(path, "", 0))
        first = next((fact for fact in facts if makes_routes(fact)), None)
        if first is not None:
            yield UnresolvedRouting(
                "a routes file that no known statement loads", LocatedFact(path, first)
            )


def makes_routes(fact: Fact) -> bool:
    """Return whether a fact is a statement that calls the router to create routes."""
    value = fact.values.get("value")
    if not isinstance(value, dict) or value.get("of") != "chain":
        return False
    names = {call["name"].lower() for call in value["calls"]}
    router = value["root"] == {"of": "variable", "name": "router"}
    return (router or value["class"] in FACADES) and not names.isdisjoint(_CREATING_CALLS)
