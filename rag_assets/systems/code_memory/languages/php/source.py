"""One PHP file: its scopes, classes, functions and statements.

Names of classes and functions are resolved according to PHP's rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rag_assets.systems.code_memory.languages.php.values import (
    COMPUTED,
    Chain,
    Constants,
    Value,
    compute_value,
    parse_chain,
)
from rag_assets.systems.code_memory.languages.tree import (
    Node,
    SyntaxTree,
    get_first_child,
    get_syntax_tree,
    list_field_children,
)

_IMPORTED_NAMES = frozenset({"name", "qualified_name", "namespace_name", "relative_name"})
BUILT_IN_TYPES = frozenset(
    {"array", "bool", "callable", "false", "float", "int", "iterable", "mixed", "never", "null"}
    | {"object", "string", "true", "void", "self", "static", "parent"}
)
"""Names of types that are not classes."""


@dataclass(frozen=True, slots=True)
class PhpImport:
    """An import: one name in a `use` statement.

    Attributes:
        name: the fully qualified name, without a leading backslash.
        kind: class, function or const.
    """

    alias: str
    name: str
    kind: str
    node: Node


@dataclass(frozen=True, slots=True)
class NamespaceScope:
    """The part of a file that belongs to one namespace.

    Attributes:
        namespace: the name, without a leading backslash; "" for the global namespace.
        start, end: byte offsets, half open.
        imports: the imports of classes, by alias in lower case.
        functions: imports of functions, by alias in lower case.
    """

    namespace: str
    start: int
    end: int
    imports: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    used: tuple[PhpImport, ...] = ()

    def resolve_class(self, written: str) -> str:
        """Return the fully qualified name of a class from its name as written."""
        if written.startswith("\\"):
            return written[1:]
        first, separator, rest = written.partition("\\")
        if first.lower() == "namespace" and separator:
            return self.qualify(rest)
        imported = self.imports.get(first.lower())
        return self.qualify(written) if imported is None else imported + separator + rest

    def resolve_function_name(self, written: str) -> str:
        """Return the qualified name of a function; a name that is plain and not imported stays."""
        if written.startswith("\\"):
            return written[1:]
        if "\\" in written:
            return self.resolve_class(written)
        return self.functions.get(written.lower(), written)

    def qualify(self, name: str) -> str:
        """Return the fully qualified form of a name in this namespace."""
        return f"{self.namespace}\\{name}" if self.namespace else name


def list_scopes(tree: SyntaxTree) -> list[NamespaceScope]:
    """Return the scopes of a file in order; together they cover the file."""
    bounds: list[tuple[str, int, int, list[Node]]] = []
    loose_nodes: list[Node] = []
    name, start = "", 0
    for child in tree.root.children:
        if child.type != "namespace_definition":
            loose_nodes.append(child)
            continue
        name_node = child.child_by_field_name("name")
        body = child.child_by_field_name("body")
        bounds.append((name, start, child.start_byte, loose_nodes))
        if body is not None:
            bounds.append(
                (tree.get_node_text(name_node), child.start_byte, child.end_byte, body.children)
            )
            name, start, loose_nodes = "", child.end_byte, []
        else:
            name, start, loose_nodes = tree.get_node_text(name_node), child.start_byte, []
    bounds.append((name, start, max(tree.root.end_byte, start) + 1, loose_nodes))
    return [_build_scope(tree, *bound) for bound in bounds]


def _build_scope(
    tree: SyntaxTree, namespace: str, start: int, end: int, nodes: list[Node]
) -> NamespaceScope:
    used = tuple(
        imported
        for node in nodes
        if node.type == "namespace_use_declaration"
        for imported in _read_imports(tree, node)
    )
    return NamespaceScope(
        namespace=namespace,
        start=start,
        end=end,
        imports={use.alias.lower(): use.name for use in used if use.kind == "class"},
        functions={use.alias.lower(): use.name for use in used if use.kind == "function"},
        used=used,
    )


def _read_imports(tree: SyntaxTree, node: Node) -> Iterator[PhpImport]:
    kind, prefix = "class", ""
    for child in node.children:
        if child.type in {"function", "const"}:
            kind = child.type
        elif child.type == "namespace_name":
            prefix = tree.get_node_text(child) + "\\"
        elif child.type == "namespace_use_clause":
            yield _read_import(tree, child, kind, prefix)
        elif child.type == "namespace_use_group":
            for clause in child.named_children:
                if clause.type == "namespace_use_clause":
                    yield _read_import(tree, clause, kind, prefix)


def _read_import(tree: SyntaxTree, clause: Node, kind: str, prefix: str) -> PhpImport:
    alias = clause.child_by_field_name("alias")
    for child in clause.children:
        if child.type in {"function", "const"}:
            kind = child.type
    name_node = next(
        (n for n in clause.named_children if n.type in _IMPORTED_NAMES and n != alias), None
    )
    name = (prefix + tree.get_node_text(name_node)).lstrip("\\")
    return PhpImport(tree.get_node_text(alias) or name.rpartition("\\")[2], name, kind, clause)


CLASS_ROLES = {
    "class_declaration": "class",
    "anonymous_class": "class",
    "interface_declaration": "interface",
    "trait_declaration": "trait",
    "enum_declaration": "enum",
}
_NAMES = frozenset({"name", "qualified_name", "relative_name"})
UNION_SEPARATOR = "|"
"""Separates the classes of a union type."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function.

    Attributes:
        type: a fully qualified class, several classes joined by `|`, or one built-in type; "" for
            any other type.
        promoted: whether it also declares a property of its class.
    """

    name: str
    type: str
    promoted: bool = False


@dataclass(frozen=True, slots=True)
class Property:
    """A property or a constant of a class.

    Attributes:
        type: the type, in the same form as for a parameter.
        value: the expression of its value; None if absent.
    """

    name: str
    type: str
    value: Node | None
    node: Node


@dataclass(frozen=True, slots=True)
class Method:
    """A method or a function.

    Attributes:
        returns: the return type, in the same form as a parameter's type.
        node: the node of the declaration, including attributes.
    """

    name: str
    public: bool
    static: bool
    parameters: tuple[Parameter, ...]
    returns: str
    body: Node | None
    node: Node


@dataclass(frozen=True, slots=True)
class ClassLike:
    """A class, interface, trait or enum.

    Attributes:
        name: the fully qualified name; for an anonymous class, "class@" and its line.
        parents: the class that it extends; for an interface, all interfaces that it extends.
        interfaces, traits: fully qualified names of what it implements and uses.
        properties, constants, methods: its members, in order; constants include an enum's cases.
        body: the node of its body; None if the declaration is broken.
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

    def find_property(self, name: str) -> Property | None:
        """Return the property with this name; None if the class does not declare it."""
        return next((own for own in self.properties if own.name == name), None)

    def find_method(self, name: str) -> Method | None:
        """Return the method with this name, ignoring case; None if the class does not define it."""
        return next((own for own in self.methods if own.name.lower() == name.lower()), None)


