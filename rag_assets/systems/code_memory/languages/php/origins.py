r"""Origins of objects, as texts that can be followed once the other files are known.

    App\Models\Team->servers()->first()     starts with an object of a class
    App\Models\Server::query()->get()->[]   starts with a static call; [] is an element
    currentTeam()->servers                  starts with a function; a property
    @user->currentTeam()                    starts with the signed-in user

An expression with several possible values has several origins. An expression that is null, a
string or a boolean has no origins; a computed expression has unknown origins. Two facts state them:

| kind | symbol | values |
|---|---|---|
| goes_through | the enclosing definition | of: origins of a chain of calls |
| gives | a function or method that declares no class | of: origins of its return value |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import (
    BUILT_IN_TYPES,
    UNION_SEPARATOR,
    ClassLike,
    Method,
    PhpSource,
    list_parameters,
)
from rag_assets.systems.code_memory.languages.php.types import (
    CLASS_NAME_NODES,
    get_class_of_argument,
    get_class_of_creation,
    read_noted_parameters,
    read_noted_return,
)
from rag_assets.systems.code_memory.languages.php.values import (
    CALLS,
    CLOSURES,
    MEMBER_CALLS,
    list_arguments,
)
from rag_assets.systems.code_memory.languages.tree import Node, get_first_child

STEP_SEPARATOR: Final = "->"
"""Separator between the steps of an origin."""

ELEMENT_STEP: Final = "[]"
SIGNED_IN_USER: Final = "@user"
CALL_STEP: Final = "()"

MAX_STEPS: Final = 12
_MAX_CHARACTERS: Final = 600
_MAX_ORIGINS: Final = 4
"""Maximum number of origins of an expression; if there are more, its origins are unknown."""

Origins: TypeAlias = "tuple[str, ...] | None"
"""Origins of an expression; None if they are unknown."""


def list_branches(node: Node, operator: str) -> Sequence[Node]:
    """Return the branches of a conditional, a `match` or `??`; empty for any other expression."""
    if node.type == "conditional_expression":
        chosen = node.child_by_field_name("body") or node.child_by_field_name("condition")
        branches = [chosen, node.child_by_field_name("alternative")]
    elif node.type in {"binary_expression", "augmented_assignment_expression"}:
        sides = [node.child_by_field_name(side) for side in ("left", "right")]
        branches = sides if operator in {"??", "??="} else []
    elif node.type == "match_expression":
        block = node.child_by_field_name("body")
        arms = block.named_children if block is not None else ()
        branches = [arm.child_by_field_name("return_expression") for arm in arms]
    else:
        return ()
    return [branch for branch in branches if branch is not None]


def get_loop_parts(node: Node) -> tuple[Node | None, Node | None]:
    """Return the expression that a loop iterates over, and the variable for each element."""
    parts = [named_child for named_child in node.named_children if named_child.type != "comment"]
    if len(parts) < 2:  # noqa: PLR2004 - a loop that could not be parsed
        return None, None
    value, target = parts[:2]
    if target.type in {"pair", "by_ref"} and target.named_children:
        target = target.named_children[-1]
    return value, target


def list_classes(kind: str) -> Origins:
    """Return the classes in a PHP type such as `A|B` as origins; None if the type has no class."""
    class_names = tuple(
        name for name in kind.split(UNION_SEPARATOR) if name and name not in BUILT_IN_TYPES
    )
    return class_names or None


def combine_origins(several: Iterable[Origins]) -> Origins:
    """Return the union of several origins; None if any are unknown or if there are too many."""
    combined: dict[str, None] = {}
    for origins in several:
        if origins is None:
            return None
        combined |= dict.fromkeys(origins)
    return tuple(combined) if len(combined) <= _MAX_ORIGINS else None


def append_steps(start: Origins, steps: Sequence[str]) -> Origins:
    """Return origins with further steps appended; None if any of them becomes too long."""
    if start is None or not steps:
        return start
    extended = tuple(STEP_SEPARATOR.join((origin, *steps)) for origin in start)
    longest = max((origin.count(STEP_SEPARATOR) for origin in extended), default=0)
    size = max(map(len, extended), default=0)
    return extended if longest <= MAX_STEPS and size <= _MAX_CHARACTERS else None


_MAX_DEPTH: Final = 12
"""Maximum depth of nested expressions and variables; deeper expressions count as computed."""

_ACCESSES: Final = frozenset({"member_access_expression", "nullsafe_member_access_expression"})
_EMPTY_VALUES: Final = frozenset(
    {"null", "throw_expression", "boolean", "string", "encapsed_string"}
)
_FUNCTIONS_WITHOUT_RESULT: Final = frozenset({"abort", "throw_if"})
_IDENTITY_FUNCTIONS: Final = frozenset({"optional", "tap", "with", "value"})
"""Functions that return their argument."""

_CONTAINER: Final = frozenset({"app", "resolve"})
_AUTH: Final = frozenset({"Auth", "Illuminate\\Support\\Facades\\Auth"})
_USER_PROVIDERS: Final = frozenset({"auth", "request"})
_REQUEST: Final = "$request"
_OWN_PROPERTY_PREFIX: Final = "$this->"
_ELEMENT_METHODS: Final = frozenset(
    {"each", "map", "filter", "reject", "every", "contains", "first", "flatmap", "transform"}
    | {"mapwithkeys", "sortby", "sortbydesc", "sum", "groupby", "keyby", "partition", "eachbyid"}
)
"""Methods, in lower case, that call their closure with each element."""

_ASSIGNMENTS: Final = frozenset(
    {"assignment_expression", "augmented_assignment_expression", "foreach_statement"}
)


class OriginFinder:
    """A finder of the origins of expressions in the body of one function or method.

    Args:
        around: the class of the method; None for a function.
        property_origins: origins that the class's methods assign to its properties, by
            `$this->name`.
    """

    def __init__(
        self,
        source: PhpSource,
        method: Method,
        around: ClassLike | None,
        property_origins: Mapping[str, Origins] | None = None,
    ) -> None:
        self._source = source
        self._method = method
        self._around = around
        self._property_origins = property_origins or {}
        self._known: dict[str, Origins] = {}
        self._open: set[str] = set()

    def find(self, node: Node | None, depth: int = 0) -> Origins:
        """Return the origins of an expression; None if they are unknown, () if it has none."""
        if node is None or depth > _MAX_DEPTH:
            return None
        if node.type in _EMPTY_VALUES:
            return ()
        if node.type == "object_creation_expression":
            created_class = get_class_of_creation(self._source, node)
            return (created_class,) if created_class else None
        if node.type == "variable_name":
            return self._find_variable_origins(self._source.tree.get_node_text(node), depth)
        values = _list_possible_values(node, self._source.tree.get_field_text(node, "operator"))
        if values:
            return combine_origins(self.find(value, depth + 1) for value in values)
        return self._find_chain_origins(node, depth)

    def find_assigned_origins(self) -> Mapping[str, Origins]:
        """Return the origins that this body assigns to properties of `$this`, by `$this->name`."""
        names = [name for name in self._variable_values if name.startswith(_OWN_PROPERTY_PREFIX)]
        return {name: self._find_variable_origins(name, 0) for name in names}

    def _find_chain_origins(self, node: Node, depth: int) -> Origins:
        """Return the origins of the value of a chain of calls, properties and subscripts."""
        tree, steps = self._source.tree, list[str]()
        at: Node | None = node
        while at is not None and len(steps) <= MAX_STEPS:
            if at.type in _ACCESSES and tree.get_node_text(at) in self._known_properties:
                break
            name_node = at.child_by_field_name("name")
            if at.type in MEMBER_CALLS | _ACCESSES:
                if name_node is None or name_node.type != "name":
                    return None
                steps.append(
                    tree.get_node_text(name_node) + (CALL_STEP if at.type in MEMBER_CALLS else "")
                )
                at = at.child_by_field_name("object")
            elif at.type == "subscript_expression":
                steps.append(ELEMENT_STEP)
                at = get_first_child(at)
            else:
                break
        if at is None or len(steps) > MAX_STEPS:
            return None
        steps.reverse()
        start = self._find_start_origins(at, steps, depth)
        return append_steps(start, steps)

    def _find_start_origins(self, at: Node, steps: list[str], depth: int) -> Origins:
        """Return the origins of a chain's first expression; remove a used step `user()`."""
        tree = self._source.tree
        if steps[:1] == ["user()"] and self._provides_user(at):
            del steps[0]
            return (SIGNED_IN_USER,)
        if at.type in _ACCESSES:
            return self._find_variable_origins(tree.get_node_text(at), depth)
        if at.type == "scoped_call_expression":
            return self._find_static_origins(at)
        if at.type == "function_call_expression":
            return self._find_function_origins(at, depth)
        if not steps:
            return None
        return self.find(at, depth + 1)

    def _provides_user(self, at: Node) -> bool:
        """Return whether `user()`, called on this expression, is the signed-in user: `auth()`."""
        tree = self._source.tree
        if at.type == "function_call_expression":
            return tree.get_field_text(at, "function").lstrip("\\") in _USER_PROVIDERS
        if at.type == "scoped_call_expression":
            scope = tree.get_field_text(at, "scope")
            return self._source.resolve_class_name(scope, at) in _AUTH
        return tree.get_node_text(at) == _REQUEST

    def _find_static_origins(self, at: Node) -> Origins:
        tree, scope = self._source.tree, at.child_by_field_name("scope")
        name = at.child_by_field_name("name")
        if (
            scope is None
            or scope.type not in CLASS_NAME_NODES
            or name is None
            or name.type != "name"
        ):
            return None
        owner = self._source.resolve_class_name(tree.get_node_text(scope), at)
        if owner in _AUTH and tree.get_node_text(name) == "user":
            return (SIGNED_IN_USER,)
        argument_class = get_class_of_argument(self._source, at) if owner.endswith("App") else ""
        return (
            (argument_class,)
            if argument_class
            else (f"{owner}::{tree.get_node_text(name)}{CALL_STEP}",)
        )

    def _find_function_origins(self, at: Node, depth: int) -> Origins:
        function = at.child_by_field_name("function")
        if function is None or function.type not in CLASS_NAME_NODES:
            return None
        name = self._source.find_scope(at).resolve_function_name(
            self._source.tree.get_node_text(function)
        )
        if name in _FUNCTIONS_WITHOUT_RESULT:
            return ()
        if name in _IDENTITY_FUNCTIONS:
            arguments = list_arguments(self._source.tree, at)
            return self.find(arguments[0].value, depth + 1) if arguments else None
        if name in _CONTAINER:
            argument_class = get_class_of_argument(self._source, at)
            return (argument_class,) if argument_class else None
        return (f"{name}{CALL_STEP}",)

    def _find_variable_origins(self, name: str, depth: int) -> Origins:
        """Return the origins of a variable's values; an assignment from the variable is ignored."""
        if name == "$this":
            return (self._around.name,) if self._around is not None else None
        if name in self._open:
            return ()
        if name not in self._known:
            self._open.add(name)
            self._known[name] = self._compute_variable_origins(name, depth)
            self._open.discard(name)
        return self._known[name]

    def _compute_variable_origins(self, name: str, depth: int) -> Origins:
        declared = self._declared_origins.get(name)
        if declared and name.startswith(_OWN_PROPERTY_PREFIX):
            return declared
        several: list[Origins] = [declared] if name in self._declared_origins else []
        for value, step in self._variable_values.get(name, ()):
            value_origins = self.find(value, depth + 1) if value is not None else None
            several.append(append_steps(value_origins, [step] if step else []))
        if declared:
            # Parameters are seldom reassigned to objects of other classes.
            return combine_origins(origins for origins in several if origins is not None)
        return combine_origins(several) if several else self._property_origins.get(name)

    @cached_property
    def _declared_origins(self) -> Mapping[str, Origins]:
        """Return the origins that declarations and comments state for parameters and properties.

        The keys are names as written: `$name`, `$this->name`. None means that no class is declared.
        """
        notes = read_noted_parameters(self._source, self._method)
        declared: dict[str, Origins] = {
            f"${parameter.name}": list_classes(parameter.type) or notes.get(f"${parameter.name}")
            for parameter in self._method.parameters
        }
        for property_ in self._around.properties if self._around is not None else ():
            if kinds := list_classes(property_.type):
                declared[f"$this->{property_.name}"] = kinds
        return declared

    @cached_property
    def _known_properties(self) -> frozenset[str]:
        """Return the properties of `$this` with a declared or assigned origin, as written."""
        known = {*self._declared_origins, *self._variable_values, *self._property_origins}
        return frozenset(name for name in known if name.startswith(_OWN_PROPERTY_PREFIX))

    @cached_property
    def _variable_values(self) -> Mapping[str, Sequence[tuple[Node | None, str]]]:
        """Return the values assigned to each variable in the body.

        A value is the assigned expression (None if it is unknown) and the step from it to the
        value: the element step in a loop, else "".
        """
        values_by_name: dict[str, list[tuple[Node | None, str]]] = {}
        tree, body = self._source.tree, self._method.body
        for node in tree.find_nodes(_ASSIGNMENTS | CLOSURES, body) if body is not None else ():
            if node.type in CLOSURES:
                for name, value in self._iter_closure_parameters(node):
                    values_by_name.setdefault(name, []).append((value, ELEMENT_STEP))
                continue
            if node.type == "foreach_statement":
                value, target = get_loop_parts(node)
                step = ELEMENT_STEP
            else:
                value, target = (
                    node.child_by_field_name(field_name) for field_name in ("right", "left")
                )
                step = ""
            if target is None:
                continue
            if target.type in {"variable_name", *_ACCESSES}:
                values_by_name.setdefault(tree.get_node_text(target), []).append((value, step))
            elif target.type in {"list_literal", "array_creation_expression"}:
                for inner in tree.find_nodes(frozenset({"variable_name"}), target):
                    values_by_name.setdefault(tree.get_node_text(inner), []).append((None, ""))
        return values_by_name

    def _iter_closure_parameters(self, closure: Node) -> Iterator[tuple[str, Node | None]]:
        """Yield a closure's parameters, each with the collection whose elements it gets, or None.

        Only the first parameter of a closure passed to a method such as `each` gets elements.
        """
        tree = self._source.tree
        argument = closure.parent.parent if closure.parent is not None else None
        call = argument.parent if argument is not None else None
        holder = None
        if call is not None and call.type in MEMBER_CALLS:
            method_name = tree.get_field_text(call, "name").lower()
            holder = call.child_by_field_name("object") if method_name in _ELEMENT_METHODS else None
        parameters = list_parameters(tree, closure, self._source.find_scope(closure))
        for position, parameter in enumerate(parameters):
            yield f"${parameter.name}", None if position or parameter.type else holder


