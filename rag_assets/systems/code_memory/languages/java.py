"""Java: classes, interfaces, enums and records; symbols start with the package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.definitions import read_code
from rag_assets.systems.code_memory.languages.grammar import (
    Binding,
    CodeDefinition,
    LanguageGrammar,
    ResolvedName,
)
from rag_assets.systems.code_memory.languages.tree import Node, SyntaxTree, list_field_children
from rag_assets.systems.code_memory.symbols.model import CodeText, Role

_TYPES: Final[dict[str, tuple[Role, str]]] = {
    "class_declaration": ("class", "class"),
    "interface_declaration": ("class", "interface"),
    "enum_declaration": ("class", "enum"),
    "record_declaration": ("class", "record"),
    "annotation_type_declaration": ("type", "annotation"),
}
_METHODS: Final = frozenset(
    {
        "method_declaration",
        "constructor_declaration",
        "compact_constructor_declaration",
        "annotation_type_element_declaration",
    }
)
_PARAMETERS: Final = frozenset({"formal_parameter", "spread_parameter", "resource"})
_PRIMITIVE: Final = frozenset(
    {"boolean", "byte", "char", "double", "float", "int", "long", "short", "void", "var"}
)
_TYPE = re.compile(r"(?:final\s+)?([A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*)(?:<|\s*$)")
_MAX_TYPE_CHARACTERS: Final = 200
_MAX_PACKAGES: Final = 10
"""Maximum number of packages, imported with a wildcard, in which a name is looked up."""


def read_java(text: str) -> CodeText:
    """Return the units and facts of a .java file."""
    reading = read_code(text, Java)
    packages = list(_iter_wildcard_packages(reading.facts))
    if not packages:
        return reading
    facts = tuple(
        replace(fact, values={**fact.values, "packages": packages})
        if fact.kind in {"extends", "implements", "calls"}
        else fact
        for fact in reading.facts
    )
    return replace(reading, facts=facts)


def _iter_wildcard_packages(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield the packages that a file imports with a wildcard, except `java.*` and `javax.*`."""
    names = (str(fact.values["name"]) for fact in facts if fact.kind == "imports")
    packages = (name.removesuffix(".*") for name in names if name.endswith(".*"))
    others = (name for name in packages if not name.startswith(("java.", "javax.")))
    yield from islice(others, _MAX_PACKAGES)