def build_class(tree: SyntaxTree, node: Node, scope: NamespaceScope) -> ClassLike:
    """Return the class that a node declares."""
    members = list_field_children(node, "body")
    name_node = node.child_by_field_name("name")
    name = (
        scope.qualify(tree.get_node_text(name_node))
        if name_node
        else f"class@{node.start_point.row + 1}"
    )
    return ClassLike(
        role=CLASS_ROLES[node.type],
        name=name,
        parents=tuple(_iter_classes_in_clause(tree, node, "base_clause", scope)),
        interfaces=tuple(_iter_classes_in_clause(tree, node, "class_interface_clause", scope)),
        traits=tuple(
            class_
            for member in members
            if member.type == "use_declaration"
            for class_ in _iter_classes_in_type(tree, member, scope)
        ),
        abstract=_has_modifier(node, "abstract_modifier"),
        properties=tuple(_read_properties(tree, members, scope)),
        constants=tuple(_read_constants(tree, members)),
        methods=tuple(
            build_method(tree, member, scope)
            for member in members
            if member.type == "method_declaration"
        ),
        body=node.child_by_field_name("body"),
        node=node,
    )


def build_method(tree: SyntaxTree, node: Node, scope: NamespaceScope) -> Method:
    """Return the method or function that a node declares."""
    visibility = next((c for c in node.children if c.type == "visibility_modifier"), None)
    return Method(
        name=tree.get_field_text(node, "name"),
        public=visibility is None or tree.get_node_text(visibility).lower() == "public",
        static=_has_modifier(node, "static_modifier"),
        parameters=list_parameters(tree, node, scope),
        returns=get_type(tree, node.child_by_field_name("return_type"), scope),
        body=node.child_by_field_name("body"),
        node=node,
    )