def _list_possible_values(node: Node, operator: str) -> Sequence[Node]:
    """Return the expressions whose value a conditional, an assignment or parentheses may have."""
    if node.type in {"parenthesized_expression", "clone_expression"}:
        return node.named_children[:1]
    if node.type == "assignment_expression":
        value = node.child_by_field_name("right")
        return [value] if value is not None else ()
    return list_branches(node, operator)


def _find_return_origins(source: PhpSource, method: Method, finder: OriginFinder) -> Origins:
    """Return the origins of a method's return value; None if any returned value is computed."""
    if method.body is None:
        return None
    inner_end, return_origins = -1, list[Origins]()
    for node in source.tree.find_nodes(
        CLOSURES | {"return_statement", "anonymous_class"}, method.body
    ):
        if node.start_byte < inner_end:
            continue
        if node.type != "return_statement":
            inner_end = node.end_byte
        elif node.named_children:
            return_origins.append(finder.find(node.named_children[0]))
    return combine_origins(return_origins)


_FRAMEWORK_NAMESPACE: Final = "Illuminate\\"
_VAGUE_TYPES: Final = frozenset({"", "mixed", "object", "iterable", "array"})
_PROPERTY_ASSIGNMENT: Final = re.compile(r"\$this->\w+\s*=(?![=>])")
_CHAINS: Final = CALLS - {"object_creation_expression"}
_QUERIES: Final = frozenset(
    {"all", "count", "create", "delete", "exists", "find", "findorfail", "first", "firstorcreate"}
    | {"firstorfail", "firstornew", "get", "insert", "latest", "limit", "orderby", "paginate"}
    | {"pluck", "query", "save", "select", "skip", "sum", "take", "toarray", "update", "value"}
    | {"updateorcreate", "where", "wherehas", "wherein", "wherenotin", "wherenotnull", "wherenull"}
    | {"with", "withcount", "withtrashed", "orwhere", "orderbydesc", "keyby", "map", "filter"}
)
"""Methods, in lower case, with results that the class's own file determines."""


