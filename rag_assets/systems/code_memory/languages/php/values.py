"""Static values in a PHP file, and chains of calls, such as `Route::prefix('a')->group(…)`.

Code is never run to get a value. `Constants.further` adds readers for variables and calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from rag_assets.systems.code_memory.languages.tree import Node, SyntaxTree, get_first_child

MAX_DEPTH: Final = 40
"""Maximum depth of nested values; deeper values count as computed."""

_ESCAPES: Mapping[str, str] = {
    "n": "\n", "t": "\t", "r": "\r", "v": "\v", "e": "\x1b", "f": "\f",
    "\\": "\\", "$": "$", '"': '"',
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(.))", re.S)
_MAX_CODE_POINT = 0x10FFFF


class Computed:
    """A value that is computed at run time."""

    def __repr__(self) -> str:
        return "COMPUTED"


COMPUTED: Final = Computed()


class ClosureValue(Computed):
    """The value of a closure, which is known only at run time."""

    def __init__(self, node: Node) -> None:
        self.node = node


Value: TypeAlias = "str | int | float | bool | list[Any] | dict[str, Any] | Computed | None"
"""An array is a list if no element has a key; otherwise it is a dict with text keys."""


@dataclass(frozen=True, slots=True)
class Constants:
    """The functions that resolve names inside static values.

    Attributes:
        class_name: returns the fully qualified name of a class from its name as written.
        constant: returns the value of a class constant or an enum case in the same file, by class
            and name; COMPUTED if it is unknown.
        further: additional readers, by type of node. Each gets the node and the remaining depth; it
            returns NotImplemented to leave an expression to the default reader.
    """

    class_name: Callable[[str], str]
    constant: Callable[[str, str], Value] = lambda _class, _name: COMPUTED
    further: Mapping[str, Callable[[Node, int], Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )


def compute_value(
    tree: SyntaxTree, node: Node | None, constants: Constants, depth: int = MAX_DEPTH
) -> Value:
    """Return the value of an expression; COMPUTED if it is not static.

    Args:
        node: the expression; None for no value.
        constants: resolves the names in it.
        depth: remaining depth of nesting.
    """
    if node is None:
        return None
    if depth <= 0:
        return COMPUTED
    further = constants.further.get(node.type)
    value: Value = NotImplemented if further is None else further(node, depth - 1)
    if value is not NotImplemented:
        return value
    read = _READERS.get(node.type)
    return COMPUTED if read is None else read(tree, node, constants, depth - 1)


def iter_elements(array: Node) -> Iterator[tuple[Node | None, Node]]:
    """Yield key and value of each array element; the key of an unpacked element is None."""
    for element in array.named_children:
        if element.type != "array_element_initializer":
            continue
        parts = [child for child in element.named_children if child.type != "comment"]
        if len(parts) > 1:
            yield parts[0], parts[-1]
        elif parts:
            yield None, parts[0]


def is_static(value: Value) -> bool:
    """Return whether a value and all its elements are known without running the code."""
    pending: list[Any] = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, Computed):
            return False
        if isinstance(part, list):
            pending += part
        elif isinstance(part, dict):
            pending += part.values()
    return True


def _read_string(tree: SyntaxTree, node: Node, _constants: Constants, _depth: int) -> Value:
    text = tree.get_node_text(node)
    return re.sub(r"\\([\\'])", r"\1", text[text.find("'") + 1 : -1])


def _read_encapsed_string(tree: SyntaxTree, node: Node, constants: Constants, depth: int) -> Value:
    parts = []
    for child in node.named_children:
        text = tree.get_node_text(child)
        if child.type == "escape_sequence":
            text = _ESCAPE.sub(_unescape, text)
        elif child.type != "string_content":
            value = compute_value(tree, child, constants, depth)
            if not isinstance(value, str | int) or isinstance(value, bool):
                return COMPUTED
            text = str(value)
        parts.append(text)
    return "".join(parts)


def _unescape(match: re.Match[str]) -> str:
    if match[1] or match[2]:
        code = int(match[1] or match[2], 16)
        return chr(code) if code <= _MAX_CODE_POINT else match[0]
    if match[3]:
        return chr(int(match[3], 8) & 0xFF)
    return _ESCAPES.get(match[4], match[0])


def _read_heredoc(tree: SyntaxTree, node: Node, _constants: Constants, _depth: int) -> Value:
    body = node.child_by_field_name("value")
    if body is None:
        return ""
    plain = {"string_content", "escape_sequence", "nowdoc_string"}
    if any(child.type not in plain for child in body.named_children):
        return COMPUTED
    return tree.get_node_text(body).strip("\r\n")


def _read_number(tree: SyntaxTree, node: Node, _constants: Constants, _depth: int) -> Value:
    text = tree.get_node_text(node).replace("_", "").lower()
    try:
        if node.type == "float":
            return float(text)
        octal = len(text) > 1 and text[0] == "0" and text.isdigit()
        return int(text, 8) if octal else int(text, 0)
    except ValueError:
        return COMPUTED


def _read_word(tree: SyntaxTree, node: Node, _constants: Constants, _depth: int) -> Value:
    return {"true": True, "false": False}.get(tree.get_node_text(node).lower())


def _read_negative(tree: SyntaxTree, node: Node, constants: Constants, depth: int) -> Value:
    value = compute_value(tree, node.child_by_field_name("argument"), constants, depth)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and tree.get_node_text(node).startswith("-"):
        return -value  # type: ignore[operator]
    return COMPUTED


def _read_concatenation(tree: SyntaxTree, node: Node, constants: Constants, depth: int) -> Value:
    """Return the value of `a . b . c`, which the grammar nests as `(a . b) . c`."""
    parts: list[str] = []
    at: Node | None = node
    while at is not None and at.type == "binary_expression":
        operator = at.child_by_field_name("operator")
        if tree.get_node_text(operator) != ".":
            return COMPUTED
        right = compute_value(tree, at.child_by_field_name("right"), constants, depth)
        if not isinstance(right, str | int) or isinstance(right, bool):
            return COMPUTED
        parts.append(str(right))
        at = at.child_by_field_name("left")
    first = compute_value(tree, at, constants, depth)
    if not isinstance(first, str | int) or isinstance(first, bool):
        return COMPUTED
    return "".join([str(first), *reversed(parts)])


def _read_array(tree: SyntaxTree, node: Node, constants: Constants, depth: int) -> Value:
    keyed: dict[str, Any] = {}
    plain = True
    following = 0
    for key_node, value_node in iter_elements(node):
        if value_node.type == "variadic_unpacking":
            return COMPUTED
        value = compute_value(tree, value_node, constants, depth)
        if key_node is None:
            key: Value = following
        else:
            key, plain = compute_value(tree, key_node, constants, depth), False
        if not isinstance(key, str | int):
            return COMPUTED
        if isinstance(key, int):
            following = max(following, key + 1)
        keyed[str(key)] = value
    return list(keyed.values()) if plain else keyed


def _read_class_constant(tree: SyntaxTree, node: Node, constants: Constants, _depth: int) -> Value:
    scope, name = node.named_children[0], tree.get_node_text(node.named_children[-1])
    if scope.type not in {"name", "qualified_name", "relative_scope", "relative_name"}:
        return COMPUTED
    owner = constants.class_name(tree.get_node_text(scope))
    return owner if name.lower() == "class" else constants.constant(owner, name)


def _read_inner(tree: SyntaxTree, node: Node, constants: Constants, depth: int) -> Value:
    inner = get_first_child(node)
    return COMPUTED if inner is None else compute_value(tree, inner, constants, depth)


_READERS: Mapping[str, Callable[[SyntaxTree, Node, Constants, int], Value]] = {
    "string": _read_string,
    "encapsed_string": _read_encapsed_string,
    "heredoc": _read_heredoc,
    "nowdoc": _read_heredoc,
    "integer": _read_number,
    "float": _read_number,
    "boolean": _read_word,
    "null": _read_word,
    "unary_op_expression": _read_negative,
    "binary_expression": _read_concatenation,
    "array_creation_expression": _read_array,
    "class_constant_access_expression": _read_class_constant,
    "parenthesized_expression": _read_inner,
    "argument": _read_inner,
}


MEMBER_CALLS = frozenset({"member_call_expression", "nullsafe_member_call_expression"})
CALLS = MEMBER_CALLS | {
    "scoped_call_expression",
    "function_call_expression",
    "object_creation_expression",
}
CLOSURES = frozenset({"anonymous_function", "arrow_function"})


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call; the name of a positional argument is ""."""

    value: Node
    name: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a chain.

    Attributes:
        name: the name of the method or function; "" if it is computed.
        node: the node from the start of the chain to the end of this call.
    """

    name: str
    arguments: tuple[Argument, ...]
    node: Node

    def get_argument(self, position: int, name: str = "") -> Node | None:
        """Return the argument with this name, else at this position; None if it is missing."""
        argument_value = next(
            (own.value for own in self.arguments if name and own.name == name), None
        )
        if argument_value is not None:
            return argument_value
        positional = [own.value for own in self.arguments if not own.name]
        return positional[position] if position < len(positional) else None


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of calls.

    Attributes:
        root: the expression before the first call: a class as written (`Route`), a variable
            (`$router`), or a property (`$this->router`); "" for a function or any other expression.
        static: whether it starts with a static call.
        calls: the calls, in order; if a function starts the chain, its call is the first.
    """

    root: str
    static: bool
    calls: tuple[Call, ...]
    node: Node

    def find_call(self, *names: str) -> Call | None:
        """Return the first call with one of these names, ignoring case; None if there is none."""
        lowercase_names = {name.lower() for name in names}
        return next((call for call in self.calls if call.name.lower() in lowercase_names), None)


