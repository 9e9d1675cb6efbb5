"""Statements of a text in a form for framework data: calls, annotations, classes, functions.

The form is the same for every language, so that framework data can say `call = ["get"]` whatever
the grammar calls its call nodes. Values are JSON lists that start with their kind: `["s", text]` a
string, `["n", name]` a name, `["c", start, end, name]` a call, `["l", values]` a list, `["d", {…}]`
a map, `["+", values]` a sum or a string with inserted values, `["f"]` a function, `["t", name]` a
declared type without a value, `["?"]` a value computed at run time.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import Node, SyntaxTree, get_first_child

Value: TypeAlias = list[Any]
_Visit: TypeAlias = "tuple[Node, int, Node | None, str]"
"""A node, its depth, the definition that it may annotate, and the type of its parent node."""

CALL: Final = "framework_call"
ANNOTATION: Final = "framework_annotation"
CLASS: Final = "framework_class"
FUNCTION: Final = "framework_function"
ASSIGNED: Final = "framework_value"
BODY: Final = "body"
"""Value of a call with the offset of its last argument, if that is a function or a call."""
NAME_AT: Final = "name_at"
"""Value of a call with the offset of its name, if its receiver starts on an earlier line."""
PLACE: Final = "place"
"""Value of a route's call whose receiver starts on an earlier line: the number of lines from there
to its name, and its text from there on."""
INSIDE: Final = "inside"
"""Value of a route's call with the calls in its handler, each as its receiver and its name."""
FOUND: Final = "frameworks"
"""Kind of the fact that lists the frameworks whose markers a file contains."""
STATEMENTS: Final = frozenset({CALL, ANNOTATION, CLASS, FUNCTION, ASSIGNED})
"""Kinds of the facts that represent statements."""