def list_parameters(tree: SyntaxTree, node: Node, scope: NamespaceScope) -> tuple[Parameter, ...]:
    """Return the parameters of a function, a method or a closure."""
    return tuple(
        Parameter(
            tree.get_field_text(child, "name").lstrip("&$"),
            get_type(tree, child.child_by_field_name("type"), scope),
            child.type == "property_promotion_parameter",
        )
        for child in list_field_children(node, "parameters")
        if child.type.endswith("parameter")
    )


def get_type(tree: SyntaxTree, node: Node | None, scope: NamespaceScope) -> str:
    """Return the classes in a type, joined by `|`; if there is none, the built-in type or ""."""
    if node is None:
        return ""
    if node.type == "union_type":
        class_names = [
            child for child in node.named_children if tree.get_node_text(child).lower() != "null"
        ]
        types = dict.fromkeys(get_type(tree, child, scope) for child in class_names)
        classes = [name for name in types if name and name not in BUILT_IN_TYPES]
        return UNION_SEPARATOR.join(classes or [*types] * (len(types) == 1))
    if node.type == "intersection_type":
        return ""
    if node.type == "optional_type":
        return get_type(tree, get_first_child(node), scope)
    written_type = tree.get_node_text(node).lstrip("?")
    return (
        written_type.lower()
        if written_type.lower() in BUILT_IN_TYPES
        else scope.resolve_class(written_type)
    )


def _iter_classes_in_clause(
    tree: SyntaxTree, node: Node, clause: str, scope: NamespaceScope
) -> Iterator[str]:
    for child in node.children:
        if child.type == clause:
            yield from _iter_classes_in_type(tree, child, scope)


def _iter_classes_in_type(tree: SyntaxTree, node: Node, scope: NamespaceScope) -> Iterator[str]:
    return (
        scope.resolve_class(tree.get_node_text(n)) for n in node.named_children if n.type in _NAMES
    )


def _read_properties(
    tree: SyntaxTree, members: list[Node], scope: NamespaceScope
) -> Iterator[Property]:
    for member in members:
        if member.type == "property_declaration":
            kind = get_type(tree, member.child_by_field_name("type"), scope)
            for element in member.named_children:
                if element.type == "property_element":
                    name = tree.get_field_text(element, "name").lstrip("$")
                    value = element.child_by_field_name("default_value")
                    yield Property(name, kind, value, member)
        elif member.type == "method_declaration":
            for parameter in list_parameters(tree, member, scope):
                if parameter.promoted:
                    yield Property(parameter.name, parameter.type, None, member)


def _read_constants(tree: SyntaxTree, members: list[Node]) -> Iterator[Property]:
    for member in members:
        if member.type == "const_declaration":
            for element in member.named_children:
                if element.type == "const_element" and element.named_child_count > 1:
                    first, *_, value = element.named_children
                    yield Property(tree.get_node_text(first), "", value, member)
        elif member.type == "enum_case":
            name = tree.get_field_text(member, "name")
            yield Property(name, "", member.child_by_field_name("value"), member)


