"""Policies and gates: the checks in one file, the policies of models, and the checks of routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rag_assets.systems.code_memory.languages.php.source import OR, PhpSource
from rag_assets.systems.code_memory.languages.php.types import NAMED
from rag_assets.systems.code_memory.languages.php.values import Call
from rag_assets.systems.code_memory.laravel.classes import Inheritance
from rag_assets.systems.code_memory.laravel.inflection import snake
from rag_assets.systems.code_memory.laravel.routes.model import Route
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import ABILITY
from rag_assets.systems.code_memory.symbols.policy_names import (
    OF_RESOURCES,
    method_of_ability,
    tried_policies,
)

if TYPE_CHECKING:
    from tree_sitter import Node

CHECKS: Final = frozenset(
    {"authorize", "authorizeforuser", "allows", "denies", "check", "can", "cannot", "cant"}
    | {"canany"}
)
"""Methods, in lower case, that check a user's abilities."""

GATE_CHECKS: Final = CHECKS | {"any", "none", "inspect"}
"""Methods, in lower case, that check abilities if they are called on a gate."""

VARIABLE: Final = "variable"
"""Key of a fact value: the name of a variable, until its class is known."""

SUBJECT: Final = "subject"
"""Key of a fact value: the expression that is this variable, or starts with it."""

CONSTANT: Final = "constant"
"""Key of a fact value: the constant in another class that holds the ability."""

_OF_GATES: Final = ("viewAny", "view", "create", "update", "delete")
"""Abilities that `Gate::resource` defines."""

_PAIR: Final = 2
_INVOKED: Final = "__invoke"
_Values = Mapping[str, Any]


