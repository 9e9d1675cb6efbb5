"""The origins of expressions in the bodies of functions and methods; see the module origins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from rag_assets.systems.code_memory.languages.php.calls import CLOSURES, MEMBER_CALLS, arguments_of
from rag_assets.systems.code_memory.languages.php.classes import ClassLike, Method, parameters_of
from rag_assets.systems.code_memory.languages.php.notes import noted_parameters
from rag_assets.systems.code_memory.languages.php.origins import (
    CALLED,
    ELEMENT,
    MOST_STEPS,
    SIGNED_IN,
    Origins,
    branches_of,
    classes_in,
    either,
    joined,
    looped,
)
from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.languages.php.types import (
    NAMED,
    class_of_constant,
    class_of_creation,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST: Final = 12
"""Maximum depth of variables and expressions that refer to each other; deeper counts as
computed."""

_ACCESSES: Final = frozenset({"member_access_expression", "nullsafe_member_access_expression"})
_NOTHING: Final = frozenset({"null", "throw_expression", "boolean", "string", "encapsed_string"})
_GIVES_NOTHING: Final = frozenset({"abort", "throw_if"})
_SAME: Final = frozenset({"optional", "tap", "with", "value"})
"""Functions that return their argument."""

_CONTAINER: Final = frozenset({"app", "resolve"})
_AUTH: Final = frozenset({"Auth", "Illuminate\\Support\\Facades\\Auth"})
_ASK_FOR_USER: Final = frozenset({"auth", "request"})
_REQUEST: Final = "$request"
_OWN: Final = "$this->"
_OF_ELEMENTS: Final = frozenset(
    {"each", "map", "filter", "reject", "every", "contains", "first", "flatmap", "transform"}
    | {"mapwithkeys", "sortby", "sortbydesc", "sum", "groupby", "keyby", "partition", "eachbyid"}
)
"""Methods, in lower case, that call their closure with each element."""

_CHANGES: Final = frozenset(
    {"assignment_expression", "augmented_assignment_expression", "foreach_statement"}
)


class Body:
    """Determines the origins of the expressions in one body.

    Args:
        method: the method with this body.
        around: the class of the method.
        held: origins that other methods assign to the properties of that class, by `$this->name`.
    """

    def __init__(
        self,
        source: PhpSource,
        method: Method,
        around: ClassLike | None,
        held: Mapping[str, Origins] | None = None,
    ) -> None:
        self._source = source
        self._method = method
        self._around = around
        self._held = held or {}
        self._known: dict[str, Origins] = {}
        self._open: set[str] = set()

    def of(self, node: Node | None, depth: int = 0) -> Origins:
        """Return the origins of an expression."""
        if node is None or depth > _DEEPEST:
            return None
        if node.type in _NOTHING:
            return ()
        if node.type == "object_creation_expression":
            made = class_of_creation(self._source, node)
            return (made,) if made else None
        if node.type == "variable_name":
            return self._variable(self._source.tree.of(node), depth)
        held = _held_by(node, self._source.tree.of(node.child_by_field_name("operator")))
        if held:
            return either(self.of(one, depth + 1) for one in held)
        return self._path(node, depth)

    def assigned(self) -> Mapping[str, Origins]:
        """Return the origins assigned to properties of `$this` in this body."""
        names = [name for name in self._values if name.startswith(_OWN)]
        return {name: self._variable(name, 0) for name in names}

    def _path(self, node: Node, depth: int) -> Origins:
        """Return the origins of a chain of calls, properties and elements."""
        tree, steps = self._source.tree, list[str]()
        at: Node | None = node
        while at is not None and len(steps) <= MOST_STEPS:
            if at.type in _ACCESSES and tree.of(at) in self._properties:
                break
            named = at.child_by_field_name("name")
            if at.type in MEMBER_CALLS | _ACCESSES:
                if named is None or named.type != "name":
                    return None
                steps.append(tree.of(named) + (CALLED if at.type in MEMBER_CALLS else ""))
                at = at.child_by_field_name("object")
            elif at.type == "subscript_expression":
                steps.append(ELEMENT)
                at = next(iter(at.named_children), None)
            else:
                break
        if at is None or len(steps) > MOST_STEPS:
            return None
        steps.reverse()
        begun = self._begun(at, steps, depth)
        return joined(begun, steps)

    def _begun(self, at: Node, steps: list[str], depth: int) -> Origins:
        """Return the origins of the start of a path; remove the steps that belong to the start."""
        tree = self._source.tree
        asks = steps[:1] == ["user()"] and self._asks_for_user(at)
        if asks:
            del steps[0]
            return (SIGNED_IN,)
        if at.type in _ACCESSES:
            return self._variable(tree.of(at), depth)
        if at.type == "scoped_call_expression":
            return self._static(at)
        if at.type == "function_call_expression":
            return self._function(at, depth)
        if not steps:
            return None
        return self.of(at, depth + 1)

    def _asks_for_user(self, at: Node) -> bool:
        tree = self._source.tree
        if at.type == "function_call_expression":
            return tree.of(at.child_by_field_name("function")).lstrip("\\") in _ASK_FOR_USER
        if at.type == "scoped_call_expression":
            scope = tree.of(at.child_by_field_name("scope"))
            return self._source.class_name(scope, at) in _AUTH
        return tree.of(at) == _REQUEST

    def _static(self, at: Node) -> Origins:
        tree, scope = self._source.tree, at.child_by_field_name("scope")
        name = at.child_by_field_name("name")
        if scope is None or scope.type not in NAMED or name is None or name.type != "name":
            return None
        owner = self._source.class_name(tree.of(scope), at)
        if owner in _AUTH and tree.of(name) == "user":
            return (SIGNED_IN,)
        made = self._asked_by_name(at) if owner.endswith("App") else ""
        return (made,) if made else (f"{owner}::{tree.of(name)}{CALLED}",)

    def _function(self, at: Node, depth: int) -> Origins:
        function = at.child_by_field_name("function")
        if function is None or function.type not in NAMED:
            return None
        name = self._source.scope_at(at).function_name(self._source.tree.of(function))
        if name in _GIVES_NOTHING:
            return ()
        if name in _SAME:
            given = arguments_of(self._source.tree, at)
            return self.of(given[0].value, depth + 1) if given else None
        if name in _CONTAINER:
            made = self._asked_by_name(at)
            return (made,) if made else None
        return (f"{name}{CALLED}",)

    def _asked_by_name(self, at: Node) -> str:
        given = arguments_of(self._source.tree, at)[:1]
        named = given[0].value if given else None
        if named is None or named.type != "class_constant_access_expression":
            return ""
        return class_of_constant(self._source, named)

    def _variable(self, name: str, depth: int) -> Origins:
        """Return the origins of a variable; an assignment from the variable itself adds none."""
        if name == "$this":
            return (self._around.name,) if self._around is not None else None
        if name in self._open:
            return ()
        if name not in self._known:
            self._open.add(name)
            self._known[name] = self._worked_out(name, depth)
            self._open.discard(name)
        return self._known[name]

    def _worked_out(self, name: str, depth: int) -> Origins:
        declared = self._declared.get(name)
        if declared and name.startswith(_OWN):
            return declared
        given: list[Origins] = [declared] if name in self._declared else []
        for value, step in self._values.get(name, ()):
            found = self.of(value, depth + 1) if value is not None else None
            given.append(joined(found, [step] if step else []))
        if declared:
            # Parameters are seldom reassigned to objects of other classes.
            return either(one for one in given if one is not None)
        return either(given) if given else self._held.get(name)

    @cached_property
    def _declared(self) -> Mapping[str, Origins]:
        """Return the declared origins of parameters and properties, by name; None if unknown."""
        notes = noted_parameters(self._source, self._method)
        found: dict[str, Origins] = {
            f"${one.name}": classes_in(one.type) or notes.get(f"${one.name}")
            for one in self._method.parameters
        }
        for one in self._around.properties if self._around is not None else ():
            if kinds := classes_in(one.type):
                found[f"$this->{one.name}"] = kinds
        return found

    @cached_property
    def _properties(self) -> frozenset[str]:
        """Return the properties of `$this` about which something is known, as written."""
        known = {*self._declared, *self._values, *self._held}
        return frozenset(name for name in known if name.startswith(_OWN))

    @cached_property
    def _values(self) -> Mapping[str, Sequence[tuple[Node | None, str]]]:
        """Return the values of variables, each as an expression and a step; None if computed."""
        found: dict[str, list[tuple[Node | None, str]]] = {}
        tree, body = self._source.tree, self._method.body
        for node in tree.nodes(_CHANGES | CLOSURES, body) if body is not None else ():
            if node.type in CLOSURES:
                for name, value in self._taken(node):
                    found.setdefault(name, []).append((value, ELEMENT))
                continue
            if node.type == "foreach_statement":
                value, target = looped(node)
                step = ELEMENT
            else:
                value, target = (node.child_by_field_name(one) for one in ("right", "left"))
                step = ""
            if target is None:
                continue
            if target.type in {"variable_name", *_ACCESSES}:
                found.setdefault(tree.of(target), []).append((value, step))
            elif target.type in {"list_literal", "array_creation_expression"}:
                for inner in tree.nodes(frozenset({"variable_name"}), target):
                    found.setdefault(tree.of(inner), []).append((None, ""))
        return found

    def _taken(self, closure: Node) -> Iterable[tuple[str, Node | None]]:
        """Return a closure's parameters, the first with the expression that holds its elements."""
        tree = self._source.tree
        given = closure.parent.parent if closure.parent is not None else None
        call = given.parent if given is not None else None
        holder = None
        if call is not None and call.type in MEMBER_CALLS:
            named = tree.of(call.child_by_field_name("name")).lower()
            holder = call.child_by_field_name("object") if named in _OF_ELEMENTS else None
        taken = parameters_of(tree, closure, self._source.scope_at(closure))
        for position, one in enumerate(taken):
            yield f"${one.name}", None if position or one.type else holder


def _held_by(node: Node, operator: str) -> Sequence[Node]:
    """Return the expressions whose value an expression may have."""
    if node.type in {"parenthesized_expression", "clone_expression"}:
        return node.named_children[:1]
    if node.type == "assignment_expression":
        given = node.child_by_field_name("right")
        return [given] if given is not None else ()
    return branches_of(node, operator)


def returned(source: PhpSource, method: Method, body: Body) -> Origins:
    """Return the origins of a method's return value; None if any part of the value is computed."""
    if method.body is None:
        return None
    inner_end, found = -1, list[Origins]()
    for node in source.tree.nodes(CLOSURES | {"return_statement", "anonymous_class"}, method.body):
        if node.start_byte < inner_end:
            continue
        if node.type != "return_statement":
            inner_end = node.end_byte
        elif node.named_children:
            found.append(body.of(node.named_children[0]))
    return either(found)