class OriginFinders:
    """The origin finders of a file's functions and methods; each is created once."""

    def __init__(self, source: PhpSource) -> None:
        self._source = source
        self._property_origins: dict[str, Mapping[str, Origins]] = {}
        self._known: dict[str, OriginFinder] = {}
        self._methods: dict[str, tuple[Method, ClassLike | None]] = {
            name: (function, None) for name, function in source.functions
        }
        for class_ in source.classes:
            for method in class_.methods:
                self._methods[f"{class_.name}::{method.name}"] = method, class_

    def __iter__(self) -> Iterator[tuple[str, Method]]:
        """Yield the functions and methods, each with its qualified name."""
        return ((name, method) for name, (method, _) in self._methods.items())

    def find(self, symbol: str) -> OriginFinder | None:
        """Return the origin finder of a function or method; None for any other symbol."""
        if symbol not in self._methods:
            return None
        if symbol not in self._known:
            method, around = self._methods[symbol]
            assigned = self._find_property_origins(around) if around is not None else {}
            self._known[symbol] = OriginFinder(self._source, method, around, assigned)
        return self._known[symbol]

    def _find_property_origins(self, around: ClassLike) -> Mapping[str, Origins]:
        """Return the origins of each property to which all methods assign the same origins."""
        if around.name not in self._property_origins:
            origins_by_property: dict[str, set[Origins]] = {}
            for method in around.methods:
                if (
                    _PROPERTY_ASSIGNMENT.search(self._source.tree.get_node_text(method.body))
                    is None
                ):
                    continue
                for name, origins in (
                    OriginFinder(self._source, method, around).find_assigned_origins().items()
                ):
                    if origins != ():
                        origins_by_property.setdefault(name, set()).add(origins)
            self._property_origins[around.name] = {
                name: next(iter(several))
                for name, several in origins_by_property.items()
                if len(several) == 1
            }
        return self._property_origins[around.name]


