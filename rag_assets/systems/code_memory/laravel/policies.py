"""Middleware and policies: the checks that files state, and the policies of models and routes.

| kind | symbol | values |
|---|---|---|
| uses_middleware | the enclosing definition | name: a class or a name; alias: alias or group |
| guards | a controller | name, methods: guarded methods; an empty list means all methods |
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import (
    UNION_SEPARATOR,
    ClassLike,
    Method,
    PhpSource,
)
from rag_assets.systems.code_memory.languages.php.types import CLASS_NAME_NODES
from rag_assets.systems.code_memory.languages.php.values import Call, Chain, Value, list_arguments
from rag_assets.systems.code_memory.languages.tree import Node, get_first_child
from rag_assets.systems.code_memory.laravel.classes import Inheritance
from rag_assets.systems.code_memory.laravel.inflection import snake
from rag_assets.systems.code_memory.laravel.routes.model import LaravelRoute
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import (
    ABILITY,
    RESOURCE_ABILITIES,
    get_method_of_ability,
    iter_tried_policies,
)

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

_RESOURCE_GATE_ABILITIES: Final = ("viewAny", "view", "create", "update", "delete")
"""Abilities that `Gate::resource` defines."""

_PAIR: Final = 2
_INVOKED: Final = "__invoke"
_Values = Mapping[str, Any]
_Statement: TypeAlias = tuple[str, _Values]
"""Kind and values of a fact."""


def read_checks(source: PhpSource, call: Call) -> Iterator[_Statement]:
    """Yield a statement for each ability that a call checks, together with the checked subject.

    The subject is a class, or a variable with an object. If the subject is the only argument, the
    ability follows from the enclosing method.
    """
    # The first argument of `authorizeForUser` is the user whose abilities are checked.
    skipped = int(call.name.lower() == "authorizeforuser")
    first, second = call.get_argument(skipped), call.get_argument(skipped + 1)
    first_value = source.read_value(first)
    is_subject = first is not None and first.type == "variable_name"
    is_class = isinstance(first_value, str) and "\\" in first_value
    is_only_subject = second is None and (is_subject or is_class)
    subject, first_value = (first, "") if is_only_subject else (_get_subject(second), first_value)
    subject_value = source.read_value(subject)
    model = subject_value if isinstance(subject_value, str) else ""
    variable = source.tree.get_node_text(subject)
    if constant := _get_constant(source, first):
        yield "authorizes_of", {CONSTANT: constant, "model": model, SUBJECT: subject}
    for ability in first_value if isinstance(first_value, list) else [first_value]:
        if isinstance(ability, str):
            values: dict[str, Any] = {"ability": ability, "model": model}
            if variable.startswith("$"):
                values |= {VARIABLE: variable, SUBJECT: subject}
            yield "authorizes", values


def _get_constant(source: PhpSource, node: Node | None) -> str:
    """Return the name of another class's constant: `InvoicePolicy::SEND`; "" for other nodes."""
    if node is None or node.type != "class_constant_access_expression":
        return ""
    scope, name = node.named_children[0], node.named_children[-1]
    if isinstance(source.read_value(node), str) or scope.type not in CLASS_NAME_NODES:
        return ""
    owner = source.resolve_class_name(source.tree.get_node_text(scope), node)
    return f"{owner}::{source.tree.get_node_text(name)}"


def _get_subject(node: Node | None) -> Node | None:
    """Return the subject of a check; in a list, the subject is the first item."""
    if node is None or node.type != "array_creation_expression":
        return node
    items = [child for child in node.named_children if child.type in _LISTS]
    return get_first_child(items[0]) if items else None


def read_resource_checks(source: PhpSource, call: Call) -> Iterator[_Statement]:
    """Yield the checks that `authorizeResource` adds to the methods of a controller."""
    model = source.read_value(call.get_argument(0))
    for method, ability in RESOURCE_ABILITIES.items() if isinstance(model, str) else ():
        yield "authorizes", {"ability": ability, "model": model, "method": method}


