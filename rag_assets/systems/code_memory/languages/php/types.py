"""Classes of variables, properties and return values, as far as the text of a method shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from rag_assets.systems.code_memory.languages.php.source import (
    BUILT_IN_TYPES,
    UNION_SEPARATOR,
    ClassLike,
    Method,
    PhpSource,
    list_parameters,
)
from rag_assets.systems.code_memory.languages.php.values import (
    CLOSURES,
    MEMBER_CALLS,
    list_arguments,
)
from rag_assets.systems.code_memory.languages.tree import Node, SyntaxTree, get_first_child

_RETURN: Final = re.compile(r"@return\s+([\w\\|?\[\]]{1,200})(?=\s|$)")
_PARAMETER: Final = re.compile(r"@param\s+([\w\\|?\[\]]{1,200})\s+(\$\w{1,100})")
_LIST: Final = "[]"
_NO_OBJECTS: Final = BUILT_IN_TYPES | {
    "boolean",
    "integer",
    "double",
    "resource",
    "callback",
    "$this",
}


def read_noted_parameters(source: PhpSource, method: Method) -> Mapping[str, tuple[str, ...]]:
    """Return, by `$name`, the parameters' origins that the comment above a method states."""
    noted = _PARAMETER.findall(_read_comment(source, method))
    classes = {name: _read_noted_classes(source, kind, method) for kind, name in noted}
    return {name: origins for name, origins in classes.items() if origins}


def read_noted_return(source: PhpSource, method: Method) -> tuple[str, ...] | None:
    """Return the origins of the return value that the comment above a method states, or None."""
    noted = _RETURN.search(_read_comment(source, method))
    return _read_noted_classes(source, noted[1], method) if noted is not None else None


def _read_comment(source: PhpSource, method: Method) -> str:
    """Return the comment before a method; "" if absent."""
    before: Node | None = method.node.prev_named_sibling
    return (
        source.tree.get_node_text(before) if before is not None and before.type == "comment" else ""
    )


def _read_noted_classes(source: PhpSource, kind: str, method: Method) -> tuple[str, ...] | None:
    """Return the origins that a type in a comment names; None if the type allows scalars."""
    origins = []
    for part in kind.lstrip("?").split(UNION_SEPARATOR):
        bare = part.removesuffix(_LIST)
        if bare.lower() in _NO_OBJECTS or not bare:
            if bare.lower() not in {"null", "void", "false"}:
                return None
            continue
        name = source.resolve_class_name(bare, method.node)
        origins.append(f"{name}::all()" if part.endswith(_LIST) else name)
    return tuple(origins) or None


CLASS_NAME_NODES: Final = frozenset({"name", "qualified_name", "relative_name", "relative_scope"})
_CALLS_WITH_NAMES: Final = MEMBER_CALLS | {"scoped_call_expression"}
_ASSIGNING: Final = CLOSURES | {"assignment_expression"}
_COMMENT: Final = "comment"
_NOTED_VARIABLE: Final = re.compile(r"@var\s+([\w\\|?]{1,200})\s+(\$\w{1,100})")
_OWN_RECEIVERS: Final = frozenset({"$this", "self", "static"})
_CONTAINER: Final = frozenset({"app", "resolve"})
_CONTAINERS: Final = frozenset({"App", "app()", "$app", "$this->app"})
"""Receivers with methods that return an object of the class they are given."""

_CONTAINER_METHODS: Final = frozenset({"make", "makewith"})
_RETURN_ONE_RECORD: Final = frozenset(
    {
        *("create", "find", "findorfail", "findornew", "first", "firstor", "firstorcreate"),
        *("firstorfail", "firstornew", "forcecreate", "make", "sole", "updateorcreate"),
    }
)
"""Methods of records, in lower case, that return one object of the class that starts the chain."""


def find_variable_types(
    source: PhpSource, method: Method, around: ClassLike | None
) -> Mapping[str, str]:
    """Return the class of each variable and property, by its name as written.

    The classes of a union are joined by `|`. Names of unknown class are left out.

    Args:
        around: the class of the method; None for a function.
    """
    types = {f"${p.name}": p.type for p in method.parameters}
    if around is not None:
        types |= {f"$this->{p.name}": p.type for p in around.properties}
        types["$this"] = around.name
    if method.body is None:
        return types
    # If a name has several types, its type counts as unknown.
    for name, class_ in _find_assigned_classes(source, method.body, around).items():
        known = class_ | ({types[name]} if name in types else set())
        types[name] = known.pop() if len(known) == 1 else ""
    return {name: kind for name, kind in types.items() if kind and kind not in BUILT_IN_TYPES}


def _find_assigned_classes(
    source: PhpSource, body: Node, around: ClassLike | None
) -> Mapping[str, set[str]]:
    """Return the classes of the values that a body assigns to each name; "" is unknown."""
    assigned: dict[str, set[str]] = {}
    noted: dict[str, set[str]] = {}
    signed_in: set[str] = set()
    for node in source.tree.find_nodes(_ASSIGNING | {_COMMENT}, body):
        if node.type == _COMMENT:
            for name, kind in _iter_noted_variables(source, node):
                noted.setdefault(name, set()).add(kind)
        elif node.type in CLOSURES:
            for parameter in list_parameters(source.tree, node, source.find_scope(node)):
                assigned.setdefault(f"${parameter.name}", set()).add(parameter.type)
        else:
            name = source.tree.get_field_text(node, "left")
            value = node.child_by_field_name("right")
            assigned.setdefault(name, set()).add(find_class_of_value(source, value, around))
            signed_in |= {name} if _is_signed_in_user(source.tree, value) else set()
    for name, kinds in noted.items():
        if name in signed_in:
            continue  # The signed-in user is not the model that the method is about.
        # A comment may state a type that the variable's value does not show.
        assigned.setdefault(name, set()).discard("")
        assigned[name] |= kinds
    return assigned


