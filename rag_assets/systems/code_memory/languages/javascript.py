"""JavaScript and TypeScript, with JSX: definitions, name bindings and calls."""

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
    BindingScope,
    CodeDefinition,
    LanguageGrammar,
)
from rag_assets.systems.code_memory.languages.javascript_modules import (
    MAX_EVIDENCE_CHARACTERS,
    RequestFinder,
    find_exports,
    get_declared_type,
    get_required_module,
    get_string,
    iter_pattern_names,
    read_imports,
    read_parameters,
)
from rag_assets.systems.code_memory.languages.tree import (
    Node,
    SyntaxTree,
    get_first_child,
    list_field_children,
)
from rag_assets.systems.code_memory.symbols.model import CodeText, Role

_NAME_NODES: Final = frozenset(
    {"identifier", "type_identifier", "member_expression", "nested_type_identifier"}
)


def _read_heritage(tree: SyntaxTree, node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that a class or interface extends, and the names that it implements."""
    extends: list[str] = []
    implements: list[str] = []
    for clause in node.named_children:
        if clause.type == "extends_type_clause":
            extends += _read_type_names(tree, clause)
        elif clause.type == "class_heritage":
            for inner in clause.named_children:
                if inner.type == "implements_clause":
                    implements += _read_type_names(tree, inner)
                elif inner.type == "extends_clause":
                    extends += _read_type_names(tree, inner)
                elif inner.type in _NAME_NODES:
                    extends.append(tree.get_node_text(inner))
    return tuple(extends), tuple(implements)


def _read_type_names(tree: SyntaxTree, clause: Node) -> Iterator[str]:
    for node in clause.named_children:
        inner: Node | None = node
        if node.type == "generic_type":
            inner = node.child_by_field_name("name")
        if inner is not None and inner.type in _NAME_NODES:
            yield tree.get_node_text(inner)


def _read_fields(tree: SyntaxTree, node: Node) -> Iterator[tuple[str, str]]:
    """Yield a class's fields with declared types, including fields that parameters declare."""
    for member in list_field_children(node, "body"):
        if member.type == "public_field_definition":
            type_ = get_declared_type(tree, member)
            if type_:
                yield tree.get_field_text(member, "name"), type_
        elif member.type == "method_definition":
            if tree.get_field_text(member, "name") != "constructor":
                continue
            for parameter in list_field_children(member, "parameters"):
                kinds = {child.type for child in parameter.children}
                if kinds & {"accessibility_modifier", "readonly"}:
                    yield (
                        tree.get_field_text(parameter, "pattern"),
                        get_declared_type(tree, parameter),
                    )


_FUNCTIONS: Final = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "function_signature",
        "function_expression",
        "generator_function",
        "arrow_function",
        "method_definition",
    }
)
_CLASSES: Final = frozenset({"class_declaration", "abstract_class_declaration", "class"})
_TYPES: Final[dict[str, tuple[Role, str]]] = {
    "interface_declaration": ("class", "interface"),
    "enum_declaration": ("class", "enum"),
    "type_alias_declaration": ("type", "type"),
    "import_alias": ("definition", "alias"),
}
_VALUES: Final = frozenset({"lexical_declaration", "variable_declaration"})
_SPACES: Final = frozenset({"internal_module", "module"})
_METHODS: Final = frozenset({"method_definition", "abstract_method_signature", "method_signature"})
_FIELDS: Final = frozenset({"public_field_definition", "field_definition"})
_SECTIONS: Final = frozenset(
    {"methods", "computed", "watch", "actions", "mutations", "getters", "filters"}
)


def _unwrap_declaration(node: Node) -> Node:
    if node.type == "ambient_declaration":
        for child in node.named_children:
            if child.type != "comment":
                return child
    return node


def _unwrap_value(value: Node | None) -> Node | None:
    """Return the function, class or object inside a value: `defineComponent({…})`, `x as T`."""
    for _ in range(8):
        if value is None:
            return None
        if value.type in {"as_expression", "satisfies_expression", "parenthesized_expression"}:
            value = get_first_child(value)
        elif value.type == "call_expression":
            arguments_node = value.child_by_field_name("arguments")
            if arguments_node is None or not arguments_node.named_child_count:
                return None
            value = arguments_node.named_child(arguments_node.named_child_count - 1)
        else:
            return value
    return None


def _is_private(node: Node) -> bool:
    for child in node.children:
        if child.type == "accessibility_modifier":
            return all(word.type != "public" for word in child.children)
    return False