def iter_origin_facts(source: PhpSource, finders: OriginFinders) -> Iterator[Fact]:
    """Yield the facts `goes_through` and `gives` of a file, in no particular order."""
    for symbol, method in finders:
        finder = finders.find(symbol)
        if finder is None or method.body is None:
            continue
        if origins := _find_undeclared_return_origins(source, method, finder):
            yield source.tree.build_fact("gives", method.node, symbol, {"of": [*origins]})
        seen: set[tuple[str, ...]] = set()
        for node in _find_longest_chains(source, method.body):
            origins = finder.find(node)
            unresolved = tuple(origin for origin in origins or () if _needs_other_files(origin))
            if unresolved and unresolved not in seen:
                seen.add(unresolved)
                yield source.tree.build_fact("goes_through", node, symbol, {"of": [*unresolved]})


def _find_undeclared_return_origins(
    source: PhpSource, method: Method, finder: OriginFinder
) -> Origins:
    """Return the origins of a return value; None if the declared type already names a class."""
    declared = method.returns
    if declared not in _VAGUE_TYPES and not declared.startswith(_FRAMEWORK_NAMESPACE):
        return None
    noted = read_noted_return(source, method) if declared in _VAGUE_TYPES else None
    own = [origin for origin in noted or () if not origin.startswith(_FRAMEWORK_NAMESPACE)]
    return tuple(own) or _find_return_origins(source, method, finder)


def _find_longest_chains(source: PhpSource, body: Node) -> Iterator[Node]:
    """Yield the chains of calls in a body, without shorter chains that are part of longer ones."""
    inner: set[int] = set()
    for node in source.tree.find_nodes(_CHAINS, body):
        if node.id in inner:
            continue
        at = node.child_by_field_name("object") if node.type in MEMBER_CALLS else None
        while at is not None:
            inner.add(at.id)
            at = at.child_by_field_name("object")
        yield node


def _needs_other_files(origin: str) -> bool:
    """Return whether finding the class of an origin's result may require other files."""
    start, *steps = origin.split(STEP_SEPARATOR)
    calls = [step.removesuffix(CALL_STEP).lower() for step in steps]
    if "::" in start:
        return any(call not in _QUERIES for call in calls)
    if start.endswith(CALL_STEP):
        return bool(calls)
    return len(calls) > (0 if start.startswith("@") else 1) or _is_property(steps)


def _is_property(steps: list[str]) -> bool:
    return bool(steps) and not steps[0].endswith(CALL_STEP)
