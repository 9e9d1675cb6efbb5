"""Go: functions, methods, types and blocks of constants; symbols start with the package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
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

_SPECS: Final = frozenset({"type_spec", "type_alias", "const_spec", "var_spec"})
_VALUES: Final = frozenset({"const_declaration", "var_declaration"})
_TYPE = re.compile(r"\*?\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)")
_VERSION = re.compile(r"v\d+")
_MAX_TYPE_CHARACTERS: Final = 200
_LITERAL: Final = frozenset({"func", "map", "chan", "struct", "interface"})
_PREDECLARED: Final = re.compile(
    r"any|bool|byte|comparable|complex\d*|error|float\d+|u?int\d*|uintptr|rune|string|append|cap"
    r"|clear|close|copy|delete|imag|len|make|max|min|new|panic|print|println|real|recover"
)


class Go(LanguageGrammar):
    """The grammar of Go."""

    language = "go"
    module = "tree_sitter_go"
    lists = frozenset(
        {
            "source_file",
            "statement_list",
            "field_declaration_list",
            "interface_type",
            "const_declaration",
            "var_spec_list",
            "literal_value",
            "expression_switch_statement",
        }
    )
    scopes = frozenset({"func_literal", "block"})
    members = MappingProxyType({"selector_expression": ("field", "operand")})
    package_wide = True

    def __init__(self, tree: SyntaxTree) -> None:
        super().__init__(tree)
        self._guess_package_name = ""
        for node in tree.root.named_children:
            if node.type == "package_clause":
                self._guess_package_name = tree.get_node_text(node).split()[-1]

    def _qualify(self, *names: str) -> str:
        return ".".join(name for name in (self._guess_package_name, *names) if name)

    def define(self, node: Node, outer: CodeDefinition | None) -> Sequence[CodeDefinition]:
        """Return the definitions in a statement or member."""
        if node.type in {"function_declaration", "method_declaration"}:
            return [self._define_function(node)]
        if node.type == "type_declaration":
            specs = [child for child in node.named_children if child.type in _SPECS]
            if len(specs) == 1:
                return [self._define_type(node, specs[0])]
            return [CodeDefinition(node, "", "group", "types", node, True)] if specs else ()
        if node.type in {"type_spec", "type_alias"}:
            return [self._define_type(node, node)]
        return list(self._define_values(node)) if node.type in _VALUES else ()

    def _define_function(self, node: Node) -> CodeDefinition:
        name = self.tree.get_field_text(node, "name")
        bound = tuple(self._read_parameters(node, "receiver"))
        receiver = self.get_type_name(bound[0][1]) if bound else ""
        function = self.define_function(
            node,
            self._qualify(receiver, name),
            self._qualify(receiver) if receiver else None,
            what="func",
            exported=name[:1].isupper(),
            parameters=self._read_parameters(node, "parameters"),
        )
        return replace(function, locals=tuple(pair for pair in bound if pair[0]))

    def _read_parameters(self, function: Node, field: str) -> Iterator[tuple[str, str]]:
        for node in list_field_children(function, field):
            if not node.type.endswith("parameter_declaration"):
                continue
            type_ = self.tree.get_short_text(node.child_by_field_name("type"))
            if node.type.startswith("variadic"):
                type_ = f"...{type_}"
            names = [child for child in node.named_children if child.type == "identifier"]
            for name in names:
                yield self.tree.get_node_text(name), type_
            if not names:
                yield "", type_

    def _define_type(self, node: Node, spec: Node) -> CodeDefinition:
        name = self.tree.get_field_text(spec, "name")
        type_ = spec.child_by_field_name("type")
        kind = "" if type_ is None else type_.type.removesuffix("_type")
        embedded, fields = [], []
        for field_name, field_type in self._read_fields(type_):
            if field_name:
                fields.append((field_name, field_type))
            else:
                embedded.append(self.get_type_name(field_type))
        symbol = self._qualify(name)
        return CodeDefinition(
            node,
            symbol,
            "type",
            kind if kind in {"struct", "interface"} else "type",
            type_,
            False,
            name[:1].isupper(),
            extends=tuple(filter(None, embedded)),
            type=symbol,
            fields=tuple(fields),
        )

    def _read_fields(self, type_: Node | None) -> Iterator[tuple[str, str]]:
        if type_ is None or type_.type not in {"struct_type", "interface_type"}:
            return
        for node in type_.named_children:
            if node.type == "type_elem":
                written = self.tree.get_node_text(node)
                if "|" not in written and "~" not in written:
                    yield "", written
            for field in node.named_children if node.type == "field_declaration_list" else ():
                names = [
                    child for child in field.named_children if child.type == "field_identifier"
                ]
                written = self.tree.get_field_text(field, "type")[:_MAX_TYPE_CHARACTERS]
                for name in names:
                    yield self.tree.get_node_text(name), written
                if not names and field.type == "field_declaration":
                    yield "", written

    def _define_values(self, node: Node) -> Iterator[CodeDefinition]:
        kind_of_value = node.type.removesuffix("_declaration")
        pending = list(reversed(node.named_children))
        while pending:
            spec = pending.pop()
            if spec.type == "var_spec_list":
                pending += reversed(spec.named_children)
            elif spec.type in _SPECS:
                for child in takewhile(lambda node: node.type == "identifier", spec.named_children):
                    name = self.tree.get_node_text(child)
                    symbol, is_exported = self._qualify(name), name[:1].isupper()
                    yield CodeDefinition(
                        node,
                        symbol,
                        "definition",
                        kind_of_value,
                        None,
                        False,
                        is_exported,
                        is_exported,
                    )

    def iter_imports(self, node: Node) -> Iterable[tuple[Fact, dict[str, Binding]]]:
        """Yield the imports of an import statement, each with the names that it binds."""
        if node.type == "import_declaration":
            for child in node.named_children:
                for spec in child.named_children if child.type == "import_spec_list" else [child]:
                    if spec.type == "import_spec":
                        yield self._read_import(spec)

    def _read_import(self, spec: Node) -> tuple[Fact, dict[str, Binding]]:
        path = self.tree.get_field_text(spec, "path").strip('"`')
        alias = self.tree.get_field_text(spec, "name")
        package = _guess_package_name(path)
        values = {"name": path, "names": [[package, alias]] if alias else []}
        fact = Fact("imports", self.tree.start(spec), self.tree.end(spec), "", values)
        bound = (
            {} if alias in {".", "_"} else {alias or package: Binding(ResolvedName(package, path))}
        )
        return fact, bound

    def iter_bound_names(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the names that a node binds, each with its declared type or ""."""
        if node.type in {"var_spec", "parameter_declaration"}:
            written_type = self.tree.get_field_text(node, "type")[:_MAX_TYPE_CHARACTERS]
            for child in node.named_children:
                if child.type == "identifier":
                    yield self.tree.get_node_text(child), written_type
        elif node.type in {"short_var_declaration", "range_clause"}:
            names, values = list_field_children(node, "left"), list_field_children(node, "right")
            types = [self._read_created_type(value) for value in values]
            for at, name in enumerate(names):
                if name.type == "identifier":
                    yield (
                        self.tree.get_node_text(name),
                        types[at] if len(types) == len(names) else "",
                    )

    def _read_created_type(self, value: Node) -> str:
        """Return the type of `T{…}` or `&T{…}`; "" for any other value."""
        if value.type == "unary_expression":
            value = value.child_by_field_name("operand") or value
        if value.type != "composite_literal":
            return ""
        return self.tree.get_field_text(value, "type")[:_MAX_TYPE_CHARACTERS]

    def get_call_chain(self, node: Node) -> list[str] | None:
        """Return the names in a call or in `T{…}`, such as `a.b.c`; None for any other node."""
        if node.type == "composite_literal":
            type_ = node.child_by_field_name("type")
            if type_ is None or type_.type not in {"type_identifier", "qualified_type"}:
                return None
            return self.tree.get_node_text(type_).split(".")
        if node.type != "call_expression":
            return None
        return self.get_name_chain(node.child_by_field_name("function"))

    def qualify_in_package(self, name: str) -> str:
        """Return the name of a type, qualified by the file's package."""
        return name if _PREDECLARED.fullmatch(name) else self._qualify(name)

    def get_type_name(self, written_type: str) -> str:
        """Return the bare name of a type, without `*`; "" for built-in literals."""
        match = _TYPE.match(written_type)
        return "" if match is None or match[1] in _LITERAL else match[1]


def _guess_package_name(path: str) -> str:
    """Return the expected name of a package: the last part of its path that is not a version."""
    parts = [part for part in path.split("/") if part]
    if len(parts) > 1 and _VERSION.fullmatch(parts[-1]):
        parts.pop()
    name = parts[-1] if parts else ""
    name = re.sub(r"\.v\d+$", "", name)
    return name.removeprefix("go-").removesuffix(".go")


read_go: Final = partial(read_code, grammar=Go)
