"""Classes of variables, properties and return values, where the text of a method shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.languages.php.source import (
    NO_CLASSES,
    OR,
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
from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

_RETURN: Final = re.compile(r"@return\s+([\w\\|?\[\]]{1,200})(?=\s|$)")
_PARAMETER: Final = re.compile(r"@param\s+([\w\\|?\[\]]{1,200})\s+(\$\w{1,100})")
_LIST: Final = "[]"
_NO_OBJECTS: Final = NO_CLASSES | {"boolean", "integer", "double", "resource", "callback", "$this"}


def read_noted_parameters(source: PhpSource, method: Method) -> Mapping[str, tuple[str, ...]]:
    """Return the origins of parameters, according to the comment before a method."""
    comment = get_comment(source, method)
    found = {
        name: _noted_classes(source, kind, method) for kind, name in _PARAMETER.findall(comment)
    }
    return {name: origins for name, origins in found.items() if origins}


def read_noted_return(source: PhpSource, method: Method) -> tuple[str, ...] | None:
    """Return the origins of a return value, according to the comment; None if it states none."""
    found = _RETURN.search(get_comment(source, method))
    return _noted_classes(source, found[1], method) if found is not None else None


def get_comment(source: PhpSource, method: Method) -> str:
    """Return the comment before a method; "" if absent."""
    before: Node | None = method.node.prev_named_sibling
    return source.tree.of(before) if before is not None and before.type == "comment" else ""


def _noted_classes(source: PhpSource, kind: str, method: Method) -> tuple[str, ...] | None:
    found = []
    for one in kind.lstrip("?").split(OR):
        bare = one.removesuffix(_LIST)
        if bare.lower() in _NO_OBJECTS or not bare:
            if bare.lower() not in {"null", "void", "false"}:
                return None  # The value may be something else.
            continue
        name = source.class_name(bare, method.node)
        found.append(f"{name}::all()" if one.endswith(_LIST) else name)
    return tuple(found) or None


NAMED: Final = frozenset({"name", "qualified_name", "relative_name", "relative_scope"})
_CALLS_WITH_NAMES: Final = MEMBER_CALLS | {"scoped_call_expression"}
_ASSIGNING: Final = CLOSURES | {"assignment_expression"}
_COMMENT: Final = "comment"
_NOTED: Final = re.compile(r"@var\s+([\w\\|?]{1,200})\s+(\$\w{1,100})")
_OWN: Final = frozenset({"$this", "self", "static"})
_CONTAINER: Final = frozenset({"app", "resolve"})
_CONTAINERS: Final = frozenset({"App", "app()", "$app", "$this->app"})
"""Receivers that return an object if they are given the name of its class."""

_MADE_BY_NAME: Final = frozenset({"make", "makewith"})
_GIVE_ONE: Final = frozenset(
    {
        *("create", "find", "findorfail", "findornew", "first", "firstor", "firstorcreate"),
        *("firstorfail", "firstornew", "forcecreate", "make", "sole", "updateorcreate"),
    }
)
"""Methods of records, in lower case, that return one object of the class that starts the chain."""


def find_variable_types(
    source: PhpSource, method: Method, around: ClassLike | None
) -> Mapping[str, str]:
    """Return the classes of variables and properties, as written; a union has `|` in between.

    Args:
        method: the method with the body to read.
        around: the class of the method.
    """
    types = {f"${p.name}": p.type for p in method.parameters}
    if around is not None:
        types |= {f"$this->{p.name}": p.type for p in around.properties}
        types["$this"] = around.name
    if method.body is None:
        return types
    # If a name has several types, its type counts as unknown.
    for name, class_ in _assigned_classes(source, method.body, around).items():
        known = class_ | ({types[name]} if name in types else set())
        types[name] = known.pop() if len(known) == 1 else ""
    return {name: kind for name, kind in types.items() if kind and kind not in NO_CLASSES}


def _assigned_classes(
    source: PhpSource, body: Node, around: ClassLike | None
) -> Mapping[str, set[str]]:
    """Return the classes of the values assigned in a body; "" if unknown."""
    assigned: dict[str, set[str]] = {}
    noted: dict[str, set[str]] = {}
    signed_in: set[str] = set()
    for node in source.tree.nodes(_ASSIGNING | {_COMMENT}, body):
        if node.type == _COMMENT:
            for name, kind in _noted_variables(source, node):
                noted.setdefault(name, set()).add(kind)
        elif node.type in CLOSURES:
            for parameter in list_parameters(source.tree, node, source.find_scope(node)):
                assigned.setdefault(f"${parameter.name}", set()).add(parameter.type)
        else:
            name = source.tree.field(node, "left")
            value = node.child_by_field_name("right")
            assigned.setdefault(name, set()).add(class_of_value(source, value, around))
            signed_in |= {name} if _is_signed_in_user(source.tree, value) else set()
    for name, kinds in noted.items():
        if name in signed_in:
            continue  # The signed-in user is not the model that the method is about.
        # If its value does not show a variable's type, a comment may state it.
        assigned.setdefault(name, set()).discard("")
        assigned[name] |= kinds
    return assigned


def _noted_variables(source: PhpSource, comment: Node) -> Iterator[tuple[str, str]]:
    """Yield variables, each with the class that a comment states: `@var Invoice|null $invoice`."""
    for kind, name in _NOTED.findall(source.tree.of(comment)):
        named = [one for one in kind.lstrip("?").split(OR) if one.lower() not in NO_CLASSES]
        if classes := OR.join(source.class_name(one, comment) for one in named):
            yield name, classes


def _is_signed_in_user(tree: SyntaxTree, value: Node | None) -> bool:
    """Return whether a value is the signed-in user: `auth()->user()`, `$request->user()`."""
    if value is None or value.type not in _CALLS_WITH_NAMES:
        return False
    return tree.field(value, "name").lower() == "user"


def class_of_value(source: PhpSource, value: Node | None, around: ClassLike | None = None) -> str:
    """Return the class of the object that an expression evaluates to; "" if unknown.

    Args:
        value: an object creation, a container lookup, a static call, or a call of a method of
            `around`.
        around: the class that contains the expression, if any.
    """
    if value is not None and value.type == "parenthesized_expression":
        return class_of_value(source, next(iter(value.named_children), None), around)
    if value is None:
        return ""
    if value.type == "object_creation_expression":
        return class_of_creation(source, value)
    if named := _provided_class(source, value) or _returned_class(source, value, around):
        return named
    static_call = _find_static_call(source.tree, value)
    if static_call is None:
        return ""
    scope = source.tree.field(static_call, "scope")
    return source.class_name(scope, value) if scope else ""


def _returned_class(source: PhpSource, value: Node, around: ClassLike | None) -> str:
    """Return the declared return class of a call of one of the class's own methods."""
    if around is None or value.type not in _CALLS_WITH_NAMES:
        return ""
    of = value.child_by_field_name("object") or value.child_by_field_name("scope")
    if source.tree.of(of) not in _OWN:
        return ""
    called = around.method(source.tree.field(value, "name"))
    returns = called.returns if called is not None else ""
    if returns in {"self", "static"}:
        return around.name
    return "" if returns in NO_CLASSES else returns


