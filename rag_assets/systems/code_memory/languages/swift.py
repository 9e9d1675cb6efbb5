"""Swift: types, views, extensions and functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.definitions import read_code
from rag_assets.systems.code_memory.languages.grammar import (
    Binding,
    CodeDefinition,
    LanguageGrammar,
)
from rag_assets.systems.code_memory.languages.tree import Node, get_first_child, list_field_children
from rag_assets.systems.code_memory.manifests import iter_swift_facts as swift_packages
from rag_assets.systems.code_memory.symbols.model import CodeText, Role

_ROLES: Final[dict[str, Role]] = {"class": "class", "enum": "class", "actor": "class"}
_FUNCTIONS: Final = {
    "function_declaration": "",
    "protocol_function_declaration": "",
    "init_declaration": "init",
    "deinit_declaration": "deinit",
    "subscript_declaration": "subscript",
}
_HIDING_MODIFIERS: Final = frozenset({"private", "fileprivate"})
_TYPE = re.compile(r"\s*(?:inout\s+|some\s+|any\s+|@\w+\s+)*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_PROTOCOLS: Final = frozenset(
    {"AnyObject", "Error", "ObservableObject", "View", "App", "Scene", "Sequence", "Collection"}
)
_PROTOCOL_ENDS: Final = ("able", "Protocol", "Delegate", "DataSource", "Providing")
_MAX_TYPE_CHARACTERS: Final = 200


def read_swift(text: str) -> CodeText:
    """Return the units and facts of a .swift file."""
    reading = read_code(text, Swift)
    return reading.add_facts(swift_packages(text)) if "PackageDescription" in text else reading


class Swift(LanguageGrammar):
    """The grammar of Swift."""

    language = "swift"
    module = "tree_sitter_swift"
    lists = frozenset(
        {
            "source_file",
            "class_body",
            "enum_class_body",
            "protocol_body",
            "statements",
            "array_literal",
            "dictionary_literal",
            "computed_property",
            "switch_statement",
        }
    )
    scopes = frozenset({"statements", "lambda_literal"})
    own = frozenset({"self"})
    own_types = frozenset({"Self"})
    implicit = True

    def define(self, node: Node, outer: CodeDefinition | None) -> Sequence[CodeDefinition]:
        """Return the definitions in a statement or member."""
        if node.type == "class_declaration":
            return [self._define_type(node, outer)]
        if node.type == "protocol_declaration":
            return [self._define_protocol(node, outer)]
        if node.type in _FUNCTIONS:
            return [self._define_function(node, outer)]
        if node.type == "property_declaration":
            return self._define_property(node, outer)
        if node.type == "typealias_declaration" and outer is None:
            name = self.tree.get_field_text(node, "name")
            return [CodeDefinition(node, name, "type", "typealias", exported=self._is_public(node))]
        return ()

    def _define_type(self, node: Node, outer: CodeDefinition | None) -> CodeDefinition:
        kind = self.tree.get_field_text(node, "declaration_kind") or "class"
        type_text = self.tree.get_field_text(node, "name")
        symbol = self.qualify("".join(type_text.split("<", 1)[0].split()), outer)
        inherited = list(self._iter_inherited_types(node))
        if kind == "struct" and {"View", "SwiftUI.View"} & set(inherited):
            kind = "view"
        extends: tuple[str, ...] = ()
        is_protocol = inherited and (
            inherited[0] in _PROTOCOLS or inherited[0].endswith(_PROTOCOL_ENDS)
        )
        if kind == "class" and inherited and not is_protocol:
            extends = (inherited.pop(0),)
        body = node.child_by_field_name("body")
        members = list_field_children(node, "body")
        properties = [member for member in members if member.type == "property_declaration"]
        return CodeDefinition(
            node,
            symbol,
            _ROLES.get(kind, "type"),
            kind,
            body,
            True,
            self._is_public(node),
            extends=extends,
            implements=tuple(inherited),
            type=symbol,
            fields=tuple(pair for member in properties for pair in self._iter_typed_names(member)),
        )

    def _define_protocol(self, node: Node, outer: CodeDefinition | None) -> CodeDefinition:
        symbol = self.qualify(self.tree.get_field_text(node, "name"), outer)
        return CodeDefinition(
            node,
            symbol,
            "type",
            "protocol",
            node.child_by_field_name("body"),
            True,
            self._is_public(node),
            extends=tuple(self._iter_inherited_types(node)),
            type=symbol,
        )

    def _iter_inherited_types(self, node: Node) -> Iterator[str]:
        for child in node.named_children:
            if child.type == "inheritance_specifier":
                name = _TYPE.match(self.tree.get_node_text(child))
                if name is not None:
                    yield name[1]

    def _iter_typed_names(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the names in a property or variable, each with its declared type or ""."""
        name = ""
        for child in node.named_children:
            if child.type == "pattern":
                name = self.tree.get_field_text(child, "bound_identifier")
            elif child.type == "type_annotation" and name:
                yield (
                    name,
                    " ".join(
                        self.tree.get_node_text(child)[:_MAX_TYPE_CHARACTERS].lstrip(":").split()
                    ),
                )
                name = ""
        if name:
            yield name, ""

    def _define_property(
        self, node: Node, outer: CodeDefinition | None
    ) -> Sequence[CodeDefinition]:
        pairs = list(self._iter_typed_names(node))
        if not pairs:
            return ()
        computed = node.child_by_field_name("computed_value")
        exported = self._is_public(node)
        symbol = self.qualify(pairs[0][0], outer)
        if outer is None:
            value = computed or node.child_by_field_name("value")
            return [
                CodeDefinition(node, symbol, "definition", "value", value, False, exported, False)
            ]
        if computed is None:
            return ()
        return [
            CodeDefinition(
                node,
                symbol,
                "method",
                "property",
                computed,
                exported=exported,
                type=outer.type,
            )
        ]

    def _define_function(self, node: Node, outer: CodeDefinition | None) -> CodeDefinition:
        name = _FUNCTIONS[node.type] or self.tree.get_field_text(node, "name")
        body = node.child_by_field_name("body")
        if body is None:
            body = next(
                (child for child in node.children if child.type == "computed_property"), None
            )
        return self.define_function(
            node,
            self.qualify(name, outer),
            None if outer is None else outer.type,
            what="func",
            body=body,
            exported=self._is_public(node),
            parameters=self._read_parameters(node),
        )

    def _read_parameters(self, node: Node) -> Iterator[tuple[str, str]]:
        for child in node.named_children:
            if child.type == "parameter":
                name = self.tree.get_field_text(child, "name")
                _, _, type_ = self.tree.get_node_text(child)[: 2 * _MAX_TYPE_CHARACTERS].partition(
                    ":"
                )
                yield name, " ".join(type_.split())[:_MAX_TYPE_CHARACTERS]

    def _is_public(self, node: Node) -> bool:
        for child in node.named_children:
            if child.type == "modifiers":
                return not any(
                    modifier.type == "visibility_modifier"
                    and self.tree.get_node_text(modifier) in _HIDING_MODIFIERS
                    for modifier in child.named_children
                )
        return True

    def iter_imports(self, node: Node) -> Iterable[tuple[Fact, dict[str, Binding]]]:
        """Return the imports of an import statement."""
        if node.type != "import_declaration":
            return ()
        words = self.tree.get_node_text(node).split()
        module, _, name = words[-1].partition(".")
        kinds = {"struct", "class", "enum", "protocol", "func", "var", "let", "typealias"}
        if kinds & set(words[:-1]) and name:
            values = {"name": module, "names": [[name, name]]}
        else:
            values = {"name": words[-1], "names": []}
        return [(self.tree.build_fact("imports", node, "", values), {})]

    def iter_bound_names(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the names that a node binds, each with its declared type or ""."""
        if node.type == "property_declaration":
            yield from self._iter_typed_names(node)
        elif node.type == "lambda_parameter":
            yield self.tree.get_field_text(node, "name"), ""
        elif node.type == "for_statement":
            item = node.child_by_field_name("item")
            if item is not None:
                yield self.tree.get_field_text(item, "bound_identifier"), ""

    def get_call_chain(self, node: Node) -> list[str] | None:
        """Return the names in a call; None for any other node."""
        if node.type != "call_expression" or not node.named_child_count:
            return None
        names: list[str] = []
        target = get_first_child(node)
        while target is not None and target.type in {"navigation_expression", "optional_chain"}:
            suffix = target.child_by_field_name("suffix")
            if suffix is not None:
                names.append(self.tree.get_field_text(suffix, "suffix"))
            target = target.child_by_field_name("target") or get_first_child(target)
        if target is None or target.type not in {"simple_identifier", "self_expression"}:
            return None
        return [self.tree.get_node_text(target), *reversed(names)]

    def is_type(self, name: str) -> bool:
        """Return whether a name is capitalized like a type."""
        return name[:1].isupper()

    def get_type_name(self, written_type: str) -> str:
        """Return the bare name of a type; "" for function types and for types joined by `&`."""
        match = _TYPE.match(written_type)
        if match is None or "->" in written_type or "&" in written_type:
            return ""
        return match[1]
