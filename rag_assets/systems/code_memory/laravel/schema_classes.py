"""The classes of a PHP file with their methods, constants and properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rag_assets.systems.code_memory.laravel.schema_php import PhpReader, Scope

if TYPE_CHECKING:
    from tree_sitter import Node

_CLASSES: Final = frozenset(
    {"class_declaration", "anonymous_class", "trait_declaration", "interface_declaration"}
)


@dataclass(frozen=True, slots=True)
class PhpClass:
    """A class, a trait, or an anonymous class.

    Attributes:
        node: its declaration.
        name: the qualified name; "class@" and the line for an anonymous class.
        parent: qualified name of the class it extends; "" if it extends none.
        interfaces, traits: their qualified names.
        methods: bodies, by name; declarations: the methods themselves.
        constants: values, by name.
        properties: values by name, each with the node that states it.
        kind: class, trait or interface.
    """

    node: Node
    name: str
    parent: str
    traits: tuple[str, ...]
    methods: Mapping[str, Node]
    declarations: Mapping[str, Node]
    constants: Mapping[str, Any]
    properties: Mapping[str, tuple[Any, Node]]
    kind: str
    reader: PhpReader

    def scope(self, method: str) -> Scope:
        """Return the names that are known at the start of a method."""
        known = {f"this->{name}": value for name, (value, _) in self.properties.items()}
        return Scope(known, self.constants, self.name, method, self.methods)

    def parameters(self, method: str) -> tuple[str, ...]:
        """Return the names of a method's parameters, without the dollar sign."""
        listed = self.declarations[method].child_by_field_name("parameters")
        names = []
        for parameter in listed.named_children if listed is not None else ():
            name = parameter.child_by_field_name("name")
            if name is not None:
                names.append(self.reader.tree.of(name).lstrip("$"))
        return tuple(names)


def php_classes(reader: PhpReader) -> Iterator[PhpClass]:
    """Yield the classes and traits of a file, in order."""
    for node in reader.tree.nodes(_CLASSES):
        yield _read(reader, node)


def _read(reader: PhpReader, node: Node) -> PhpClass:
    tree = reader.tree
    stated = node.child_by_field_name("name")
    name = f"class@{node.start_point.row + 1}"
    space = reader.names.namespace
    if stated is not None:
        name = f"{space}\\{tree.of(stated)}" if space else tree.of(stated)
    base = next((c for c in node.children if c.type == "base_clause"), None)
    parents = [reader.names.class_name(tree.of(c)) for c in base.named_children] if base else []
    body = node.child_by_field_name("body")
    members = body.named_children if body is not None else []
    scope = Scope(class_name=name)
    constants = _constants(reader, members, scope)
    scope = Scope(constants=constants, class_name=name)
    declarations = {
        tree.of(member.child_by_field_name("name")): member
        for member in members
        if member.type == "method_declaration"
    }
    bodies = {key: method.child_by_field_name("body") for key, method in declarations.items()}
    return PhpClass(
        node,
        name,
        parents[0] if parents else "",
        tuple(
            reader.names.class_name(tree.of(used))
            for member in members
            if member.type == "use_declaration"
            for used in member.named_children
            if used.type in {"name", "qualified_name"}
        ),
        {key: method for key, method in bodies.items() if method is not None},
        declarations,
        constants,
        _properties(reader, members, scope),
        node.type.split("_", 1)[0] if node.type != "anonymous_class" else "class",
        reader,
    )


def _constants(reader: PhpReader, members: list[Node], scope: Scope) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for member in members:
        for element in member.named_children if member.type == "const_declaration" else ():
            if element.type == "const_element" and len(element.named_children) > 1:
                key, value = element.named_children[0], element.named_children[-1]
                found[reader.tree.of(key)] = reader.value(value, scope)
    return found


def _properties(
    reader: PhpReader, members: list[Node], scope: Scope
) -> dict[str, tuple[Any, Node]]:
    found: dict[str, tuple[Any, Node]] = {}
    for member in members:
        for element in member.named_children if member.type == "property_declaration" else ():
            if element.type == "property_element":
                value = element.child_by_field_name("default_value")
                name = reader.tree.of(element.child_by_field_name("name")).lstrip("$")
                found[name] = (reader.value(value, scope), member)
    return found