def _get_entry_text(tree: SyntaxTree, node: Node, name: str) -> str:
    for entry in node.named_children:
        if entry.type == "pair" and tree.get_field_text(entry, "key") == name:
            return get_string(tree, entry.child_by_field_name("value"))
    return ""


_KEY: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_OBJECTS: Final = frozenset({"process.env", "import.meta.env"})
_MAX_TYPE_PARTS: Final = 20


def _iter_environment_facts(tree: SyntaxTree, node: Node, symbol: str) -> Iterator[Fact]:
    """Yield a fact if the node reads an environment variable, such as `process.env.KEY`."""
    if node.type not in {"member_expression", "subscript_expression"}:
        return
    owner = node.child_by_field_name("object")
    if owner is None or owner.end_byte - owner.start_byte > _MAX_TYPE_PARTS:
        return
    if tree.get_node_text(owner) in _OBJECTS:
        property_node = node.child_by_field_name("property") or node.child_by_field_name("index")
        key = tree.get_node_text(property_node).strip("\"'")
        if _KEY.fullmatch(key):
            yield Fact("reads_env", tree.start(node), tree.end(node), symbol, {"key": key})


_TYPE = re.compile(r"\s*(?:readonly\s+)?([A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*)")
_EMPTY_TYPES: Final = frozenset({"", "null", "undefined"})
_PARAMETERS: Final = frozenset({"required_parameter", "optional_parameter"})
_DECLARATIONS: Final = frozenset({"function_declaration", "class_declaration"})