GRAMMARS: Final[dict[str, tuple[str, str]]] = {
    "csharp": ("tree_sitter_c_sharp", "language"),
    "elixir": ("tree_sitter_language_pack.bindings.elixir", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "kotlin": ("tree_sitter_language_pack.bindings.kotlin", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "prisma": ("tree_sitter_language_pack.bindings.prisma", "language"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_language_pack.bindings.ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "swift": ("tree_sitter_swift", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}
"""Package and function of the grammar of each language that framework data may use."""

PAGES: Final = frozenset({"svelte", "vue"})
"""Further languages that framework data may use: their files state routes by their paths only."""
_MAX_TEXT_CHARACTERS: Final = 1_000_000
"""Maximum characters of a text; for a longer text, only a note is returned, and no statements."""
_MAX_STATEMENTS: Final = 50_000
"""Maximum number of statements read in one text; a note reports that further ones are dropped."""
_MAX_VALUE_CHARACTERS: Final = 300
"""Maximum characters of a value; a longer value is unknown, but a symbol or sum is cut off
instead."""
_MAX_NAME_CHARACTERS: Final = 80
"""Maximum characters of a name; a call or assignment with a longer name is dropped."""
_MAX_VALUES: Final = 24
"""Maximum number of arguments, elements or parameters; further ones are dropped."""
_MAX_VALUE_DEPTH: Final = 4
"""Maximum depth of nested values; deeper values count as unknown."""
_MAX_NODE_DEPTH: Final = 400
"""Maximum depth of a tree; deeper nodes are skipped. Each call in a chain adds two levels."""
_UNKNOWN: Final[Value] = ["?"]
_NODES: Final = SimpleNamespace(
    **{
        name: frozenset(types)
        for name, types in tomllib.loads(
            files(__package__).joinpath("node_types.toml").read_text("utf-8")
        ).items()
    }
)
"""Types of nodes in all grammars, by the construct that the nodes are."""
_BEFORE_DEFINITIONS: Final = _NODES.before_definitions | _NODES.around_annotations
_ANNOTATED: Final = (
    _NODES.around_annotations | _NODES.classes | _NODES.defined | {"decorated_definition"}
)
_STATEMENT_NODES: Final = (
    _NODES.calls | _NODES.classes | _NODES.defined | _NODES.annotations | _NODES.assigning
)
_PATH_TOKENS: Final = frozenset({"identifier", "::", "crate", "self", "super"})
"""Tokens of a name in a Rust macro."""
_MARKS: Final = re.compile(r"^(?:[@$rRbBuU]{0,2}(?:'''|\"\"\"|[`'\"])|[:/])|(?:'''|\"\"\"|[`'\"])$")
_TYPE_ARGUMENT: Final = re.compile(r"<\s*([A-Za-z_][\w.]*)")
_OPENING: Final = re.compile(r"^[@$a-zA-Z]{0,3}(?:'''|\"\"\"|[`'\"])")
_CLOSING: Final = re.compile(r"(?:'''|\"\"\"|[`'\"])$")


def list_statements(tree: SyntaxTree, language: str) -> tuple[list[Fact], str]:
    """Return the statements of a text, and a note about the part that was not read, or ""."""
    if tree.gave_up or len(tree.text) > _MAX_TEXT_CHARACTERS:
        return [], "framework calls were not read: the text is too long or the parser stopped"
    facts: list[Fact] = []
    pending: list[_Visit] = [(tree.root, 0, None, "")]
    reader = _StatementReader(tree, language)
    while pending:
        node, depth, annotated, parent = pending.pop()
        kind = node.type
        if kind in _STATEMENT_NODES:
            facts += reader.read(node, annotated, parent)
            if len(facts) > _MAX_STATEMENTS:
                return facts[
                    :_MAX_STATEMENTS
                ], f"frameworks: only the first {_MAX_STATEMENTS} statements were read"
        if depth >= _MAX_NODE_DEPTH:
            continue
        children = node.named_children
        if kind in _ANNOTATED or any(child.type in _BEFORE_DEFINITIONS for child in children):
            pending.extend(_visit_children(node, children, depth, annotated))
        else:
            pending.extend((child, depth + 1, None, kind) for child in reversed(children))
    return facts, ""


def _visit_children(
    node: Node, children: Sequence[Node], depth: int, annotated: Node | None
) -> Iterator[_Visit]:
    """Yield the children of a node, last first, each with the definition that it may annotate."""
    kind = node.type
    own: Node | None = None
    if kind == "decorated_definition":
        own = node.child_by_field_name("definition") or node
    elif kind in _NODES.around_annotations:
        own = annotated or node
    elif kind in _NODES.classes or kind in _NODES.defined:
        own = node
    following: Node | None = None
    for child in reversed(children):
        is_before = child.type in _BEFORE_DEFINITIONS
        if not is_before:
            following = child
        yield child, depth + 1, own or (following if is_before else None), kind


def _find_name(node: Node) -> Node | None:
    """Return the node with the name of a definition; in Kotlin, it is a child without a field."""
    if (name := node.child_by_field_name("name")) is not None:
        return name
    return next((c for c in node.named_children if c.type in _NODES.naming), None)


def _find_name_of_call(node: Node, on: Node) -> Node | None:
    """Return the node after a receiver that starts on an earlier line; else None."""
    if on.start_point[0] == on.end_point[0] and on.end_point[0] == node.end_point[0]:
        return None
    callee = node
    while callee.named_children and callee.named_children[0] != on:
        callee = callee.named_children[0]
    name = next((child for child in callee.named_children if child != on), None)
    return name if name is not None and name.start_point[0] > node.start_point[0] else None


def _find_last_argument(node: Node) -> Node:
    """Return the last argument of a call: a function, a block, or a call around a function."""
    last = node.named_children[-1]
    while last.named_children and ("argument" in last.type or last.type == "call_suffix"):
        last = last.named_children[-1]
    return last


class _StatementReader:
    """A reader of the statements in a syntax tree, one node at a time."""

    def __init__(self, tree: SyntaxTree, language: str) -> None:
        self.tree = tree
        self.language = language

    def read(self, node: Node, annotated: Node | None, parent: str) -> Iterator[Fact]:
        """Yield the statements that a node itself states; its children are read separately.

        Args:
            annotated: the definition that the node annotates, if it is an annotation.
            parent: the type of the parent node.
        """
        kind = node.type
        if kind in _NODES.calls:
            if values := self._read_call(node):
                yield self._build_fact(CALL, node, values)
        elif kind in _NODES.annotations and (
            kind != "attribute" or parent in _NODES.around_annotations
        ):
            yield from self._read_annotation(node, annotated)
        elif kind in _NODES.classes and (name := self._find_class_name(node)) is not None:
            values = {"name": self._get_compact_text(name), "bases": self._list_base_names(node)}
            if types := self._list_type_arguments(node):
                values["type_arguments"] = types
            values |= self._read_arguments_of_base(node)
            yield self._build_fact(CLASS, node, values)
        elif kind in _NODES.defined and (name := _find_name(node)) is not None:
            values = {
                "name": self._get_compact_text(name),
                "parameters": self._read_parameters(node),
            }
            if (receiver := self._find_receiver_of_method(node)) is not None:
                values["owner"] = receiver[1]
                values["parameters"].append(receiver)
            if "function" in kind or "method" in kind:
                yield self._build_fact(FUNCTION, node, values)
        if kind in _NODES.assigning:
            yield from self._read_assignment(node)

    def _find_receiver_of_method(self, node: Node) -> list[str] | None:
        """Return name and type of a Go method's receiver: `func (o *Orders) List()`; else None."""
        receiver = node.child_by_field_name("receiver")
        if receiver is None or receiver.type != "parameter_list" or not receiver.named_children:
            return None
        parameter = receiver.named_children[0]
        type_ = self._get_compact_text(parameter.child_by_field_name("type")).lstrip("*")
        return [
            self._get_compact_text(parameter.child_by_field_name("name")),
            type_.partition("[")[0],
        ]

    def _find_class_name(self, node: Node) -> Node | None:
        is_named_first = node.type == "model_block" and node.named_children
        return node.named_children[0] if is_named_first else _find_name(node)

    def _build_fact(self, kind: str, node: Node, values: dict[str, Any]) -> Fact:
        return Fact(kind, self.tree.start(node), self.tree.end(node), "", values)

    def _get_compact_text(self, node: Node | None) -> str:
        """Return the text of a node without white space; "" for None or a long text."""
        if node is None or node.end_byte - node.start_byte > 4 * _MAX_VALUE_CHARACTERS:
            return ""
        text = self.tree.get_node_text(node)
        return "".join(text.split()) if len(text) <= _MAX_VALUE_CHARACTERS else ""

    def _find_callee(self, node: Node) -> Node | None:
        for name in ("function", "target", "constructor", "type", "macro"):
            if (callee := node.child_by_field_name(name)) is not None:
                return callee
        return None

    def _read_call(self, node: Node) -> dict[str, Any] | None:
        """Return name, receiver and arguments of a call; None if its name is missing or long."""
        name, on = self._read_called_name(node)
        if not name or len(name) > _MAX_NAME_CHARACTERS:
            return None
        ordered, named_arguments = self._read_arguments(node)
        values: dict[str, Any] = {"name": name, "arguments": ordered}
        if named_arguments:
            values["named"] = named_arguments
        if on is not None:
            values["on"] = self.read_value(on)
        if self.language == "csharp" and (types := self._list_types_of_call(node)):
            values["type_arguments"] = types
        if ordered and ordered[-1][0] in "fc":
            values[BODY] = self.tree.start(_find_last_argument(node))
        if on is not None and (shown := _find_name_of_call(node, on)) is not None:
            values[NAME_AT] = self.tree.start(shown)
        return values

    def _list_types_of_call(self, node: Node) -> list[str]:
        """Return the type arguments of a call in C#: `Order` for `builder.Entity<Order>()`."""
        callee = self._find_callee(node)
        name = callee and (callee.child_by_field_name("name") or callee)
        return _TYPE_ARGUMENT.findall(self._get_compact_text(name))

    def _read_called_name(self, node: Node) -> tuple[str, Node | None]:
        """Return the name of the called function, and the node of its receiver if there is one."""
        callee = self._find_callee(node)
        name_node = node.child_by_field_name("method") or node.child_by_field_name("name")
        on: Node | None = None
        if callee is None and name_node is not None:
            on = node.child_by_field_name("receiver") or node.child_by_field_name("object")
            name = self._get_compact_text(name_node)
        else:
            callee = callee or (get_first_child(node))
            if callee is None:
                return "", None
            parts = callee.named_children
            if callee.type in _NODES.members and parts:
                name, on = self._get_compact_text(parts[-1]), (parts[0] if len(parts) > 1 else None)
            elif callee.type in _NODES.generic and parts:
                name = self._get_compact_text(parts[0])
            else:
                name = self._get_compact_text(callee)
        mark = "!" if node.type == "macro_invocation" else ""
        return name.lstrip(".").partition("<")[0] + mark, on

    def _read_arguments(self, node: Node) -> tuple[list[Value], dict[str, Value]]:
        """Return the positional arguments of a call or an annotation, and its named arguments."""
        if node.type == "macro_invocation":
            return self._read_arguments_of_macro(node), {}
        parts = self._list_arguments(node)
        ordered: list[Value] = []
        named_arguments: dict[str, Value] = {}
        for part in parts[:_MAX_VALUES]:
            label = part.child_by_field_name("name")
            if part.type in _NODES.pairs:
                self._add_pairs(part, named_arguments, 0)
            elif part.type in _NODES.arguments and part.named_children:
                equals = next((c for c in part.children if c.type in {"name_equals", "="}), None)
                if label is None and equals is not None:
                    label = (equals if equals.is_named else part).named_children[0]
                value = self.read_value(part.named_children[-1])
                if label is not None:
                    named_arguments[self._get_compact_text(label)] = value
                else:
                    ordered.append(value)
            elif "comment" not in part.type:
                ordered.append(self.read_value(part))
        last = node.child_by_field_name("block")
        if last is None and node.named_children and node.named_children[-1].type == "do_block":
            last = node.named_children[-1]
        return ([*ordered, ["f"]] if last is not None else ordered), named_arguments

    def _read_arguments_of_macro(self, node: Node) -> list[Value]:
        """Return the names and strings in the tokens of a Rust macro: `routes![users::list]`."""
        ordered: list[Value] = []
        path = ""
        for token in (token for tree in self._list_token_trees(node) for token in tree.children):
            if token.type in _PATH_TOKENS:
                path += self._get_compact_text(token)
                continue
            if path:
                ordered.append(["n", path])
            path = ""
            if token.type in _NODES.strings:
                ordered.append(self.read_value(token))
            if len(ordered) >= _MAX_VALUES:
                break
        return ordered[:_MAX_VALUES]

    def _list_token_trees(self, node: Node) -> list[Node]:
        return [child for child in node.named_children if child.type == "token_tree"]

    def _list_arguments(self, node: Node) -> list[Node]:
        """Return the nodes of the arguments of a call or an annotation."""
        arguments_node = node.child_by_field_name("arguments")
        kinds = ("argument", "arguments", "value_arguments", "call_suffix")
        if arguments_node is None:
            arguments_node = next(
                (c for c in node.named_children if c.type.startswith(kinds)), None
            )
        if arguments_node is None:
            arguments_node = next(
                (c for c in node.named_children if "argument_list" in c.type), None
            )
        if arguments_node is not None and arguments_node.type == "call_suffix":
            inner = next(
                (c for c in arguments_node.named_children if c.type == "value_arguments"), None
            )
            lambdas = [c for c in arguments_node.named_children if c.type in _NODES.functions]
            return [*(inner.named_children if inner is not None else ()), *lambdas]
        return arguments_node.named_children if arguments_node is not None else []

    def _add_pairs(self, node: Node, add_to: dict[str, Value], depth: int) -> None:
        if node.type == "keywords":
            for child in node.named_children[:_MAX_VALUES]:
                self._add_pairs(child, add_to, depth)
            return
        parts = node.named_children
        key = node.child_by_field_name("key") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if not parts:
            return
        if key is None or value is None:
            key = node.child_by_field_name("name") or parts[0]
            value = value or parts[-1]
        key_value = self.read_value(key, depth + 1)
        name = key_value[1] if key_value[0] in {"s", "n"} else ""
        add_to[str(name).strip(": ")] = self.read_value(value, depth + 1)

    def read_value(self, node: Node, depth: int = 0) -> Value:
        """Return the value of an expression, in the form that this module describes."""
        kind = node.type
        if depth > _MAX_VALUE_DEPTH:
            return _UNKNOWN
        if kind in _NODES.names and kind not in _NODES.strings:
            return ["n", self._get_compact_text(node)]
        for types, read in (
            (_NODES.strings, self._read_string),
            (_NODES.members, self._read_member),
            (_NODES.calls, self._read_call_value),
            (_NODES.lists, self._read_list),
            (_NODES.maps, self._read_map),
            (_NODES.sums, self._read_sum),
            ({"array_creation_expression"} if self.language == "php" else (), self._read_php_array),
            ({"composite_literal"}, self._read_go_literal),
        ):
            if kind in types:
                return read(node, depth)
        if kind in _NODES.plain:
            return (
                self.read_value(node.named_children[-1], depth + 1)
                if node.named_children
                else _UNKNOWN
            )
        return ["f"] if kind in _NODES.functions else _UNKNOWN

    def _read_member(self, node: Node, _: int) -> Value:
        has_call = any(child.type in _NODES.calls for child in node.named_children)
        text = "" if has_call else self._get_compact_text(node).removesuffix("::class")
        if self.language == "php":
            text = text.replace("->", ".")
        return ["n", text] if text else _UNKNOWN

    def _read_call_value(self, node: Node, _: int) -> Value:
        if self.language == "ruby" and node.child_by_field_name("arguments") is None:
            return ["n", self._get_compact_text(node)]
        name = self._read_called_name(node)[0][:_MAX_NAME_CHARACTERS]
        return ["c", self.tree.start(node), self.tree.end(node), name]

    def _read_go_literal(self, node: Node, _: int) -> Value:
        return ["n", self._get_compact_text(node.child_by_field_name("type"))]

    def _read_php_array(self, node: Node, depth: int) -> Value:
        elements = node.named_children[:_MAX_VALUES]
        if not any(len(element.named_children) > 1 for element in elements):
            values = (element.named_children[0] for element in elements if element.named_children)
            return ["l", [self.read_value(value, depth + 1) for value in values]]
        entries: dict[str, Value] = {}
        for at, element in enumerate(elements):
            if len(element.named_children) == 1:
                entries[str(at)] = self.read_value(element.named_children[0], depth + 1)
            else:
                self._add_pairs(element, entries, depth + 1)
        return ["d", entries]

    def _read_list(self, node: Node, depth: int) -> Value:
        parts = [c for c in node.named_children if "comment" not in c.type][:_MAX_VALUES]
        if node.type in {"string_array", "symbol_array"}:
            return ["l", [["s", self._get_compact_text(part)] for part in parts]]
        return ["l", [self.read_value(part, depth + 1) for part in parts]]

    def _read_map(self, node: Node, depth: int) -> Value:
        entries: dict[str, Value] = {}
        for child in node.named_children[:_MAX_VALUES]:
            if child.type == "shorthand_property_identifier":
                entries[self._get_compact_text(child)] = ["n", self._get_compact_text(child)]
            elif child.type in _NODES.pairs:
                self._add_pairs(child, entries, depth + 1)
            elif child.type == "method_definition":
                entries[self._get_compact_text(child.child_by_field_name("name"))] = ["f"]
        return ["d", entries]

    def _read_string(self, node: Node, depth: int = 0) -> Value:
        if node.end_byte - node.start_byte > 4 * _MAX_VALUE_CHARACTERS:
            return _UNKNOWN
        spliced = [child for child in node.named_children if child.type in _NODES.spliced]
        if spliced:
            return self._read_interpolated_string(node, spliced, depth)
        text = self.tree.get_node_text(node).strip()
        if node.type in {"simple_symbol", "atom", "hash_key_symbol", "keyword"}:
            return ["s", text.strip(": ")[:_MAX_VALUE_CHARACTERS]]
        text = _MARKS.sub("", text) if text[:1] != "/" else text
        return ["s", text] if len(text) <= _MAX_VALUE_CHARACTERS else _UNKNOWN

    def _read_interpolated_string(self, node: Node, spliced: Sequence[Node], depth: int) -> Value:
        """Return the value of a string with inserted expressions, such as `${PREFIX}/orders`."""
        parts: list[Value] = []
        at, end = self.tree.start(node), self.tree.end(node)
        for inserted in spliced[:_MAX_VALUES]:
            text = self.tree.text[at : self.tree.start(inserted)]
            parts.append(["s", text if parts else _OPENING.sub("", text)])
            parts.append(self._read_interpolated_value(inserted, depth))
            at = self.tree.end(inserted)
        parts.append(["s", _CLOSING.sub("", self.tree.text[at:end])])
        return ["+", parts] if len(spliced) <= _MAX_VALUES else _UNKNOWN

    def _read_interpolated_value(self, node: Node, depth: int) -> Value:
        if node.type == "interpolated_identifier":
            return ["n", self._get_compact_text(node)]
        inner = [c for c in node.named_children if c.type not in _NODES.spliced_formats]
        return self.read_value(inner[0], depth + 1) if len(inner) == 1 else _UNKNOWN

    def _read_sum(self, node: Node, depth: int) -> Value:
        sign = node.child_by_field_name("operator")
        parts = [self.read_value(child, depth + 1) for child in node.named_children[:2]]
        is_sum = sign is not None and self.tree.get_node_text(sign) in {"+", "<>", "."}
        if is_sum and all(part[0] == "s" for part in parts):
            return ["s", (parts[0][1] + parts[1][1])[:_MAX_VALUE_CHARACTERS]]
        return ["+", parts] if is_sum else _UNKNOWN

    def _read_annotation(self, node: Node, annotated: Node | None) -> Iterator[Fact]:
        """Yield an annotation, with the position and name of the definition that it annotates."""
        inner = node
        values: dict[str, Any] = {"named": {}, "arguments": []}
        if node.type == "attribute_item":
            inner = node.named_children[0] if node.named_children else node
            if inner.type != "attribute":
                return
            values["arguments"], values["named"] = self._read_attribute_tokens(inner)
            name = self._get_compact_text(inner.named_children[0]) if inner.named_children else ""
        elif node.type == "decorator":
            inner = node.named_children[0] if node.named_children else node
            call = self._read_call(inner) if inner.type in _NODES.calls else None
            name = call["name"] if call is not None else self._get_compact_text(inner)
            values |= call or {}
        elif node.type == "model_multi_attribute":
            name = self._get_compact_text(get_first_child(node)).strip("@")
            values["arguments"] = [self.read_value(c) for c in node.named_children[1:_MAX_VALUES]]
        else:
            # Kotlin's `@Get("/")` is a call of a constructor, and `@Get` is only a type.
            inner = next((c for c in node.named_children if c.type in _NODES.annotating), node)
            name = self._get_compact_text(
                inner.child_by_field_name("name") or get_first_child(inner)
            )
            values["arguments"], values["named"] = self._read_arguments(inner)
        if not name or annotated is None:
            return
        values |= {
            "name": re.split(r"[.:\\\\]", name)[-1],
            "target": [self.tree.start(annotated), self.tree.end(annotated)],
            "of": self._get_compact_text(_find_name(annotated)),
        }
        yield self._build_fact(ANNOTATION, node, values)

    def _read_attribute_tokens(self, node: Node) -> tuple[list[Value], dict[str, Value]]:
        """Return the strings and the `name = value` pairs in the tokens of a Rust attribute."""
        tokens = [token for tree in self._list_token_trees(node) for token in tree.children]
        ordered: list[Value] = []
        named_values: dict[str, Value] = {}
        name = ""
        for at, token in enumerate(tokens[:_MAX_VALUES]):
            if token.type not in _NODES.strings and token.type not in {"identifier", "crate"}:
                continue
            if at > 1 and tokens[at - 1].type == "=":
                name = self._get_compact_text(tokens[at - 2])
                named_values[name] = self.read_value(token)
            elif at > 1 and tokens[at - 1].type == "::" and named_values:
                named_values[name] = self.read_value(token)
            else:
                ordered.append(self.read_value(token))
        return ordered, named_values

    def _list_base_names(self, node: Node) -> list[str]:
        """Return the names of a class's base classes, interfaces and embedded types.

        A model of Prisma has the base `model`.
        """
        clauses = [c for c in node.named_children if c.type in _NODES.bases]
        bases_text = "".join(
            self.tree.get_node_text(clause)[:_MAX_VALUE_CHARACTERS] + "," for clause in clauses
        )
        if node.type == "type_spec":
            bases_text = self._list_embedded_types(node)
        elif node.type == "model_block":
            bases_text = "model"
        words = re.split(r"[,\s()]+|(?<!:):(?!:)", bases_text)
        skipped = {"", "extends", "implements"}
        return [w.partition("<")[0].partition("[")[0] for w in words if w not in skipped][:12]

    def _read_arguments_of_base(self, node: Node) -> dict[str, Any]:
        """Return the arguments of a base class in Kotlin: `Table("orders")`."""
        for clause in node.named_children:
            inner = get_first_child(clause) if clause.type == "delegation_specifier" else None
            if inner is not None and inner.type == "constructor_invocation":
                ordered, named_arguments = self._read_arguments(inner)
                return (
                    {"arguments": ordered, "named": named_arguments}
                    if ordered or named_arguments
                    else {}
                )
        return {}

    def _list_type_arguments(self, node: Node) -> list[str]:
        """Return the first type argument of each base: `Order` for `Configuration<Order>`."""
        clauses = [c for c in node.named_children if c.type in _NODES.bases]
        written_types = " ".join(
            self.tree.get_node_text(clause)[:_MAX_VALUE_CHARACTERS] for clause in clauses
        )
        return _TYPE_ARGUMENT.findall(written_types)[:4] if clauses else []

    def _list_embedded_types(self, node: Node) -> str:
        """Return the types embedded in a Go struct, joined by commas.

        A struct with gorm tags also gets the name `gorm-tag`, which marks it as a model.
        """
        body = node.child_by_field_name("type")
        if body is None or body.type != "struct_type" or not body.named_children:
            return ""
        parts = body.named_children[0].named_children[:60]
        names = [
            self._get_compact_text(part)
            for part in parts
            if part.child_by_field_name("name") is None
        ]
        tags = (
            "gorm-tag"
            if any("gorm:" in self.tree.get_node_text(part)[:400] for part in parts)
            else ""
        )
        return ",".join([*names, tags])

    def _read_parameters(self, node: Node) -> list[list[str]]:
        parameters_node = node.child_by_field_name("parameters") or next(
            (c for c in node.named_children if c.type == "function_value_parameters"), None
        )
        nodes = (
            parameters_node.named_children if parameters_node is not None else node.named_children
        )
        receiver = node.child_by_field_name("receiver")
        is_extension = receiver is not None and receiver.type == "receiver_type"
        parameters = [["this", self._get_compact_text(receiver)]] if is_extension else []
        for child in nodes[:_MAX_VALUES]:
            if child.type in _NODES.parameters:
                name = _find_name(child) or child.child_by_field_name("pattern")
                type_ = self._get_compact_text(child.child_by_field_name("type"))
                if not type_ and child.named_children:
                    type_ = self._get_compact_text(child.named_children[-1])
                parameters.append([self._get_compact_text(name), type_])
            elif child.type in {"identifier", "typed_parameter"}:
                name_text, _, type_ = self._get_compact_text(child).partition(":")
                parameters.append([name_text, type_])
        return parameters

    def _read_assignment(self, node: Node) -> Iterator[Fact]:
        """Yield an assignment `name = value` if the value is a call, string, name or list."""
        sign = node.child_by_field_name("operator")
        if node.type == "binary_operator" and self.tree.get_node_text(sign) != "=":
            return  # Only Elixir assigns with an operator node; elsewhere, such a node calculates.
        names = ("name", "left", "pattern", "property")
        left_side = next((n for f in names if (n := node.child_by_field_name(f)) is not None), None)
        fields = ("value", "right", "default_value")
        right = next((n for f in fields if (n := node.child_by_field_name(f)) is not None), None)
        is_property = node.type == "property_declaration" and self.language == "csharp"
        is_declared = is_property or (node.type == "var_spec" and right is None)
        if is_declared and left_side is not None:
            value = ["t", self._get_compact_text(node.child_by_field_name("type"))]
            yield self._build_fact(
                ASSIGNED, node, {"name": self._get_compact_text(left_side), "value": value}
            )
        if left_side is None and any(child.type == "=" for child in node.children):
            left_side = next(
                (c for c in node.named_children if c.type == "variable_declaration"), None
            )
            left_side, right = left_side and get_first_child(left_side), node.named_children[-1]
        if node.type == "const_element":
            left_side, right = node.named_children[0], node.named_children[-1]
        if left_side is None or (right is None and node.type != "variable_declarator"):
            return
        right = node.named_children[-1] if right is None else right
        if right.type in {"expression_list", "equals_value_clause"} and right.named_children:
            right = right.named_children[-1 if "equals" in right.type else 0]
        value = self.read_value(right)
        name = self._get_compact_text(
            left_side.named_children[0] if left_side.type == "expression_list" else left_side
        )
        if node.type == "property_element":
            name = name.lstrip("$")
        if value[0] in {"c", "s", "n", "l"} and 0 < len(name) <= _MAX_NAME_CHARACTERS:
            yield self._build_fact(ASSIGNED, node, {"name": name, "value": value})


def find_argument(fact: Fact, choices: str) -> Value | None:
    """Return the first argument that exists among those that a rule names: `path|value|0`."""
    ordered, named_arguments = fact.values["arguments"], fact.values.get("named", {})
    for choice in choices.split("|"):
        if choice.lstrip("-").isdigit():
            at = int(choice)
            if -len(ordered) <= at < len(ordered):
                return list(ordered[at])
        elif choice in {"key", "value_of_key"}:
            pair = next(
                (p for p in named_arguments.items() if p[1][0] == "s" and "#" in p[1][1]), None
            )
            if pair is not None and pair[0] != "to":
                return ["s", pair[0]] if choice == "key" else list(pair[1])
        elif choice in named_arguments:
            return list(named_arguments[choice])
        elif entry := next((v[1][choice] for v in ordered if v[0] == "d" and choice in v[1]), None):
            return list(entry)
    return None
