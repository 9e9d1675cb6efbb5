"""Classes, interfaces, traits and enums with their members."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_assets.systems.code_memory.languages.php.names import NO_CLASSES, Scope
from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

CLASS_ROLES = {
    "class_declaration": "class",
    "anonymous_class": "class",
    "interface_declaration": "interface",
    "trait_declaration": "trait",
    "enum_declaration": "enum",
}
_NAMES = frozenset({"name", "qualified_name", "relative_name"})
OR = "|"
"""Separates the classes of a union type."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function.

    Attributes:
        name: the name without its dollar sign.
        type: a fully qualified class, several classes with `|` in between, or one built-in type; ""
            for any other type.
        promoted: whether it is also a property of its class.
    """

    name: str
    type: str
    promoted: bool = False


@dataclass(frozen=True, slots=True)
class Property:
    """A property, or a constant.

    Attributes:
        name: the name without a dollar sign.
        type: the type, in the same form as for a parameter.
        value: the expression of its value; None if absent.
        node: the node of the declaration.
    """

    name: str
    type: str
    value: Node | None
    node: Node


@dataclass(frozen=True, slots=True)
class Method:
    """A method, or a function.

    Attributes:
        name: the name as written.
        public, static, abstract: whether it is declared so.
        returns: the return type, in the same form as a parameter's type.
        body: the node of its body; None if absent.
        node: the node of the declaration, including attributes.
    """

    name: str
    public: bool
    static: bool
    abstract: bool
    parameters: tuple[Parameter, ...]
    returns: str
    body: Node | None
    node: Node


@dataclass(frozen=True, slots=True)
class ClassLike:
    """A class, interface, trait or enum.

    Attributes:
        role: class, interface, trait or enum.
        name: the fully qualified name; "class@" and the line for an anonymous class.
        parents: classes that it extends; several for an interface.
        interfaces, traits: their fully qualified names.
        abstract: whether it is declared abstract.
        properties, constants, methods: its members, in order; constants include an enum's cases.
        body: the node of its body; None if the declaration is broken.
        node: the node of the declaration.
    """

    role: str
    name: str
    parents: tuple[str, ...]
    interfaces: tuple[str, ...]
    traits: tuple[str, ...]
    abstract: bool
    properties: tuple[Property, ...]
    constants: tuple[Property, ...]
    methods: tuple[Method, ...]
    body: Node | None
    node: Node

    def property(self, name: str) -> Property | None:
        """Return a property by its name."""
        return next((one for one in self.properties if one.name == name), None)

    def method(self, name: str) -> Method | None:
        """Return a method by its name, ignoring case."""
        return next((one for one in self.methods if one.name.lower() == name.lower()), None)


def class_of(tree: SyntaxTree, node: Node, scope: Scope) -> ClassLike:
    """Return the class that a node declares."""
    body = node.child_by_field_name("body")
    members = body.named_children if body is not None else []
    named = node.child_by_field_name("name")
    name = scope.within(tree.of(named)) if named else f"class@{node.start_point.row + 1}"
    return ClassLike(
        role=CLASS_ROLES[node.type],
        name=name,
        parents=tuple(_listed(tree, node, "base_clause", scope)),
        interfaces=tuple(_listed(tree, node, "class_interface_clause", scope)),
        traits=tuple(
            found
            for member in members
            if member.type == "use_declaration"
            for found in _classes(tree, member, scope)
        ),
        abstract=_has(node, "abstract_modifier"),
        properties=tuple(_properties(tree, members, scope)),
        constants=tuple(_constants(tree, members)),
        methods=tuple(
            method_of(tree, member, scope)
            for member in members
            if member.type == "method_declaration"
        ),
        body=body,
        node=node,
    )


def method_of(tree: SyntaxTree, node: Node, scope: Scope) -> Method:
    """Return the method or function that a node declares."""
    visibility = next((c for c in node.children if c.type == "visibility_modifier"), None)
    return Method(
        name=tree.of(node.child_by_field_name("name")),
        public=visibility is None or tree.of(visibility).lower() == "public",
        static=_has(node, "static_modifier"),
        abstract=_has(node, "abstract_modifier"),
        parameters=parameters_of(tree, node, scope),
        returns=type_of(tree, node.child_by_field_name("return_type"), scope),
        body=node.child_by_field_name("body"),
        node=node,
    )


def parameters_of(tree: SyntaxTree, node: Node, scope: Scope) -> tuple[Parameter, ...]:
    """Return the parameters of a function, a method or a closure."""
    held = node.child_by_field_name("parameters")
    return tuple(
        Parameter(
            tree.of(child.child_by_field_name("name")).lstrip("&$"),
            type_of(tree, child.child_by_field_name("type"), scope),
            child.type == "property_promotion_parameter",
        )
        for child in (held.named_children if held is not None else ())
        if child.type.endswith("parameter")
    )


def type_of(tree: SyntaxTree, node: Node | None, scope: Scope) -> str:
    """Return the class names in a type, joined by `|`.

    If the type has no class and exactly one built-in type apart from null, return that type.
    """
    if node is None:
        return ""
    if node.type == "union_type":
        named = [child for child in node.named_children if tree.of(child).lower() != "null"]
        types = dict.fromkeys(type_of(tree, child, scope) for child in named)
        classes = [one for one in types if one and one not in NO_CLASSES]
        return OR.join(classes or [*types] * (len(types) == 1))
    if node.type == "intersection_type":
        return ""
    if node.type == "optional_type":
        return type_of(tree, next(iter(node.named_children), None), scope)
    written = tree.of(node).lstrip("?")
    return written.lower() if written.lower() in NO_CLASSES else scope.class_name(written)


def _listed(tree: SyntaxTree, node: Node, clause: str, scope: Scope) -> Iterator[str]:
    for child in node.children:
        if child.type == clause:
            yield from _classes(tree, child, scope)


def _classes(tree: SyntaxTree, node: Node, scope: Scope) -> Iterator[str]:
    return (scope.class_name(tree.of(n)) for n in node.named_children if n.type in _NAMES)


def _properties(tree: SyntaxTree, members: list[Node], scope: Scope) -> Iterator[Property]:
    for member in members:
        if member.type == "property_declaration":
            kind = type_of(tree, member.child_by_field_name("type"), scope)
            for element in member.named_children:
                if element.type == "property_element":
                    name = tree.of(element.child_by_field_name("name")).lstrip("$")
                    value = element.child_by_field_name("default_value")
                    yield Property(name, kind, value, member)
        elif member.type == "method_declaration":
            for parameter in parameters_of(tree, member, scope):
                if parameter.promoted:
                    yield Property(parameter.name, parameter.type, None, member)


def _constants(tree: SyntaxTree, members: list[Node]) -> Iterator[Property]:
    for member in members:
        if member.type == "const_declaration":
            for element in member.named_children:
                if element.type == "const_element" and element.named_child_count > 1:
                    first, *_, value = element.named_children
                    yield Property(tree.of(first), "", value, member)
        elif member.type == "enum_case":
            name = tree.of(member.child_by_field_name("name"))
            yield Property(name, "", member.child_by_field_name("value"), member)


def _has(node: Node, modifier: str) -> bool:
    return any(child.type == modifier for child in node.children)