class Java(LanguageGrammar):
    """The grammar of Java."""

    language = "java"
    module = "tree_sitter_java"
    lists = frozenset(
        {
            "program",
            "block",
            "class_body",
            "interface_body",
            "enum_body",
            "enum_body_declarations",
            "constructor_body",
            "array_initializer",
            "switch_block",
            "switch_block_statement_group",
        }
    )
    scopes = frozenset({"block", "lambda_expression", "class_body", "for_statement"})
    members = MappingProxyType({"field_access": ("field", "object")})
    roots = frozenset({"identifier", "this"})
    own = frozenset({"this"})
    implicit = True

    def __init__(self, tree: SyntaxTree) -> None:
        super().__init__(tree)
        self._package = ""
        for node in tree.root.named_children:
            if node.type == "package_declaration" and node.named_child_count:
                name = tree.get_node_text(node.named_child(node.named_child_count - 1))
                self._package = "".join(name.split())

    def get_nested_level(self, node: Node) -> Node | None:
        """Return the node whose children are read instead of this statement; else None."""
        return node if node.type in {"ERROR", "enum_body_declarations"} else None

    def define(self, node: Node, outer: CodeDefinition | None) -> Sequence[CodeDefinition]:
        """Return the definitions in a statement or member."""
        if node.type in _TYPES:
            return [self._define_type(node, outer)]
        if node.type in _METHODS and outer is not None:
            return [self._define_method(node, outer)]
        return ()

    def _define_type(self, node: Node, outer: CodeDefinition | None) -> CodeDefinition:
        role, what = _TYPES[node.type]
        name = self.tree.get_field_text(node, "name")
        before = self._package if outer is None else outer.symbol
        symbol = f"{before}.{name}" if before else name
        body = node.child_by_field_name("body")
        parameters = tuple(self._read_parameters(node))
        extends, implements = self._read_ancestors(node)
        fields = () if body is None else tuple(self._read_fields(body))
        return CodeDefinition(
            node,
            symbol,
            role,
            what,
            body,
            True,
            self._is_public(node, outer),
            True,
            parameters,
            extends=extends,
            implements=implements,
            type=symbol,
            fields=(*parameters, *fields),
        )

    def _define_method(self, node: Node, outer: CodeDefinition) -> CodeDefinition:
        method = self.define_function(
            node,
            f"{outer.symbol}.{self.tree.get_field_text(node, 'name')}",
            outer.type,
            exported=self._is_public(node, outer),
            parameters=self._read_parameters(node),
        )
        return replace(method, what="constructor") if "constructor" in node.type else method

    def _is_public(self, node: Node, outer: CodeDefinition | None) -> bool:
        if outer is not None and outer.what in {"interface", "annotation"}:
            return outer.exported
        for child in node.named_children:
            if child.type == "modifiers":
                words = {modifier.type for modifier in child.children}
                return bool(words & {"public", "protected"}) and (outer is None or outer.exported)
        return False

    def _read_parameters(self, node: Node) -> Iterator[tuple[str, str]]:
        for child in list_field_children(node, "parameters"):
            if child.type in _PARAMETERS:
                yield from self._iter_declared_variables(child)

    def _iter_declared_variables(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the variables in a declaration, each with its declared type."""
        type_ = node.child_by_field_name("type")
        names = []
        for child in node.named_children:
            if child.type == "variable_declarator":
                names.append(child.child_by_field_name("name"))
            elif type_ is None and child.type.endswith(("type", "type_identifier")):
                type_ = child
        own = node.child_by_field_name("name")
        written_type = self.tree.get_short_text(type_)
        if node.type == "spread_parameter":
            written_type += "..."
        for name in names if own is None else [own]:
            yield self.tree.get_node_text(name), written_type

    def _read_fields(self, body: Node) -> Iterator[tuple[str, str]]:
        for node in body.named_children:
            if node.type == "field_declaration":
                yield from self._iter_declared_variables(node)

    def _read_ancestors(self, node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
        extends: list[str] = []
        implements: list[str] = []
        for child in node.named_children:
            if child.type in {"superclass", "extends_interfaces"}:
                extends += self._iter_type_names(child)
            elif child.type == "super_interfaces":
                implements += self._iter_type_names(child)
        return tuple(extends), tuple(implements)

    def _iter_type_names(self, clause: Node) -> Iterator[str]:
        for node in clause.named_children:
            for type_ in node.named_children if node.type == "type_list" else [node]:
                if name := self.get_type_name(self.tree.get_node_text(type_)):
                    yield name

    def iter_imports(self, node: Node) -> Iterable[tuple[Fact, dict[str, Binding]]]:
        """Yield the imports of an import statement, each with the names that it binds."""
        if node.type != "import_declaration":
            return
        words = self.tree.get_node_text(node).rstrip(" ;").split()
        path = "".join(word for word in words if word not in {"import", "static"})
        name = path.rsplit(".", 1)[-1]
        bound = {} if name == "*" else {name: Binding(ResolvedName(path))}
        yield self.tree.build_fact("imports", node, "", {"name": path}), bound

    def iter_bound_names(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the names that a node binds, each with its declared type or ""."""
        if node.type == "local_variable_declaration" or node.type in _PARAMETERS:
            yield from self._iter_declared_variables(node)
        elif node.type == "enhanced_for_statement":
            yield self.tree.get_field_text(node, "name"), ""
        elif node.type == "inferred_parameters":
            for child in node.named_children:
                yield self.tree.get_node_text(child), ""
        elif node.type == "lambda_expression":
            single = node.child_by_field_name("parameters")
            if single is not None and single.type == "identifier":
                yield self.tree.get_node_text(single), ""

    def get_call_chain(self, node: Node) -> list[str] | None:
        """Return the names in a method call or in `new T(…)`; None for any other node."""
        if node.type == "object_creation_expression":
            name = self.get_type_name(self.tree.get_field_text(node, "type"))
            return name.split(".") if name else None
        if node.type != "method_invocation":
            return None
        name = self.tree.get_field_text(node, "name")
        owner = node.child_by_field_name("object")
        chain = [] if owner is None else self.get_name_chain(owner)
        return None if chain is None else [*chain, name]

    def is_type(self, name: str) -> bool:
        """Return whether a name is written like a type: capitalized, but not all capitals."""
        return name[:1].isupper() and not name.isupper()

    def get_type_name(self, written_type: str) -> str:
        """Return the bare name of a type; "" for primitive types, arrays and varargs."""
        match = _TYPE.match(written_type)
        if match is None or match[1] in _PRIMITIVE or written_type.endswith(("]", "...")):
            return ""
        return match[1]
