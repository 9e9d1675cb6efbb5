"""Rust: functions, types, traits, implementations and modules; symbols are paths with `::`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
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
from rag_assets.systems.code_memory.languages.tree import Node, list_field_children
from rag_assets.systems.code_memory.symbols.model import Role

_ITEMS: Final[dict[str, tuple[Role, str]]] = {
    "struct_item": ("type", "struct"),
    "enum_item": ("class", "enum"),
    "union_item": ("type", "union"),
    "trait_item": ("class", "trait"),
    "type_item": ("type", "type"),
    "const_item": ("definition", "const"),
    "static_item": ("definition", "static"),
    "macro_definition": ("definition", "macro"),
    "mod_item": ("class", "mod"),
    "impl_item": ("class", "impl"),
}
_FUNCTIONS: Final = frozenset({"function_item", "function_signature_item"})
_KINDS_WITH_MEMBERS: Final = frozenset({"trait", "mod", "impl"})
_TYPE = re.compile(
    r"(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?(?:dyn\s+|impl\s+)?([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)"
)
_SPACE = re.compile(r"\s+")
_MAX_TYPE_CHARACTERS: Final = 200
_SEPARATE_KINDS: Final = frozenset({"const", "static"})


class Rust(LanguageGrammar):
    """The grammar of Rust."""

    language = "rust"
    module = "tree_sitter_rust"
    separator = "::"
    leading = frozenset({"attribute_item"})
    lists = frozenset(
        {
            "source_file",
            "block",
            "declaration_list",
            "field_declaration_list",
            "enum_variant_list",
            "match_block",
            "array_expression",
            "field_initializer_list",
        }
    )
    scopes = frozenset({"block", "closure_expression", "match_arm"})
    members = MappingProxyType({"field_expression": ("field", "value")})
    roots = frozenset({"identifier", "self", "scoped_identifier"})
    own = frozenset({"self"})
    own_types = frozenset({"Self"})

    def get_nested_level(self, node: Node) -> Node | None:
        """Return the node whose children are read instead of this statement; else None."""
        if node.type == "foreign_mod_item":
            return node.child_by_field_name("body")
        return node if node.type == "ERROR" else None

    def is_leading(self, node: Node) -> bool:
        """Return whether a statement belongs to the definition after it (unlike `//!` comments)."""
        inner = node.child_by_field_name("inner") is not None  # `//!` documents the enclosing item
        return super().is_leading(node) and not inner

    def define(self, node: Node, outer: CodeDefinition | None) -> Sequence[CodeDefinition]:
        """Return the definitions in a statement or member."""
        if node.type in _FUNCTIONS:
            return [self._define_function(node, outer)]
        if node.type not in _ITEMS:
            return ()
        role, what = _ITEMS[node.type]
        if what == "mod" and node.child_by_field_name("body") is None:
            return ()
        name = self.tree.get_node_text(
            node.child_by_field_name("type" if what == "impl" else "name")
        )
        if what == "impl":
            name = self.get_type_name(name) or name
        symbol = self.qualify(name, outer)
        exported = what == "impl" or self._is_public(node)
        trait = self.get_type_name(self.tree.get_field_text(node, "trait"))
        return [
            CodeDefinition(
                node,
                symbol,
                role,
                what,
                node.child_by_field_name("body") or node.child_by_field_name("value"),
                what in _KINDS_WITH_MEMBERS,
                exported,
                exported or what not in _SEPARATE_KINDS,
                extends=tuple(self._iter_trait_bounds(node)) if what == "trait" else (),
                implements=(trait,) if trait else (),
                type="" if what in {"mod", "macro", "const", "static"} else symbol,
                fields=tuple(self._read_fields(node)),
            )
        ]

    def _define_function(self, node: Node, outer: CodeDefinition | None) -> CodeDefinition:
        name = self.tree.get_field_text(node, "name")
        member = outer is not None and outer.what in {"trait", "impl"}
        exported = self._is_public(node)
        if outer is not None and member:
            exported = exported or outer.what == "trait" or bool(outer.implements)
        return self.define_function(
            node,
            self.qualify(name, outer),
            outer.type if outer is not None and member else None,
            what="fn",
            exported=exported,
            parameters=self._read_parameters(node),
        )

    def _is_public(self, node: Node) -> bool:
        return any(child.type == "visibility_modifier" for child in node.named_children)

    def _read_parameters(self, node: Node) -> Iterator[tuple[str, str]]:
        for child in list_field_children(node, "parameters"):
            if child.type == "parameter":
                name = self.tree.get_field_text(child, "pattern")[:_MAX_TYPE_CHARACTERS]
                type_ = self.tree.get_field_text(child, "type")[:_MAX_TYPE_CHARACTERS]
                yield name.removeprefix("mut "), " ".join(type_.split())

    def _iter_trait_bounds(self, node: Node) -> Iterator[str]:
        for bound in list_field_children(node, "bounds"):
            name = (
                self.get_type_name(self.tree.get_node_text(bound))
                if bound.type != "lifetime"
                else ""
            )
            if name:
                yield name

    def _read_fields(self, node: Node) -> Iterator[tuple[str, str]]:
        for child in list_field_children(node, "body") if node.type == "struct_item" else ():
            if child.type == "field_declaration":
                yield (
                    self.tree.get_field_text(child, "name"),
                    self.tree.get_field_text(child, "type")[:_MAX_TYPE_CHARACTERS],
                )

    def iter_imports(self, node: Node) -> Iterable[tuple[Fact, dict[str, Binding]]]:
        """Yield the imports of an import statement, each with the names that it binds."""
        if node.type == "use_declaration":
            names = list(self._iter_imported_paths(node.child_by_field_name("argument")))
            bound = {
                local: Binding(ResolvedName(path))
                for path, local in names
                if local not in {"*", "_", "self"}
            }
            argument = self.tree.get_field_text(node, "argument")
            values: dict[str, object] = {
                "name": _SPACE.sub("", argument.split("{", 1)[0]).removesuffix("::"),
                "names": [list(pair) for pair in names],
            }
            if any(child.type == "visibility_modifier" for child in node.children):
                values["public"] = True
            yield self.tree.build_fact("imports", node, "", values, _MAX_TYPE_CHARACTERS), bound
        elif node.type == "mod_item" and node.child_by_field_name("body") is None:
            name = self.tree.get_field_text(node, "name")
            values = {"name": f"self::{name}", "names": []}
            yield (
                self.tree.build_fact("imports", node, "", values),
                {name: Binding(ResolvedName(name))},
            )

    def _iter_imported_paths(self, argument: Node | None) -> Iterator[tuple[str, str]]:
        pending = [] if argument is None else [(argument, "")]
        while pending:
            node, before = pending.pop()
            if node.type in {"use_list", "scoped_use_list"}:
                list_node = node
                if node.type == "scoped_use_list":
                    before = _join_path(before, self._get_path(node.child_by_field_name("path")))
                    list_node = node.child_by_field_name("list") or node
                pending += [(child, before) for child in reversed(list_node.named_children)]
            elif node.type == "use_as_clause":
                path = _join_path(before, self._get_path(node.child_by_field_name("path")))
                yield path, self.tree.get_field_text(node, "alias")
            elif node.type == "use_wildcard":
                yield _join_path(before, self._get_path(node)).removesuffix("::*"), "*"
            elif node.type == "self":
                yield before, before.rsplit("::", 1)[-1]
            elif node.type not in {"line_comment", "block_comment"}:
                path = _join_path(before, self._get_path(node))
                yield path, path.rsplit("::", 1)[-1]

    def _get_path(self, node: Node | None) -> str:
        return _SPACE.sub("", self.tree.get_node_text(node))

    def iter_bound_names(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the names that a node binds, each with its declared type or ""."""
        if node.type in {"let_declaration", "parameter"}:
            pattern = node.child_by_field_name("pattern")
            if pattern is not None and pattern.type == "identifier":
                written_type = self.tree.get_field_text(node, "type")[:_MAX_TYPE_CHARACTERS]
                yield self.tree.get_node_text(pattern), written_type
        elif node.type == "closure_parameters":
            for child in node.named_children:
                if child.type == "identifier":
                    yield self.tree.get_node_text(child), ""

    def get_call_chain(self, node: Node) -> list[str] | None:
        """Return the names in a call or in `T { … }`; None for any other node."""
        if node.type == "struct_expression":
            return self.tree.get_field_text(node, "name").split("::")
        if node.type != "call_expression":
            return None
        target = node.child_by_field_name("function")
        if target is not None and target.type == "generic_function":
            target = target.child_by_field_name("function")
        chain = self.get_name_chain(target)
        path = "" if chain is None else _SPACE.sub("", chain[0])
        return None if chain is None or "<" in path else [*path.split("::"), *chain[1:]]

    def is_type(self, name: str) -> bool:
        """Return whether a name is `crate` or `super`, or is capitalized like a type."""
        return name in {"crate", "super"} or (name[:1].isupper() and len(name) > 1)

    def get_type_name(self, written_type: str) -> str:
        """Return the bare name of a type; "" if it has none."""
        match = _TYPE.match(written_type)
        return "" if match is None else match[1]


def _join_path(before: str, name: str) -> str:
    return f"{before}::{name}" if before and name else before or name


read_rust: Final = partial(read_code, grammar=Rust)