def read_definitions(source: PhpSource, call: Call) -> Iterator[_Statement]:
    """Yield the abilities that a call defines on a gate, each with the method that decides it."""
    if call.name.lower() not in {"define", "resource"}:
        return
    name, action = (source.read_value(call.get_argument(at)) for at in (0, 1))
    if not isinstance(name, str) or not name:
        return
    if call.name.lower() == "define":
        yield "defines_ability", {"ability": name, "answers": _find_deciding_method(action)}
    elif isinstance(action, str):
        stated = source.read_value(call.get_argument(2))
        methods = (
            stated
            if isinstance(stated, dict)
            else {name: name for name in _RESOURCE_GATE_ABILITIES}
        )
        for ability, method in methods.items():
            if isinstance(method, str):
                answers = f"{action}::{method}"
                yield "defines_ability", {"ability": f"{name}.{ability}", "answers": answers}


def _find_deciding_method(action: Any) -> str:
    """Return the method that an action names, as a pair or as one string; "" for other values."""
    if isinstance(action, list) and all(isinstance(part, str) for part in action):
        action = "@".join(action[:_PAIR])
    if not isinstance(action, str) or not action:
        return ""
    owner, _, method = action.lstrip("\\").partition("@")
    return f"{owner}::{method or _INVOKED}"


def resolve_checks(values: _Values, types: Mapping[str, str]) -> Iterator[_Values]:
    """Yield the values of a check, once for each class that the checked variable may have.

    Args:
        values: values of a fact that `read_checks` has yielded.
        types: classes by variable; several classes of a variable are joined by UNION_SEPARATOR.
    """
    model = values["model"] or types.get(values[VARIABLE], "")
    for class_name in model.split(UNION_SEPARATOR):
        check = {"ability": values["ability"], "model": class_name}
        if any(check.values()):
            yield check


_CAN: Final = "can"
_AUTHORIZE: Final = "Illuminate\\Auth\\Middleware\\Authorize"


class Policies:
    """The policies of a repository's models, and the checks that middleware of routes makes."""

    def __init__(
        self,
        files: Sequence[FileFacts],
        guards: Mapping[str, Sequence[str]],
        inheritance: Inheritance,
    ) -> None:
        self._inheritance = inheritance
        guarding = guards.get(_CAN, ())
        self._names = {_AUTHORIZE, *([_CAN] if not guarding or _AUTHORIZE in guarding else [])}
        self._mapped: dict[str, str] = {}
        self._abilities: set[str] = set()
        for fact in (fact for file in files for fact in file.facts):
            if fact.kind == "policy_of":
                self._mapped[str(fact.values["model"])] = str(fact.values["policy"])
            elif fact.kind == "defines_ability":
                self._abilities.add(str(fact.values["ability"]))

    def find_policy(self, model: str) -> str:
        """Return a model's policy: mapped explicitly, else by convention, else ""."""
        candidates = filter(self._inheritance.is_declared, iter_tried_policies(model))
        return self._mapped.get(model) or next(candidates, "")

    def find_check(self, route: LaravelRoute, middleware: str) -> tuple[str, str, bool] | None:
        """Return the policy that a middleware of a route checks; None if it is unknown.

        The result is the policy's class, the method that decides, and whether a policy map names
        the policy. For an ability of a gate, the result is "", the node of the ability and True.

        Args:
            middleware: the middleware as the route states it: `can:send,invoice`.
        """
        name, _, parameters = middleware.partition(":")
        if name not in self._names:
            return None
        ability, *subjects = (part.strip() for part in parameters.split(","))
        model = self._find_bound_class(route, subjects[0]) if subjects else ""
        policy = self.find_policy(model) if model else ""
        method = get_method_of_ability(ability)
        is_defined = ability in self._abilities
        if policy and (not is_defined or self._inheritance.find_method(policy, method)):
            return policy, f"{policy}::{method}", model in self._mapped
        return ("", ABILITY + ability, True) if is_defined else None

    def _find_bound_class(self, route: LaravelRoute, about: str) -> str:
        """Return the class of a middleware's argument, which is a class or a route parameter."""
        if "\\" in about:
            return about.lstrip("\\")
        if route.kind != "controller" or about not in {
            parameter.name for parameter in route.parameters
        }:
            return ""
        owner, _, method = route.action.partition("@")
        action = self._inheritance.find_method(owner, method or _INVOKED)
        for declared in action.values.get("parameters", ()) if action is not None else ():
            if about in {str(declared["name"]), snake(str(declared["name"]))}:
                return str(declared["type"])
        return ""