def _iter_noted_variables(source: PhpSource, comment: Node) -> Iterator[tuple[str, str]]:
    """Yield each variable of a comment such as `@var Invoice|null $invoice`, with its class."""
    for kind, name in _NOTED_VARIABLE.findall(source.tree.get_node_text(comment)):
        class_names = [
            part
            for part in kind.lstrip("?").split(UNION_SEPARATOR)
            if part.lower() not in BUILT_IN_TYPES
        ]
        if classes := UNION_SEPARATOR.join(
            source.resolve_class_name(part, comment) for part in class_names
        ):
            yield name, classes


def _is_signed_in_user(tree: SyntaxTree, value: Node | None) -> bool:
    """Return whether a value is the signed-in user: `auth()->user()`, `$request->user()`."""
    if value is None or value.type not in _CALLS_WITH_NAMES:
        return False
    return tree.get_field_text(value, "name").lower() == "user"


def find_class_of_value(
    source: PhpSource, value: Node | None, around: ClassLike | None = None
) -> str:
    """Return the class of the object that an expression evaluates to; "" if unknown.

    Args:
        value: an object creation, a container lookup, a static call, or a call of a method of
            `around`.
        around: the class that contains the expression, if any.
    """
    if value is not None and value.type == "parenthesized_expression":
        return find_class_of_value(source, get_first_child(value), around)
    if value is None:
        return ""
    if value.type == "object_creation_expression":
        return get_class_of_creation(source, value)
    if class_name := _find_provided_class(source, value) or _find_returned_class(
        source, value, around
    ):
        return class_name
    static_call = _find_static_call(source.tree, value)
    if static_call is None:
        return ""
    scope = source.tree.get_field_text(static_call, "scope")
    return source.resolve_class_name(scope, value) if scope else ""


def _find_returned_class(source: PhpSource, value: Node, around: ClassLike | None) -> str:
    """Return the class that a called method of `around` declares to return; "" if unknown."""
    if around is None or value.type not in _CALLS_WITH_NAMES:
        return ""
    receiver = value.child_by_field_name("object") or value.child_by_field_name("scope")
    if source.tree.get_node_text(receiver) not in _OWN_RECEIVERS:
        return ""
    called = around.find_method(source.tree.get_field_text(value, "name"))
    returns = called.returns if called is not None else ""
    if returns in {"self", "static"}:
        return around.name
    return "" if returns in BUILT_IN_TYPES else returns


def _find_provided_class(source: PhpSource, value: Node) -> str:
    """Return the class that a container lookup names: `app(Bills::class)`, `App::make(…)`."""
    tree = source.tree
    if value.type == "function_call_expression":
        called = tree.get_field_text(value, "function").lower().lstrip("\\")
        is_provided = called in _CONTAINER
    elif value.type in _CALLS_WITH_NAMES:
        receiver = value.child_by_field_name("object") or value.child_by_field_name("scope")
        is_lookup = tree.get_field_text(value, "name").lower() in _CONTAINER_METHODS
        is_provided = is_lookup and tree.get_node_text(receiver).lstrip("\\") in _CONTAINERS
    else:
        return ""
    return get_class_of_argument(source, value) if is_provided else ""


def get_class_of_argument(source: PhpSource, call: Node) -> str:
    """Return the class in a first argument such as `Invoice::class`; "" for any other argument."""
    class_argument = next((argument.value for argument in list_arguments(source.tree, call)), None)
    if class_argument is None or class_argument.type != "class_constant_access_expression":
        return ""
    scope, name = class_argument.named_children[0], class_argument.named_children[-1]
    is_class = source.tree.get_node_text(name).lower() == "class" and scope.type in CLASS_NAME_NODES
    return (
        source.resolve_class_name(source.tree.get_node_text(scope), class_argument)
        if is_class
        else ""
    )


def _find_static_call(tree: SyntaxTree, value: Node) -> Node | None:
    """Return the static call at the start of a chain such as `User::where(…)->first()`.

    Return None unless the last call, and no other, returns a single record. The search stops at the
    first call that rules this out, because it runs for each call of a chain.
    """
    at: Node | None = value
    while at is not None and at.type in _CALLS_WITH_NAMES:
        name = tree.get_field_text(at, "name").lower()
        if (name in _RETURN_ONE_RECORD) != (at is value):
            return None
        if at.type not in MEMBER_CALLS:
            return at
        at = at.child_by_field_name("object")
    return None


def get_class_of_creation(source: PhpSource, node: Node) -> str:
    """Return the class that `new` instantiates; "" if it is known only at run time."""
    class_node = next((n for n in node.named_children if n.type in CLASS_NAME_NODES), None)
    written_class = source.tree.get_node_text(class_node)
    return source.resolve_class_name(written_class, node) if written_class else ""