def read_checks(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    """Yield the checked ability with its subject: a class, or a variable with an object.

    If the subject is the only argument, the ability follows from the enclosing method.
    """
    given = [call.argument(0), call.argument(1), call.argument(2)]
    # The first argument is the user whose abilities are checked.
    first, second = given[1:] if call.name.lower() == "authorizeforuser" else given[:2]
    told = source.value(first)
    is_subject = first is not None and first.type == "variable_name"
    alone = second is None and (is_subject or (isinstance(told, str) and "\\" in told))
    subject, told = (first, "") if alone else (_get_subject(second), told)
    about = source.value(subject)
    model = about if isinstance(about, str) else ""
    variable = source.tree.of(subject) if subject is not None else ""
    if constant := _get_constant(source, first):
        yield "authorizes_of", {CONSTANT: constant, "model": model, SUBJECT: subject}
    for ability in told if isinstance(told, list) else [told]:
        if isinstance(ability, str):
            values = {"ability": ability, "model": model}
            held = {VARIABLE: variable, SUBJECT: subject} if variable.startswith("$") else {}
            yield "authorizes", {**values, **held}


def _get_constant(source: PhpSource, node: Node | None) -> str:
    """Return the constant of another class in an expression: `InvoicePolicy::SEND`."""
    if node is None or node.type != "class_constant_access_expression":
        return ""
    if isinstance(source.value(node), str):
        return ""
    scope, name = node.named_children[0], node.named_children[-1]
    written = source.tree.of(scope) if scope.type in NAMED else ""
    return f"{source.class_name(written, node)}::{source.tree.of(name)}" if written else ""


def _get_subject(node: Node | None) -> Node | None:
    """Return the subject of a check; in a list, the subject is the first item."""
    if node is None or node.type != "array_creation_expression":
        return node
    entries = [one for one in node.named_children if one.type == "array_element_initializer"]
    return entries[0].named_children[0] if entries and entries[0].named_children else None


def read_resource_checks(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    """Yield the checks that `authorizeResource` adds to the methods of a controller."""
    model = source.value(call.argument(0))
    for method, ability in OF_RESOURCES.items() if isinstance(model, str) else ():
        yield "authorizes", {"ability": ability, "model": model, "method": method}


def read_definitions(source: PhpSource, call: Call) -> Iterator[tuple[str, _Values]]:
    """Yield the abilities that a gate defines, each with the method that decides it."""
    if call.name.lower() not in {"define", "resource"}:
        return
    name, action = (source.value(call.argument(at)) for at in (0, 1))
    if not isinstance(name, str) or not name:
        return
    if call.name.lower() == "define":
        yield "defines_ability", {"ability": name, "answers": _deciding_method(action)}
    elif isinstance(action, str):
        told = source.value(call.argument(2))
        methods = told if isinstance(told, dict) else {one: one for one in _OF_GATES}
        for ability, method in methods.items():
            if isinstance(method, str):
                answers = f"{action}::{method}"
                yield "defines_ability", {"ability": f"{name}.{ability}", "answers": answers}


def _deciding_method(action: Any) -> str:
    """Return the method in an action, which is a pair or one text; "" for anything else."""
    if isinstance(action, list) and all(isinstance(one, str) for one in action):
        action = "@".join(action[:_PAIR])
    if not isinstance(action, str) or not action:
        return ""
    owner, _, method = action.lstrip("\\").partition("@")
    return f"{owner}::{method or _INVOKED}"


def resolve_checks(values: _Values, types: Mapping[str, str]) -> Iterator[_Values]:
    """Yield checks on the object in a variable: one check for each possible class of it."""
    model = values["model"] or types.get(values[VARIABLE], "")
    for one in model.split(OR):
        told = {"ability": values["ability"], "model": one}
        if any(told.values()):
            yield told


_CAN: Final = "can"
_AUTHORIZE: Final = "Illuminate\\Auth\\Middleware\\Authorize"


class Policies:
    """The policies of a repository, and those that the middleware of routes checks."""

    def __init__(
        self,
        files: Sequence[FileFacts],
        guards: Mapping[str, Sequence[str]],
        inheritance: Inheritance,
    ) -> None:
        self._inheritance = inheritance
        named = guards.get(_CAN, ())
        self._names = {_AUTHORIZE, *([_CAN] if not named or _AUTHORIZE in named else [])}
        self._mapped: dict[str, str] = {}
        self._abilities: set[str] = set()
        for fact in (fact for one in files for fact in one.facts):
            if fact.kind == "policy_of":
                self._mapped[str(fact.values["model"])] = str(fact.values["policy"])
            elif fact.kind == "defines_ability":
                self._abilities.add(str(fact.values["ability"]))

    def policy_of_model(self, model: str) -> str:
        """Return a model's policy: from a map, else the first existing candidate, else ""."""
        candidates = filter(self._inheritance.is_declared, tried_policies(model))
        return self._mapped.get(model) or next(candidates, "")

    def find_check(self, route: Route, middleware: str) -> tuple[str, str, bool] | None:
        """Return the policy that one middleware of a route checks; None if it is unknown.

        The result is the policy's class, the method that decides, and whether a policy map names
        the policy. For an ability that a gate defines, it is "" and the ability's node.

        Args:
            middleware: the middleware as the route states it: `can:send,invoice`.
        """
        name, _, given = middleware.partition(":")
        if name not in self._names:
            return None
        ability, *about = (part.strip() for part in given.split(","))
        model = self._bound_class(route, about[0]) if about else ""
        policy = self.policy_of_model(model) if model else ""
        answers = method_of_ability(ability)
        defined = ability in self._abilities
        if policy and (not defined or self._inheritance.method(policy, answers)):
            return policy, f"{policy}::{answers}", model in self._mapped
        return ("", ABILITY + ability, True) if defined else None

    def _bound_class(self, route: Route, about: str) -> str:
        """Return a stated class, or the class that a route parameter is bound to: its type."""
        if "\\" in about:
            return about.lstrip("\\")
        if route.kind != "controller" or about not in {one.name for one in route.parameters}:
            return ""
        owner, _, method = route.action.partition("@")
        action = self._inheritance.method(owner, method or _INVOKED)
        for taken in action.values.get("parameters", ()) if action is not None else ():
            if about in {str(taken["name"]), snake(str(taken["name"]))}:
                return str(taken["type"])
        return ""