_MIDDLEWARE: Final = "Illuminate\\Routing\\Controllers\\Middleware"
_NAMING_METHODS: Final = frozenset(
    {"aliasmiddleware", "middlewaregroup", "pushmiddlewaretogroup", "prependmiddlewaretogroup"}
)
"""Methods of the router, in lower case, that name middleware."""

_CONFIGURING_METHODS: Final = frozenset({"group", "appendtogroup", "prependtogroup"})
_GROUPS: Final = frozenset({"web", "api"})
_CONFIGURATION: Final = "$middleware"
"""Variable of Laravel 11 and later in which applications configure their middleware."""

_FIRST_VERSION_WITHOUT_KERNEL: Final = 11
_MEMBER_CALL_NODES: Final = frozenset({"member_call_expression"})
_RETURNS: Final = frozenset({"return_statement"})
_LISTS: Final = frozenset({"array_element_initializer"})


_Guards: TypeAlias = "tuple[Sequence[str], Sequence[str], Sequence[str], Node]"
"""Middleware, the methods that it is limited to, the methods that it excludes, and the evidence."""


def iter_guard_facts(source: PhpSource) -> Iterator[Fact]:
    """Yield a fact `guards` for each middleware that a controller in the file states."""
    if "iddleware" not in source.text:
        return
    for class_ in source.classes:
        constructor, listing = class_.find_method("__construct"), class_.find_method("middleware")
        guards: list[_Guards] = []
        if constructor is not None:
            guards += _iter_constructor_guards(source, constructor)
        if listing is not None and listing.static and not listing.parameters:
            guards += _iter_listed_guards(source, listing)
        for names, only, without, node in guards:
            methods = _find_guarded_methods(class_, only, without)
            for name in names if methods is not None else ():
                alias = name.partition(":")[0].lstrip("\\")
                if alias:
                    values = {"name": alias, "methods": methods}
                    yield source.tree.build_fact("guards", node, class_.name, values)


def _find_guarded_methods(
    class_like: ClassLike, only: Sequence[str], without: Sequence[str]
) -> list[str] | None:
    """Return the methods that a middleware guards: [] for all methods, None for no method."""
    if not without:
        return [*only]
    own = [m.name for m in class_like.methods if m.public and not m.static and m.name[:2] != "__"]
    excluded = {name.lower() for name in without}
    return [name for name in only or own if name.lower() not in excluded] or None


def _iter_constructor_guards(source: PhpSource, method: Method) -> Iterator[_Guards]:
    """Yield the middleware that a constructor adds: `$this->middleware('auth')->only('store')`."""
    read_nodes: set[int] = set()
    for node in (
        source.tree.find_nodes(_MEMBER_CALL_NODES, method.body) if method.body is not None else ()
    ):
        chain = None if node.id in read_nodes else source.parse_chain(node)
        if chain is None:
            continue
        read_nodes.update(call.node.id for call in chain.calls)
        if chain.root == "$this" and chain.calls[0].name.lower() == "middleware":
            names = list_strings(source, chain.calls[0].get_argument(0, "middleware"))
            limits = (chain.find_call(name) for name in ("only", "except"))
            arguments = (call.arguments if call is not None else () for call in limits)
            only, without = (
                [text for item in items for text in list_strings(source, item.value)]
                for items in arguments
            )
            yield names, only, without, node


def _iter_listed_guards(source: PhpSource, method: Method) -> Iterator[_Guards]:
    """Yield the middleware that a method returns in a list.

    Items are names, or objects such as `new Middleware('auth', only: ['store'])`.
    """
    if method.body is None:
        return
    returned = source.tree.find_nodes(_RETURNS, method.body)
    listed = returned[0].named_children[:1] if len(returned) == 1 else ()
    for array in listed:
        for entry in array.named_children if array.type == "array_creation_expression" else ():
            if entry.type in _LISTS and len(entry.named_children) == 1:
                yield from _iter_guards_of_entry(source, entry.named_children[0])


