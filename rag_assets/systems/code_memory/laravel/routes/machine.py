"""Evaluation of the statements that create routes; the code itself is not executed."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.laravel.routes.calls import call_value, evaluate_chain
from rag_assets.systems.code_memory.laravel.routes.expressions import Json
from rag_assets.systems.code_memory.laravel.routes.model import (
    DEEPEST,
    MOST_STEPS,
    MOST_STEPS_OF_ONE,
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
    list_providers,
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
    ResourceRegistrar,
    Router,
)
from rag_assets.systems.code_memory.symbols.model import FileFacts

_ROUTE_PROVIDER: Final = "Illuminate\\Foundation\\Support\\Providers\\RouteServiceProvider"
_MAKES: Final = VERBS | RESOURCES | DIRECT | {"group"}
_ROUTERS = frozenset({"router", "Illuminate\\Routing\\Router"})


def _evaluate_array(machine: Machine, node: Json, frame: CallFrame) -> Value:
    array: dict[str | int, Value] = {}
    next_index = 0
    for key, item in node["items"]:
        if isinstance(item, dict) and item.get("of") == "spread":
            unpacked = list_values(machine.evaluate(item["value"], frame))
            machine.spend_steps(len(unpacked))
            for value in unpacked:
                array[next_index] = value
                next_index += 1
            continue
        value = machine.evaluate(item, frame)
        key_value = next_index if key is None else to_array_key(machine.evaluate(key, frame))
        if key_value is None:
            return Unknown("a key of an array")
        array[key_value] = value
        if isinstance(key_value, int):
            next_index = max(next_index, key_value + 1)
    return array


def _evaluate_variable(machine: Machine, node: Json, frame: CallFrame) -> Value:
    name = node["name"]
    if name == "this":
        return frame.this if frame.this is not None else Unknown("$this")
    if name in frame.variables:
        machine.record_assumptions(*frame.assumed.get(name, ()))
        return frame.variables[name]
    return ROUTER if name == "router" else Unknown(f"${name}")


def _evaluate_property(machine: Machine, node: Json, frame: CallFrame) -> Value:
    name = node["name"]
    object_ = machine.evaluate(node["object"], frame)
    if name == "router":
        return ROUTER
    if name in {"value", "name"} and isinstance(object_, str | int):
        return object_
    if not isinstance(object_, Instance):
        return Unknown(f"the property {name}")
    property_ = machine.program.find_property(object_.name, name)
    if property_ is None:
        # Laravel's own providers have a null namespace.
        return None if name == "namespace" else Unknown(f"the property {name}")
    path, value = property_
    inner = CallFrame(path, f"{object_.name}::", object_, {}, frame.context, frame.depth)
    return machine.evaluate(value, inner)


def _evaluate_constant(machine: Machine, node: Json, frame: CallFrame) -> Value:
    owner, name = node["class"], node["name"]
    if owner.lower() in {"self", "static"}:
        owner = frame.this.name if isinstance(frame.this, Instance) else frame.owner
    value = machine.program.find_constant(owner, name) if owner else None
    return Unknown(f"the constant {name}") if value is None else value


def _evaluate_item(machine: Machine, node: Json, frame: CallFrame) -> Value:
    array = machine.evaluate(node["array"], frame)
    key = machine.evaluate(node["key"], frame)
    if isinstance(array, dict):
        key_value = None if isinstance(key, Unknown) else to_array_key(key)
        return Unknown("a key of an array") if key_value is None else array.get(key_value)
    if to_text(key) in _ROUTERS:
        return ROUTER
    return array if isinstance(array, Unknown) else Unknown("an element")


def _evaluate_choice(machine: Machine, node: Json, frame: CallFrame) -> Value:
    condition = machine.evaluate(node["condition"], frame)
    truth = to_bool(condition)
    if truth is None:
        return Unknown("a choice")
    if truth:
        return machine.evaluate(node["yes"], frame) if "yes" in node else condition
    return machine.evaluate(node["no"], frame)


def _evaluate_default(machine: Machine, node: Json, frame: CallFrame) -> Value:
    value = machine.evaluate(node["value"], frame)
    return machine.evaluate(node["otherwise"], frame) if value is None else value


def _evaluate_not(machine: Machine, node: Json, frame: CallFrame) -> Value:
    truth = to_bool(machine.evaluate(node["value"], frame))
    return Unknown("a condition") if truth is None else not truth


def _evaluate_closure(machine: Machine, node: Json, frame: CallFrame) -> Value:
    if not node["block"]:
        return ClosureValue(None)
    # As in PHP, variables are bound with their current values.
    machine.spend_steps(len(frame.variables) // 10)
    body = StatementBlock(frame.path, frame.symbol, node["block"])
    return ClosureValue(body, tuple(node["parameters"]), dict(frame.variables), frame.this)


def _evaluate_set(machine: Machine, node: Json, frame: CallFrame) -> Value:
    count = machine.count_assumptions()
    value = machine.evaluate(node["value"], frame)
    frame.variables[node["name"]] = value
    frame.assumed[node["name"]] = machine.list_assumptions_since(count)
    return value


_READERS: Mapping[str, Callable[[Machine, Json, CallFrame], Value]] = {
    "array": _evaluate_array,
    "join": lambda machine, node, frame: join_texts(
        *(machine.evaluate(part, frame) for part in node["parts"])
    ),
    "variable": _evaluate_variable,
    "property": _evaluate_property,
    "constant": _evaluate_constant,
    "directory": lambda _, __, frame: ROOT + posixpath.dirname(frame.path),
    "file": lambda _, __, frame: ROOT + frame.path,
    "item": _evaluate_item,
    "choice": _evaluate_choice,
    "default": _evaluate_default,
    "not": _evaluate_not,
    "chain": evaluate_chain,
    "new": lambda _, node, __: Instance(node["class"]),
    "closure": _evaluate_closure,
    "load": lambda machine, node, frame: machine.load_file(
        machine.evaluate(node["path"], frame), frame, is_route_file=False
    ),
    "set": _evaluate_set,
    "computed": lambda _, node, __: Unknown(node["why"]),
}


_STEPS_OF_RESOURCE: Final = 100
_MOST_ASSUMPTIONS = 20
"""Maximum number of assumptions recorded for one value."""

_ENDED = object()
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
        self.deferred: list[tuple[ClosureValue, LocatedFact]] = []
        self.unresolved: list[UnresolvedRouting] = []
        self.loaded: set[str] = set()
        self._loading: list[str] = []
        self._assumed: list[str] = []
        self._left = MOST_STEPS
        self._left_of_one = MOST_STEPS_OF_ONE

    def call_function(
        self, function: LocatedFact, this: Value, arguments: Arguments, frame: CallFrame
    ) -> Value:
        """Return the result of calling a function or a method of the repository."""
        inner = CallFrame(
            path=function.path,
            symbol=function.fact.symbol,
            this=this,
            variables={},
            # The call of a function is not a group around the routes that the function creates.
            context=replace(frame.context, evidence=frame.context.evidence[:-1]),
            depth=frame.depth + 1,
        )
        self._bind_parameters(function.fact.values["parameters"], arguments, inner)
        body = StatementBlock(function.path, function.fact.symbol, 0)
        return self._evaluate_function_body(body, inner)

    def call_closure(
        self, closure: ClosureValue, arguments: Arguments, frame: CallFrame, *, this: Value = None
    ) -> Value:
        """Return the result of calling a closure."""
        if closure.body is None:
            return Unknown("a function")
        self.spend_steps(len(closure.variables) // 10)
        inner = CallFrame(
            path=closure.body.path,
            symbol=closure.body.symbol,
            this=closure.this if this is None else this,
            variables=dict(closure.variables),
            context=frame.context,
            depth=frame.depth + 1,
        )
        self._bind_parameters(closure.parameters, arguments, inner)
        return self._evaluate_function_body(closure.body, inner)

    def load_file(self, path: Value, frame: CallFrame, *, is_route_file: bool) -> Value:
        """Evaluate a file, and return what it returns.

        Args:
            path: the path; a computed path is recorded as unresolved.
            is_route_file: whether the statement that loads it says that it contains routes.
        """
        if not isinstance(path, str):
            why = path.why if isinstance(path, Unknown) else "no text"
            self.record_unresolved(f"the path of a file is computed: {why}", frame.context)
            return Unknown("a file")
        file = self.program.find_file(path, frame.path)
        if file is None:
            if is_route_file or "route" in path.lower():
                self.record_unresolved("a loaded file is not in the repository", frame.context)
            return Unknown("a file")
        if file in self._loading:
            return Unknown("a file that loads itself")
        self.spend_steps(len(frame.variables) // 10)
        variables = {**frame.variables, "router": ROUTER}
        inner = CallFrame(file, "", frame.this, variables, frame.context, frame.depth + 1)
        self.loaded.add(file)
        self._loading.append(file)
        try:
            return self._evaluate_function_body(StatementBlock(file, "", 0), inner)
        finally:
            self._loading.pop()

    def reset_provider_steps(self) -> None:
        """Reset the step limit for single providers; called before each provider."""
        self._left_of_one = MOST_STEPS_OF_ONE

    def spend_steps(self, steps: int) -> None:
        """Count evaluation steps.

        Raises:
            Exhausted: the limit of the evaluation or of the current provider is reached.
        """
        self._left -= steps
        self._left_of_one -= steps
        if min(self._left, self._left_of_one) < 0:
            raise Exhausted

    def evaluate(self, node: Json, frame: CallFrame) -> Value:
        """Return the value of an expression, given as JSON (see `expressions`)."""
        self.spend_steps(1)
        if not isinstance(node, dict):
            return limit_size(node)
        read = _READERS.get(node["of"])
        return Unknown("syntax") if read is None else limit_size(read(self, node, frame))

    def call(self, callback: Value, arguments: Arguments, frame: CallFrame) -> Value:
        """Return the result of calling a closure, or a pair of an object and a method name."""
        return call_value(self, callback, arguments, frame)

    def record_unresolved(self, reason: str, context: StatementContext) -> None:
        """Record that the innermost statement of a context could not be resolved, and why."""
        if context.evidence:
            self.unresolved.append(UnresolvedRouting(reason, context.evidence[-1]))

    def record_assumptions(self, *reasons: str) -> None:
        """Record assumptions that the value of the current statement depends on."""
        self._assumed += reasons

    def count_assumptions(self) -> int:
        """Return the number of assumptions recorded so far; see list_assumptions_since."""
        return len(self._assumed)

    def list_assumptions_since(self, count: int) -> tuple[str, ...]:
        """Return the assumptions recorded since count_assumptions returned `count`."""
        return tuple(dict.fromkeys(self._assumed[count:]))[:_MOST_ASSUMPTIONS]

    def build_context(self, frame: CallFrame) -> StatementContext:
        """Return the context of the current statement, including its recorded assumptions."""
        missing = tuple(dict.fromkeys((*frame.context.missing, *self._assumed)))[:_MOST_ASSUMPTIONS]
        return replace(frame.context, missing=missing)

    @contextmanager
    def enter_group(self, frame: CallFrame) -> Iterator[None]:
        """Treat the current statement as the group of all routes created in the `with` block."""
        outer, assumed = frame.context, self._assumed
        frame.context, self._assumed = self.build_context(frame), []
        try:
            yield
        finally:
            frame.context, self._assumed = outer, assumed

    def register_resource(self, value: Value, frame: CallFrame) -> None:
        """Add the routes of a pending resource; any other value is ignored.

        Called at the end of the statement that defines the resource.
        """
        if not isinstance(value, PendingResource):
            return
        computed = [key for key, option in value.options.items() if isinstance(option, Unknown)]
        if not isinstance(value.name, str) or computed:
            what = ", ".join(computed) if isinstance(value.name, str) else "the name"
            self.record_unresolved(f"a resource with computed parts: {what}", frame.context)
        else:
            self.spend_steps(_STEPS_OF_RESOURCE)
            ResourceRegistrar(self.router).register(value, self.build_context(frame))

    def _bind_parameters(
        self, parameters: Sequence[Mapping[str, Any]], arguments: Arguments, frame: CallFrame
    ) -> None:
        for position, parameter in enumerate(parameters):
            missing = Unknown(f"${parameter['name']}")
            value = arguments.get(position, parameter["name"], missing)
            if value is missing and "default" in parameter:
                value = self.evaluate(parameter["default"], frame)
            elif value is missing and parameter["type"] in ROUTER_TYPES:
                value = ROUTER
            elif value is missing and parameter["type"] in self.program.classes:
                value = Instance(parameter["type"])
            frame.variables[parameter["name"]] = value

    def _evaluate_function_body(self, body: StatementBlock, frame: CallFrame) -> Value:
        value = self._evaluate_body(body, frame)
        return None if value is _ENDED else value

    def _evaluate_body(self, body: StatementBlock, frame: CallFrame) -> Value:
        """Evaluate the statements of a body; return its result, or _ENDED without a `return`."""
        if frame.depth > DEEPEST:
            self.record_unresolved("code that is nested too deeply", frame.context)
            return _ENDED
        outer, assumed = frame.context, self._assumed
        frame.depth += 1
        try:
            for fact in self.program.list_statements(body):
                self.spend_steps(10 + len(outer.evidence))
                evidence = (*outer.evidence, LocatedFact(frame.path, fact))
                frame.context = replace(frame.context, evidence=evidence)
                self._assumed = []
                value = self._evaluate_statement(fact, frame)
                if value is not _ENDED:
                    return value
        finally:
            frame.context, self._assumed = outer, assumed
            frame.depth -= 1
        return _ENDED

    def _evaluate_statement(self, fact: Fact, frame: CallFrame) -> Value:
        values = fact.values
        op = values["op"]
        if op in {"do", "return"}:
            value = self.evaluate(values["value"], frame)
            self.register_resource(value, frame)
            return value if op == "return" else _ENDED
        if op == "if":
            return self._evaluate_branches(values, frame)
        body = StatementBlock(frame.path, frame.symbol, values["body"])
        outer = frame.context
        # Loops and conditions are not groups, so routes do not list them as evidence.
        frame.context = replace(outer, evidence=outer.evidence[:-1])
        try:
            if op == "each":
                return self._evaluate_loop(values, body, frame, outer)
            if values["repeats"]:
                reason = "a loop whose number of passes is known only at run time"
                self.record_unresolved(reason, outer)
                frame.context = replace(frame.context, conditional=True)
            return self._evaluate_body(body, frame)
        finally:
            frame.context = outer

    def _evaluate_branches(self, values: Mapping[str, Any], frame: CallFrame) -> Value:
        outer = frame.context
        plain = replace(outer, evidence=outer.evidence[:-1])
        returns = []
        for condition, block in [*values["branches"], [True, values.get("otherwise")]]:
            truth = to_bool(self.evaluate(condition, frame))
            if truth is False or block is None:
                continue
            sure = truth is True and frame.context is outer
            frame.context = plain if sure else replace(plain, conditional=True)
            value = self._evaluate_branch(
                StatementBlock(frame.path, frame.symbol, block), frame, sure=sure
            )
            if sure:
                return value
            returns.append(value is not _ENDED)
            if truth is True:
                break
        frame.context = replace(outer, conditional=outer.conditional or any(returns))
        return _ENDED

    def _evaluate_branch(self, body: StatementBlock, frame: CallFrame, *, sure: bool) -> Value:
        """Evaluate a branch; unless it is sure to run, variables that it sets become unknown."""
        self.spend_steps(len(frame.variables) // 10)
        before = dict(frame.variables)
        value = self._evaluate_body(body, frame)
        if not sure:
            changed = {
                name: Unknown(f"${name}, which depends on a condition")
                for name, variable in frame.variables.items()
                if name not in before or before[name] is not variable
            }
            frame.variables = {**before, **changed}
        return value

    def _evaluate_loop(
        self,
        values: Mapping[str, Any],
        body: StatementBlock,
        frame: CallFrame,
        outer: StatementContext,
    ) -> Value:
        over = self.evaluate(values["over"], frame)
        if not isinstance(over, dict):
            self.record_unresolved("a loop over a computed value", outer)
            frame.context = replace(frame.context, conditional=True)
            over = {Unknown("a key"): Unknown("an element")}
        for key, item in over.items():
            frame.variables |= {values["key"]: key} if values["key"] else {}
            frame.variables[values["item"]] = item
            value = self._evaluate_body(body, frame)
            if value is not _ENDED:
                return value
        return _ENDED


def run_providers(files: Iterable[FileFacts]) -> Machine:
    """Evaluate all statements of a repository that create routes; return the machine.

    Files are loaded by providers, `withRouting`, `loadRoutesFrom` and `require`. A file that is
    never loaded has no routes, and is reported as unresolved.
    """
    program = LaravelProgram(files)
    machine = Machine(program)
    providers = list(list_providers(program))
    for name in providers:
        _run_methods(machine, name, ("register", "configurePackage"))
    for name in providers:
        machine.deferred.clear()
        _run_methods(machine, name, ("boot",))
        _run_route_provider(machine, name)
    for path in sorted(program.iter_top_level_paths()):
        if path.endswith("bootstrap/app.php") and not is_test(path):
            first = LocatedFact(path, program.list_statements(StatementBlock(path, "", 0))[0])
            _run_guarded(
                machine,
                partial(machine.load_file, ROOT + path, _make_frame(path), is_route_file=False),
                first,
            )
    return machine


def _run_methods(machine: Machine, name: str, methods: Iterable[str]) -> None:
    for method in methods:
        function = machine.program.find_method(name, method)
        if function is not None:
            frame = _make_frame(function.path)
            run = partial(machine.call_function, function, Instance(name), Arguments(()), frame)
            _run_guarded(machine, run, function)


def _run_route_provider(machine: Machine, name: str) -> None:
    """Evaluate what a route provider does after boot.

    This is the last closure passed to `routes()`, or else the provider's method `map`.
    """
    if machine.deferred:
        last, evidence = machine.deferred[-1]
        frame = _make_frame(evidence.path)
        _run_guarded(machine, partial(machine.call_closure, last, Arguments(()), frame), evidence)
    elif _ROUTE_PROVIDER in machine.program.list_ancestors(name):
        _run_methods(machine, name, ("map",))


def _run_guarded(machine: Machine, run: Callable[[], Value], evidence: LocatedFact) -> None:
    machine.reset_provider_steps()
    try:
        run()
    except RecursionError:
        machine.unresolved.append(UnresolvedRouting("code that is nested too deeply", evidence))
    except Exhausted:
        reason = "the evaluation stopped at its limit of steps"
        machine.unresolved.append(UnresolvedRouting(reason, evidence))


def _make_frame(path: str) -> CallFrame:
    return CallFrame(path, "", None, {}, StatementContext(), 0)


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
    return (router or value["class"] in FACADES) and not names.isdisjoint(_MAKES)
