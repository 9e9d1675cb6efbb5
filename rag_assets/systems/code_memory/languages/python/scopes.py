"""The meaning of names in a Python file: imports, definitions, and objects of known classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rag_assets.systems.code_memory.languages.python.expressions import get_dotted_name
from rag_assets.systems.code_memory.languages.python.source import (
    DEFINITIONS,
    PythonDefinition,
    PythonSource,
)
from rag_assets.systems.code_memory.languages.tree import Node, list_field_children

_MAX_DEPTH = 20
_MAX_ANNOTATION_CHARACTERS = 200
_OPTIONAL = frozenset({"Optional", "Annotated", "Final", "ClassVar"})
_TARGETS = {
    "for_statement": "left",
    "for_in_clause": "left",
    "assignment": "left",
    "augmented_assignment": "left",
    "named_expression": "name",
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """The module, class or function that a name stands for, or the class of its object.

    Attributes:
        instance: whether the name stands for an object of that class.
    """

    reference: str = ""
    instance: bool = False


_UNKNOWN = Meaning()


class Scopes:
    """The meanings of a file's names, which depend on the definition that uses them."""

    def __init__(self, source: PythonSource) -> None:
        self._source = source
        self._own = {
            f":{definition.symbol}": definition
            for definition in source.definitions
            if definition.sort == "class"
        }
        self._top = {name: Meaning(ref) for name, ref in source.names.items()}
        self._local: dict[PythonDefinition, dict[str, Meaning]] = {}
        self._fields: dict[PythonDefinition, dict[str, str]] = {}

    def find_reference(self, written: str, near: PythonDefinition | None) -> str:
        """Return the reference of a dotted name; for an unknown name, the name as written."""
        root, dot, rest = written.partition(".")
        meaning = self.find_meaning(root, near)
        if meaning is None or not meaning.reference or meaning.instance:
            return written
        return f"{meaning.reference}{dot}{rest}"

    def find_meaning(self, name: str, near: PythonDefinition | None) -> Meaning | None:
        """Return the meaning of a name; None if the file does not bind it."""
        at, steps = near, 0
        while at is not None and steps < _MAX_DEPTH:
            # Names in a class body are not visible in its methods.
            if at.sort != "class" or at is near:
                meaning = self._find_local_meanings(at).get(name)
                if meaning is not None:
                    return meaning
            at, steps = at.within, steps + 1
        return self._top.get(name) if at is None else _UNKNOWN

    def find_called_reference(self, node: Node, near: PythonDefinition | None) -> str:
        """Return the reference of the function that a call names; "" if its receiver is unknown."""
        function = node.child_by_field_name("function")
        name = get_dotted_name(self._source.tree, function)
        if name:
            return self._resolve_name(name, near)
        if function is None or function.type != "attribute":
            return ""
        owner = self._find_receiver_class(function.child_by_field_name("object"), near)
        method = self._source.tree.get_field_text(function, "attribute")
        return f"{owner}.{method}" if owner else ""

    def _resolve_name(self, name: str, near: PythonDefinition | None) -> str:
        root, dot, rest = name.partition(".")
        meaning = self.find_meaning(root, near)
        if meaning is None or not meaning.reference:
            return ""
        if not meaning.instance:
            return f"{meaning.reference}{dot}{rest}"
        first, more, last = rest.partition(".")
        if not more:
            return f"{meaning.reference}.{first}" if first else ""
        owner = self._find_attribute_class(meaning.reference, first) if root == "self" else ""
        return f"{owner}.{last}" if owner and "." not in last else ""

    def _find_receiver_class(self, node: Node | None, near: PythonDefinition | None) -> str:
        """Return the class of the object that `X()` or `super()` returns; "" for any other node."""
        if node is None or node.type != "call":
            return ""
        written_name = get_dotted_name(self._source.tree, node.child_by_field_name("function"))
        if written_name != "super":
            return self._resolve_class(written_name, near) if written_name else ""
        around = near
        while around is not None and around.sort != "class":
            around = around.within
        parents = [] if around is None else list(self.iter_base_references(around))
        return parents[0] if len(parents) == 1 else ""

    def iter_base_references(self, definition: PythonDefinition) -> Iterator[str]:
        """Yield the references of a class's bases; computed bases are left out."""
        for child in list_field_children(definition.node, "superclasses"):
            base = child.child_by_field_name("value") if child.type == "subscript" else child
            name = get_dotted_name(self._source.tree, base)
            if name:
                yield self.find_reference(name, definition.within)

    def _resolve_class(self, written_name: str, near: PythonDefinition | None) -> str:
        """Return the reference of a class in this file, or of another name that looks like a class.

        Any other name yields "".
        """
        name = self._resolve_name(written_name, near)
        if name.startswith(":"):
            return name if name in self._own else ""
        last = name.rpartition(".")[2]
        return name if last[:1].isupper() and not last.isupper() else ""

    def _find_class_in_annotation(self, node: Node | None, near: PythonDefinition | None) -> str:
        """Return the class in an annotation, without `| None` or Optional; "" if unknown."""
        at = node
        while at is not None and at.type in {"type", "binary_operator", "subscript"}:
            at = self._unwrap_annotation(at)
        written_name = get_dotted_name(self._source.tree, at)
        if at is not None and at.type == "string":
            text = self._source.tree.get_node_text(at).strip("\"'")
            is_dotted = len(text) < _MAX_ANNOTATION_CHARACTERS and all(
                map(str.isidentifier, text.split("."))
            )
            written_name = text if is_dotted else ""
        return self._resolve_class(written_name, near) if written_name else ""

    def _unwrap_annotation(self, node: Node) -> Node | None:
        if node.type == "type":
            return node.named_children[0] if len(node.named_children) == 1 else None
        tree = self._source.tree
        if node.type == "binary_operator":
            sides = [n for n in node.named_children if n.type != "none"]
            return sides[0] if len(sides) == 1 else None
        outer = get_dotted_name(tree, node.child_by_field_name("value")).rpartition(".")[2]
        return node.child_by_field_name("subscript") if outer in _OPTIONAL else None

    def _find_attribute_class(self, owner: str, name: str) -> str:
        """Return the class in the annotation of an attribute of a class in this file; else ""."""
        definition = self._own.get(owner)
        if definition is None:
            return ""
        if definition not in self._fields:
            self._fields[definition] = dict(self._iter_annotated_attributes(definition))
        return self._fields[definition].get(name, "")

    def _iter_annotated_attributes(self, definition: PythonDefinition) -> Iterator[tuple[str, str]]:
        for statement, _ in self._source.iter_statements(definition.body):
            for node in statement.named_children:
                type_ = node.child_by_field_name("type")
                if node.type == "assignment" and type_ is not None:
                    class_name = self._find_class_in_annotation(type_, definition.within)
                    yield self._source.tree.get_field_text(node, "left"), class_name

    def _find_local_meanings(self, definition: PythonDefinition) -> dict[str, Meaning]:
        if definition not in self._local:
            self._local[definition] = {}
            self._bind_names(definition, self._local[definition])
        return self._local[definition]

    def _bind_names(self, definition: PythonDefinition, meanings: dict[str, Meaning]) -> None:
        for imported in definition.imports:
            meanings[imported.alias] = Meaning(imported.reference)
        for member in definition.members:
            meanings[member.name] = Meaning(f":{member.symbol}")
        if definition.sort != "class":
            parameters = self._iter_parameter_meanings(definition)
            for name, meaning in [*parameters, *self._iter_assigned_names(definition)]:
                is_same = meanings.get(name, meaning) == meaning
                meanings[name] = meaning if is_same else _UNKNOWN

    def _iter_parameter_meanings(
        self, definition: PythonDefinition
    ) -> Iterator[tuple[str, Meaning]]:
        tree, around = self._source.tree, definition.within
        for index, node in enumerate(list_field_children(definition.node, "parameters")):
            name = node if node.type == "identifier" else node.child_by_field_name("name")
            if name is None and node.named_children:
                name = node.named_children[0]
            if index == 0 and definition.sort == "method" and around is not None:
                # The first parameter of a method is the object, or its class.
                marks = {tree.get_node_text(n).strip("@ \n") for n in definition.decorators}
                own = Meaning(f":{around.symbol}", "classmethod" not in marks)
                yield tree.get_node_text(name), _UNKNOWN if "staticmethod" in marks else own
                continue
            kind = self._find_class_in_annotation(node.child_by_field_name("type"), around)
            plain = name is not None and name.type == "identifier"
            yield tree.get_node_text(name), Meaning(kind, True) if kind and plain else _UNKNOWN

    def _iter_assigned_names(self, definition: PythonDefinition) -> Iterator[tuple[str, Meaning]]:
        tree = self._source.tree
        for node in iter_nodes_inside(definition):
            target = (
                node.child_by_field_name(_TARGETS[node.type]) if node.type in _TARGETS else None
            )
            if node.type in {"as_pattern_target", "lambda_parameters"}:
                target = node
            if target is not None and target.type == "identifier":
                yield tree.get_node_text(target), self._find_assigned_meaning(node, definition)
            elif target is not None and target.type not in {"attribute", "subscript"}:
                yield from ((tree.get_node_text(n), _UNKNOWN) for n in _iter_identifiers(target))

    def _find_assigned_meaning(self, node: Node, near: PythonDefinition) -> Meaning:
        if node.type != "assignment":
            return _UNKNOWN
        value = node.child_by_field_name("right")
        kind = self._find_class_in_annotation(node.child_by_field_name("type"), near.within)
        if not kind and value is not None and value.type == "call":
            written_name = get_dotted_name(self._source.tree, value.child_by_field_name("function"))
            kind = self._resolve_class(written_name, near) if written_name else ""
        return Meaning(kind, True) if kind else _UNKNOWN


def iter_nodes_inside(definition: PythonDefinition) -> Iterator[Node]:
    """Yield the nodes of a definition's body, without the nodes of nested definitions."""
    pending = [] if definition.body is None else [definition.body]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(n for n in reversed(node.named_children) if n.type not in DEFINITIONS)


def _iter_identifiers(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        at = pending.pop()
        if at.type == "identifier":
            yield at
        elif at.type not in {"attribute", "subscript"}:
            pending.extend(at.named_children)