def parse_chain(tree: SyntaxTree, node: Node) -> Chain | None:
    """Return the chain of calls in an expression; None if it is not a chain."""
    calls: list[Call] = []
    at: Node | None = node
    while at is not None and at.type in MEMBER_CALLS:
        calls.append(_build_call(tree, at, at.child_by_field_name("name")))
        at = at.child_by_field_name("object")
    root, static = "", False
    if at is not None and at.type == "scoped_call_expression":
        calls.append(_build_call(tree, at, at.child_by_field_name("name")))
        root, static = tree.get_field_text(at, "scope"), True
    elif at is not None and at.type == "function_call_expression":
        calls.append(_build_call(tree, at, at.child_by_field_name("function")))
    elif at is not None and at.type in {"variable_name", "member_access_expression"}:
        root = tree.get_node_text(at)
    if not calls:
        return None
    return Chain(root, static, tuple(reversed(calls)), node)


def list_arguments(tree: SyntaxTree, node: Node) -> tuple[Argument, ...]:
    """Return the arguments of a call or of an object creation."""
    arguments_node = node.child_by_field_name("arguments") or next(
        (child for child in node.named_children if child.type == "arguments"), None
    )
    if arguments_node is None:
        return ()
    arguments = []
    for child in arguments_node.named_children:
        if child.type != "argument":
            continue
        name = child.child_by_field_name("name")
        parts = [n for n in child.named_children if n != name and n.type != "comment"]
        if parts:
            arguments.append(Argument(parts[-1], tree.get_node_text(name)))
    return tuple(arguments)


def _build_call(tree: SyntaxTree, node: Node, name: Node | None) -> Call:
    static = name is not None and name.type in {"name", "qualified_name", "relative_name"}
    return Call(tree.get_node_text(name) if static else "", list_arguments(tree, node), node)