class Jsx(LanguageGrammar):
    """The grammar of JavaScript with JSX."""

    language = "javascript"
    module = "tree_sitter_javascript"
    leading = frozenset({"decorator"})
    lists = frozenset(
        {
            "program",
            "statement_block",
            "class_body",
            "object",
            "array",
            "interface_body",
            "object_type",
            "enum_body",
            "switch_body",
            "switch_case",
            "jsx_element",
            "union_type",
        }
    )
    scopes = _FUNCTIONS | {"statement_block", "for_statement", "for_in_statement", "catch_clause"}
    members = MappingProxyType({"member_expression": ("property", "object")})
    roots = frozenset({"identifier", "this"})
    own = frozenset({"this"})
    imports_all = True

    def __init__(self, tree: SyntaxTree) -> None:
        super().__init__(tree)
        self._exports = find_exports(tree)
        local = {name.local for names in self._exports.values() for name in names if name.local}
        self._exported = frozenset(local)
        self._requests = RequestFinder(tree)

    def define(self, node: Node, outer: CodeDefinition | None) -> Sequence[CodeDefinition]:
        """Return the definitions in a statement, a class member, or an object entry."""
        if outer is not None and outer.what == "class":
            return list(self._define_member(node, outer))
        if outer is not None and outer.what == "object":
            return list(self._define_entry(node, outer))
        return list(self._define_statement(node, outer))

    def _define_statement(
        self, node: Node, outer: CodeDefinition | None
    ) -> Iterator[CodeDefinition]:
        if node.type == "export_statement":
            inner = node.child_by_field_name("declaration")
            default = any(child.type == "default" for child in node.children)
            if inner is not None:
                yield from self._define_declaration(node, _unwrap_declaration(inner), outer, True)
            elif default:
                value = node.child_by_field_name("value")
                if value is not None and value.type != "identifier":
                    yield self._define_variable(node, "default", value, outer, True)
        elif node.type == "expression_statement":
            yield from self._define_expression(node, outer)
        else:
            yield from self._define_declaration(node, _unwrap_declaration(node), outer, False)

    def _define_expression(
        self, node: Node, outer: CodeDefinition | None
    ) -> Iterator[CodeDefinition]:
        inner = get_first_child(node)
        if inner is None:
            return
        if inner.type in _SPACES:
            yield from self._define_declaration(node, inner, outer, False)
        elif inner.type == "assignment_expression":
            left_side = "".join(self.tree.get_field_text(inner, "left").split())
            value = inner.child_by_field_name("right")
            if value is None or value.type == "identifier":
                return
            path = left_side.removeprefix("module.")
            if path == "exports" and left_side != path:
                yield self._define_variable(node, "module.exports", value, outer, True)
            elif path.startswith("exports."):
                yield self._define_variable(node, path.removeprefix("exports."), value, outer, True)

    def _define_declaration(
        self, node: Node, inner: Node, outer: CodeDefinition | None, is_exported: bool
    ) -> Iterator[CodeDefinition]:
        if inner.type in _VALUES:
            yield from self._define_variables(node, inner, outer, is_exported)
            return
        name_node = inner.child_by_field_name("name")
        if inner.type == "import_alias":
            name_node = get_first_child(inner)
        name = get_string(self.tree, name_node) or self.tree.get_node_text(name_node) or "default"
        exported = self._is_public(name, outer, is_exported)
        symbol = self.qualify(name, outer)
        if inner.type in _CLASSES:
            yield self._define_class(node, inner, symbol, exported)
        elif inner.type in _FUNCTIONS:
            yield self._define_js_function(node, inner, symbol, exported)
        elif inner.type in _TYPES:
            yield self._define_type(node, inner, symbol, exported)
        elif inner.type in _SPACES:
            body = inner.child_by_field_name("body")
            yield CodeDefinition(
                node, symbol, "class", "namespace", body, True, exported, alone=exported
            )

    def _is_public(self, name: str, outer: CodeDefinition | None, is_exported: bool) -> bool:
        if outer is not None:
            return is_exported and (outer.exported or outer.what == "namespace")
        return is_exported or name in self._exported

    def _define_class(
        self, node: Node, inner: Node, symbol: str, is_exported: bool
    ) -> CodeDefinition:
        extends, implements = _read_heritage(self.tree, inner)
        return CodeDefinition(
            node,
            symbol,
            "class",
            "class",
            inner.child_by_field_name("body"),
            True,
            is_exported,
            is_exported,
            extends=extends,
            implements=implements,
            type=symbol,
            fields=tuple(_read_fields(self.tree, inner)),
        )

    def _define_type(
        self, node: Node, inner: Node, symbol: str, is_exported: bool
    ) -> CodeDefinition:
        role, what = _TYPES[inner.type]
        extends, _ = _read_heritage(self.tree, inner)
        body = inner.child_by_field_name("body") or inner.child_by_field_name("value")
        return CodeDefinition(
            node, symbol, role, what, body, False, is_exported, is_exported, extends=extends
        )

    def _define_js_function(
        self, node: Node, inner: Node, symbol: str, is_exported: bool, *, owner: str | None = None
    ) -> CodeDefinition:
        return self.define_function(
            node,
            symbol,
            owner,
            body=inner.child_by_field_name("body"),
            exported=is_exported,
            alone=is_exported,
            parameters=read_parameters(self.tree, inner),
        )

    def _define_variables(
        self, node: Node, inner: Node, outer: CodeDefinition | None, is_exported: bool
    ) -> Iterator[CodeDefinition]:
        for declarator in inner.named_children:
            name_node = declarator.child_by_field_name("name")
            if name_node is None:
                continue
            value = declarator.child_by_field_name("value")
            for name in iter_pattern_names(self.tree, name_node):
                exported = self._is_public(name, outer, is_exported)
                yield self._define_variable(node, name, value, outer, exported)

    def _define_variable(
        self,
        node: Node,
        name: str,
        value: Node | None,
        outer: CodeDefinition | None,
        is_exported: bool,
    ) -> CodeDefinition:
        symbol = self.qualify(name, outer)
        inner = _unwrap_value(value)
        if inner is not None and inner.type in _FUNCTIONS:
            return self._define_js_function(node, inner, symbol, is_exported)
        if inner is not None and inner.type in _CLASSES:
            return self._define_class(node, inner, symbol, is_exported)
        if inner is not None and inner.type == "object":
            return self._define_object(node, inner, symbol, is_exported)
        role: Role = "export" if is_exported else "definition"
        return CodeDefinition(node, symbol, role, "value", value, False, is_exported, is_exported)

    def _define_object(
        self, node: Node, inner: Node, symbol: str, is_exported: bool
    ) -> CodeDefinition:
        component = _get_entry_text(self.tree, inner, "name") if symbol == "default" else ""
        role: Role = "export" if is_exported else "definition"
        return CodeDefinition(
            node, component or symbol, role, "object", inner, True, is_exported, is_exported
        )

    def _define_member(self, node: Node, outer: CodeDefinition) -> Iterator[CodeDefinition]:
        name = self.tree.get_node_text(
            node.child_by_field_name("name") or node.child_by_field_name("property")
        )
        if not name:
            return
        symbol = f"{outer.symbol}.{name}"
        exported = outer.exported and not name.startswith("#") and not _is_private(node)
        if node.type in _METHODS:
            yield self._define_js_function(node, node, symbol, exported, owner=outer.type)
        elif node.type in _FIELDS:
            value = node.child_by_field_name("value")
            if value is not None and value.type in _FUNCTIONS:
                yield self._define_js_function(node, value, symbol, exported, owner=outer.type)

    def _define_entry(self, node: Node, outer: CodeDefinition) -> Iterator[CodeDefinition]:
        if node.type == "method_definition":
            name = self.tree.get_field_text(node, "name")
            yield self._define_js_function(
                node, node, f"{outer.symbol}.{name}", outer.exported, owner=""
            )
        elif node.type == "pair":
            key = node.child_by_field_name("key")
            name = get_string(self.tree, key) or self.tree.get_node_text(key)
            value = node.child_by_field_name("value")
            symbol = f"{outer.symbol}.{name}"
            if value is None:
                return
            if value.type in _FUNCTIONS:
                yield self._define_js_function(node, value, symbol, outer.exported, owner="")
            elif value.type == "object" and name in _SECTIONS:
                yield self._define_object(node, value, symbol, outer.exported)

    def iter_imports(self, node: Node) -> Iterable[tuple[Fact, dict[str, Binding]]]:
        """Return the import in a node, if it has one, with the names that it binds."""
        return read_imports(self.tree, node)

    def iter_bound_names(self, node: Node) -> Iterator[tuple[str, str]]:
        """Yield the names that a node binds, each with its declared type or ""."""
        if node.type == "variable_declarator" and not get_required_module(self.tree, node):
            yield from self._bind_pattern(node.child_by_field_name("name"), node)
        elif node.type in _PARAMETERS:
            yield from self._bind_pattern(node.child_by_field_name("pattern"), node)
        elif node.type == "formal_parameters":
            for child in node.named_children:
                if child.type not in _PARAMETERS:
                    yield from self._bind_pattern(child, None)
        elif node.type in {"arrow_function", "catch_clause"}:
            yield from self._bind_pattern(node.child_by_field_name("parameter"), None)
        elif node.type == "statement_block":
            yield from self._iter_block_names(node)

    def _iter_block_names(self, block: Node) -> Iterator[tuple[str, str]]:
        """Yield the functions and classes that a block declares: even earlier code can use them."""
        for child in block.named_children:
            if child.type in _DECLARATIONS:
                yield self.tree.get_field_text(child, "name"), ""

    def _bind_pattern(self, pattern: Node | None, typed: Node | None) -> Iterator[tuple[str, str]]:
        if pattern is None:
            return
        if pattern.type == "identifier":
            yield (
                self.tree.get_node_text(pattern),
                "" if typed is None else get_declared_type(self.tree, typed),
            )
            return
        for name in iter_pattern_names(self.tree, pattern):
            yield name, ""

    def get_call_chain(self, node: Node) -> list[str] | None:
        """Return the names in a call or in `new T(…)`; None for any other node."""
        if node.type == "new_expression":
            return self.get_name_chain(node.child_by_field_name("constructor"))
        if node.type != "call_expression":
            return None
        return self.get_name_chain(node.child_by_field_name("function"))

    def get_type_name(self, written_type: str) -> str:
        """Return the bare name of a type; "" for arrays, and for unions of several types."""
        parts = [part for part in written_type.split("|") if part.strip() not in _EMPTY_TYPES]
        match = _TYPE.match(parts[0]) if len(parts) == 1 else None
        if match is None or written_type.rstrip().endswith("]"):
            return ""
        return match[1]

    def iter_extra_facts(self, node: Node, scope: BindingScope) -> Iterable[Fact]:
        """Yield facts for a node's HTTP request, environment variable and exported names."""
        yield from self._requests.find_requests(node, scope.symbol)
        yield from _iter_environment_facts(self.tree, node, scope.symbol)
        for name in self._exports.get(node.id, ()):
            yield self.tree.build_fact(
                "exports", node, "", name.build_fact_values(), MAX_EVIDENCE_CHARACTERS
            )


class TypeScript(Jsx):
    """The grammar of TypeScript."""

    language = "typescript"
    module = "tree_sitter_typescript"
    function = "language_typescript"


class Tsx(TypeScript):
    """The grammar of TypeScript with JSX."""

    function = "language_tsx"


__all__ = ["read_any_typescript", "read_javascript", "read_tsx", "read_typescript"]


read_javascript: Final = partial(read_code, grammar=Jsx)
read_typescript: Final = partial(read_code, grammar=TypeScript)
read_tsx: Final = partial(read_code, grammar=Tsx)


def read_any_typescript(text: str) -> CodeText:
    """Return the units and facts of a TypeScript file, with or without JSX.

    The two syntaxes cannot be combined: `<T>x` is a cast in TypeScript, but opens an element in
    JSX. If the text has errors in both, the result with more facts is returned.
    """
    plain = read_typescript(text)
    if not plain.notes:
        return plain
    with_elements = read_tsx(text)
    more = len(with_elements.facts) > len(plain.facts)
    return with_elements if more or not with_elements.notes else plain