def _iter_guards_of_entry(source: PhpSource, node: Node) -> Iterator[_Guards]:
    if node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    if node.type != "object_creation_expression":
        yield list_strings(source, node), (), (), node
        return
    written = source.tree.get_node_text(node.named_children[0]) if node.named_children else ""
    if not written or source.resolve_class_name(written, node) != _MIDDLEWARE:
        return
    call = Call("", list_arguments(source.tree, node), node)
    names = enumerate(("middleware", "only", "except"))
    first, only, without = (list_strings(source, call.get_argument(at, name)) for at, name in names)
    yield first, only, without, node


def list_strings(source: PhpSource, node: Node | None) -> list[str]:
    """Return the strings in an expression: a string or a list; computed strings are left out."""
    value = source.read_value(node) if node is not None else None
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


def read_kernel(value: object) -> Iterator[_Statement]:
    """Yield statements for the middleware in a property of a kernel.

    The property is a list of classes, a map from alias to class, or a map from group to its
    classes and aliases.
    """
    items = value if isinstance(value, dict) else {"": value}
    for key, names in items.items():
        alias = "" if key.isdigit() else key
        for name in names if isinstance(names, list) else [names]:
            if isinstance(name, str) and (alias or "\\" in name):
                yield _build_name_statement(alias, name)


def read_names(source: PhpSource, chain: Chain, call: Call) -> Iterator[_Statement]:
    """Yield statements for the aliases and groups that a call gives to middleware.

    The call is on the router, or on the middleware configuration of an application.
    """
    name, on_configuration = call.name.lower(), chain.root == _CONFIGURATION
    alias: Value = None
    added: list[Node | None] = []
    if on_configuration and name == "alias":
        yield from read_kernel(source.read_value(call.get_argument(0, "aliases")))
    elif on_configuration and name in _GROUPS:
        alias = name
        added = [call.get_argument(at, kind) for at, kind in enumerate(("append", "prepend"))]
    elif name in _NAMING_METHODS or (on_configuration and name in _CONFIGURING_METHODS):
        alias, added = source.read_value(call.get_argument(0)), [call.get_argument(1)]
    if isinstance(alias, str):
        for node in added:
            yield from (_build_name_statement(alias, text) for text in list_strings(source, node))


def _build_name_statement(alias: str, name: str) -> _Statement:
    """Return the statement that names a middleware; arguments as in `throttle:api` are dropped."""
    return "uses_middleware", {"name": name.partition(":")[0].lstrip("\\"), "alias": alias}


def resolve_middleware(
    files: Iterable[FileFacts], version: int | None = None
) -> Mapping[str, tuple[str, ...]]:
    """Return the middleware classes that each alias and group of the repository stands for.

    Args:
        version: major version of Laravel; since version 11, Laravel defines default names.
    """
    defaults: Mapping[str, list[str]] = {}
    if version is not None and version >= _FIRST_VERSION_WITHOUT_KERNEL:
        text = resources.files(__package__).joinpath("middleware.toml").read_text("utf-8")
        defaults = tomllib.loads(text)["names"]
    entries = {name: list(defaults[name]) for name in _GROUPS & defaults.keys()}
    for file in files:
        for fact in file.facts:
            if fact.kind == "uses_middleware" and fact.values.get("alias"):
                entries.setdefault(str(fact.values["alias"]), []).append(str(fact.values["name"]))
    entries = {**defaults, **entries}
    classes_by_name = {name: tuple(dict.fromkeys(_iter_classes(name, entries))) for name in entries}
    return {name: classes for name, classes in classes_by_name.items() if classes}


def _iter_classes(name: str, entries: Mapping[str, Sequence[str]]) -> Iterator[str]:
    pending, seen = [name], set[str]()
    while pending:
        entry = pending.pop()
        if entry in seen:
            continue
        seen.add(entry)
        if "\\" in entry:
            yield entry
        else:
            pending += reversed(entries.get(entry, ()))