def _has_modifier(node: Node, modifier: str) -> bool:
    return any(child.type == modifier for child in node.children)


_CLASSES = frozenset(CLASS_ROLES)
_FUNCTIONS = frozenset({"function_definition"})
_RELATIVE = frozenset({"self", "static"})


class PhpSource:
    """A PHP file."""

    def __init__(self, text: str) -> None:
        self.tree = get_syntax_tree(text, "tree_sitter_php", "language_php")
        self.scopes = list_scopes(self.tree)
        self._starts = [scope.start for scope in self.scopes]

    @property
    def text(self) -> str:
        """Return the text of the file."""
        return self.tree.text

    def find_scope(self, node: Node) -> NamespaceScope:
        """Return the namespace scope that contains a node."""
        return self.scopes[max(0, bisect_right(self._starts, node.start_byte) - 1)]

    @cached_property
    def classes(self) -> tuple[ClassLike, ...]:
        """Return all classes, interfaces, traits and enums, in order."""
        return tuple(
            build_class(self.tree, node, self.find_scope(node))
            for node in self.tree.find_nodes(_CLASSES)
        )

    @cached_property
    def _class_starts(self) -> list[int]:
        return [class_.node.start_byte for class_ in self.classes]

    @cached_property
    def functions(self) -> tuple[tuple[str, Method], ...]:
        """Return all functions outside classes, with their fully qualified names."""
        return tuple(
            (self.find_scope(node).qualify(function.name), function)
            for node in self.tree.find_nodes(_FUNCTIONS)
            for function in (build_method(self.tree, node, self.find_scope(node)),)
        )

    def iter_statements(self) -> Iterator[Node]:
        """Yield the top-level statements of a file and of its namespaces, in order."""
        for child in self.tree.root.named_children:
            body = child.child_by_field_name("body")
            if child.type == "namespace_definition" and body is not None:
                yield from body.named_children
            else:
                yield child

    def find_class(self, node: Node) -> ClassLike | None:
        """Return the innermost class that contains a node; None outside classes."""
        before = bisect_right(self._class_starts, node.start_byte)
        around = (
            class_ for class_ in reversed(self.classes[:before]) if _contains(class_.node, node)
        )
        return next(around, None)

    def resolve_class_name(self, written: str, near: Node) -> str:
        """Return the fully qualified name of a class from its name as written at a node.

        `self` and `static` mean the class around the node, `parent` its parent class.
        """
        word = written.lower()
        if word in _RELATIVE or word == "parent":
            around = self.find_class(near)
            if around is None:
                return written
            return (around.parents or (written,))[0] if word == "parent" else around.name
        return self.find_scope(near).resolve_class(written)

    def read_value(self, node: Node | None) -> Value:
        """Return the value of an expression, or COMPUTED if it is known only at run time."""
        if node is None:
            return None
        return compute_value(self.tree, node, self._build_constants(node))

    def parse_chain(self, node: Node) -> Chain | None:
        """Return the chain of calls in an expression; None if it is not a chain."""
        return parse_chain(self.tree, node)

    def _build_constants(self, near: Node) -> Constants:
        def constant(owner: str, name: str) -> Value:
            class_ = next((class_ for class_ in self.classes if class_.name == owner), None)
            constants = () if class_ is None else class_.constants
            own_constant = next((own for own in constants if own.name == name), None)
            if own_constant is None or own_constant.value is None:
                return COMPUTED
            # Only one reference is followed, since constants may refer to each other in a circle.
            plain = Constants(lambda written: self.resolve_class_name(written, near))
            return compute_value(self.tree, own_constant.value, plain)

        return Constants(lambda written: self.resolve_class_name(written, near), constant)


def _contains(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte < outer.end_byte