def _provided_class(source: PhpSource, value: Node) -> str:
    """Return the class that the container is asked to provide.

    Examples: `app(Bills::class)`, `App::make(Bills::class)`.
    """
    tree = source.tree
    if value.type == "function_call_expression":
        called = tree.field(value, "function").lower().lstrip("\\")
        asks = called in _CONTAINER
    elif value.type in _CALLS_WITH_NAMES:
        of = value.child_by_field_name("object") or value.child_by_field_name("scope")
        by_name = tree.field(value, "name").lower() in _MADE_BY_NAME
        asks = by_name and tree.of(of).lstrip("\\") in _CONTAINERS
    else:
        return ""
    return class_of_argument(source, value) if asks else ""


def class_of_argument(source: PhpSource, call: Node) -> str:
    """Return the class if the first argument of a call is `Invoice::class`; "" for any other."""
    named = next((argument.value for argument in list_arguments(source.tree, call)), None)
    if named is None or named.type != "class_constant_access_expression":
        return ""
    scope, name = named.named_children[0], named.named_children[-1]
    is_class = source.tree.of(name).lower() == "class" and scope.type in NAMED
    return source.class_name(source.tree.of(scope), named) if is_class else ""


def _find_static_call(tree: SyntaxTree, value: Node) -> Node | None:
    """Return the static call at the start of a chain if only its last call returns one object.

    The search stops at the first call that rules this out, because it runs for every call of a
    chain.
    """
    at: Node | None = value
    while at is not None and at.type in _CALLS_WITH_NAMES:
        name = tree.field(at, "name").lower()
        if (name in _GIVE_ONE) != (at is value):
            return None
        if at.type not in MEMBER_CALLS:
            return at
        at = at.child_by_field_name("object")
    return None


def class_of_creation(source: PhpSource, node: Node) -> str:
    """Return the class that `new` instantiates; "" if it is computed."""
    named = next((n for n in node.named_children if n.type in NAMED), None)
    written = source.tree.of(named)
    return source.class_name(written, node) if written else ""
