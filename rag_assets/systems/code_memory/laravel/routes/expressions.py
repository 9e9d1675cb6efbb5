"""PHP expressions as JSON, to be evaluated once the other files are known.

A string, a number, a boolean or null is itself; anything else is an object with its kind in `of`:

| of | further values |
|---|---|
| array | items: pairs of a key, or null, and a value; an unpacked value is a `spread` |
| spread | value |
| join | parts |
| variable | name; `this` for `$this` |
| property | object, name |
| constant | class, "" for a global constant, and name |
| directory, file | of the file that contains it |
| item | array, key |
| choice | condition, yes, no; without `yes`, the condition's own value is used |
| default | value, otherwise: `??` |
| not | value |
| chain | root: an expression, null for a function call; class: of a static call, or ""; calls |
| new | class |
| closure | parameters: name, type and optional default; block: 0 if its body does not matter |
| load | path: of a required file |
| set | name, value: of a variable |
| computed | why: the kind of syntax |

A call has a name, arguments, and optional named arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from rag_assets.systems.code_memory.languages.php.source import PhpSource, list_parameters
from rag_assets.systems.code_memory.languages.php.types import get_class_of_creation
from rag_assets.systems.code_memory.languages.php.values import (
    CLOSURES,
    COMPUTED,
    MEMBER_CALLS,
    Call,
    iter_elements,
    parse_chain,
)
from rag_assets.systems.code_memory.languages.tree import (
    Node,
    get_first_child,
    list_code_children,
    list_field_children,
)

Json: TypeAlias = Any

LOADS = frozenset(
    {"require_expression", "require_once_expression", "include_expression"}
    | {"include_once_expression"}
)
_MAX_DEPTH = 40
"""Maximum depth of nested expressions; deeper expressions count as computed."""

_NAMES = frozenset({"name", "qualified_name", "relative_name", "relative_scope"})
_RUNNING_CALLS = frozenset(
    {"group", "routes", "withrouting", "each", "booted", "loadroutesusing", "when"}
    | {"unless", "tap", "call", "afterresolving", "resolving", "callafterresolving", "configure"}
)
"""Calls whose closures may create routes. Closures of other calls, and of actions, are not read."""


_ESCAPED = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", '\\"': '"', "\\$": "$"}


class Expressions:
    """Reads the expressions of one file.

    Args:
        block: takes the body of a closure and returns its block number.
    """

    def __init__(self, source: PhpSource, block: Callable[[Node], int]) -> None:
        self._source = source
        self._block = block
        self._left = _MAX_DEPTH

    def read(self, node: Node | None, *, runs: bool = True) -> Json:
        """Return an expression as JSON; `runs`: a closure's body may create routes."""
        if node is None:
            return None
        if node.type in CLOSURES:
            return self._read_closure(node, is_run=runs)
        read = self._readers.get(node.type)
        if read is None or self._left <= 0:
            return _build_computed(node.type if read is None else "nesting")
        self._left -= 1
        expression = read(self, node)
        self._left += 1
        return expression

    def read_parameters(self, node: Node) -> list[Json]:
        """Return the parameters of a function, a method or a closure."""
        nodes = [n for n in list_field_children(node, "parameters") if n.type.endswith("parameter")]
        parameters = list_parameters(self._source.tree, node, self._source.find_scope(node))
        entries = []
        for parameter, child in zip(parameters, nodes, strict=True):
            entry: dict[str, Json] = {"name": parameter.name, "type": parameter.type}
            default = child.child_by_field_name("default_value")
            entries.append(entry if default is None else {**entry, "default": self.read(default)})
        return entries

    def _read_closure(self, node: Node, *, is_run: bool) -> Json:
        body = node.child_by_field_name("body")
        if not is_run or body is None:
            return {"of": "closure", "parameters": [], "block": 0}
        parameters = self.read_parameters(node)
        return {"of": "closure", "parameters": parameters, "block": self._block(body)}

    def _read_scalar(self, node: Node) -> Json:
        value = self._source.read_value(node)
        return _build_computed(node.type) if value is COMPUTED else value

    def _read_array(self, node: Node) -> Json:
        items = []
        for key, value in iter_elements(node):
            if value.type == "variadic_unpacking":
                items.append([None, {"of": "spread", "value": self.read(get_first_child(value))}])
            else:
                items.append([self.read(key), self.read(value)])
        return {"of": "array", "items": items}

    def _read_text(self, node: Node) -> Json:
        parts: list[Json] = []
        for child in node.named_children:
            text = self._source.tree.get_node_text(child)
            if child.type == "escape_sequence":
                parts.append(_ESCAPED.get(text, text))
            else:
                parts.append(text if child.type == "string_content" else self.read(child))
        if all(isinstance(part, str) for part in parts):
            return self._read_scalar(node)
        return {"of": "join", "parts": parts}

    def _read_binary(self, node: Node) -> Json:
        operator = self._get_operator(node)
        if operator == "??":
            left_side = node.child_by_field_name("left")
            right = node.child_by_field_name("right")
            return {"of": "default", "value": self.read(left_side), "otherwise": self.read(right)}
        if operator != ".":
            return _build_computed(f"operator {operator}")
        # The grammar nests a long concatenation to the left, with one level per part.
        parts: list[Json] = []
        at: Node | None = node
        while at is not None and at.type == "binary_expression" and self._get_operator(at) == ".":
            parts.append(self.read(at.child_by_field_name("right")))
            at = at.child_by_field_name("left")
        parts.append(self.read(at))
        return {"of": "join", "parts": parts[::-1]}

    def _get_operator(self, node: Node) -> str:
        return self._source.tree.get_field_text(node, "operator")

    def _read_unary(self, node: Node) -> Json:
        inner = node.named_children[-1] if node.named_children else None
        if self._source.tree.get_node_text(node).startswith("!"):
            return {"of": "not", "value": self.read(inner)}
        return self._read_scalar(node)

    def _read_variable(self, node: Node) -> Json:
        return {"of": "variable", "name": self._source.tree.get_node_text(node).lstrip("$")}

    def _read_property(self, node: Node) -> Json:
        name = node.child_by_field_name("name")
        if name is None or name.type != "name":
            return _build_computed(node.type)
        object_ = self.read(node.child_by_field_name("object"))
        return {"of": "property", "object": object_, "name": self._source.tree.get_node_text(name)}

    def _read_static_property(self, node: Node) -> Json:
        name = self._source.tree.get_field_text(node, "name").lstrip("$")
        return {"of": "property", "object": {"of": "variable", "name": "this"}, "name": name}

    def _read_constant(self, node: Node) -> Json:
        value = self._source.read_value(node)
        if value is not COMPUTED:
            return value
        scope, name = (
            node.named_children[0],
            self._source.tree.get_node_text(node.named_children[-1]),
        )
        if scope.type not in _NAMES:
            return _build_computed(node.type)
        owner = self._source.resolve_class_name(self._source.tree.get_node_text(scope), node)
        is_name = name.lower() == "class"
        return owner if is_name else {"of": "constant", "class": owner, "name": name}

    def _read_name(self, node: Node) -> Json:
        written_name = self._source.tree.get_node_text(node)
        match written_name.upper():
            case "__DIR__":
                return {"of": "directory"}
            case "__FILE__":
                return {"of": "file"}
            case "__NAMESPACE__":
                return self._source.find_scope(node).namespace
            case "DIRECTORY_SEPARATOR" | "\\DIRECTORY_SEPARATOR":
                return "/"
        return {"of": "constant", "class": "", "name": written_name.lstrip("\\")}

    def _read_item(self, node: Node) -> Json:
        parts = list_code_children(node)
        if len(parts) != 2:  # noqa: PLR2004
            return _build_computed(node.type)
        return {"of": "item", "array": self.read(parts[0]), "key": self.read(parts[1])}

    def _read_choice(self, node: Node) -> Json:
        choice: dict[str, Json] = {
            "of": "choice",
            "condition": self.read(node.child_by_field_name("condition")),
            "no": self.read(node.child_by_field_name("alternative")),
        }
        body = node.child_by_field_name("body")
        return choice if body is None else {**choice, "yes": self.read(body)}

    def _read_inner(self, node: Node) -> Json:
        parts = list_code_children(node)
        return self.read(parts[-1]) if parts else None

    def _read_new(self, node: Node) -> Json:
        name = get_class_of_creation(self._source, node)
        return {"of": "new", "class": name} if name else _build_computed(node.type)

    def _read_assignment(self, node: Node) -> Json:
        left_side = node.child_by_field_name("left")
        if left_side is None or left_side.type != "variable_name":
            return _build_computed(node.type)
        name = self._source.tree.get_node_text(left_side).lstrip("$")
        value = self.read(node.child_by_field_name("right"))
        if node.type == "augmented_assignment_expression":
            joins = self._get_operator(node) == ".="
            parts = [self._read_variable(left_side), value]
            value = {"of": "join", "parts": parts} if joins else _build_computed(node.type)
        return {"of": "set", "name": name, "value": value}

    def _read_chain(self, node: Node) -> Json:
        chain = parse_chain(self._source.tree, node)
        if chain is None:
            return _build_computed(node.type)
        first: Node | None = node
        while first is not None and first.type in MEMBER_CALLS:
            first = first.child_by_field_name("object")
        expression: dict[str, Json] = {"of": "chain", "root": None, "class": ""}
        calls = [self._read_call(call) for call in chain.calls]
        if first is not None and first.type == "scoped_call_expression":
            expression |= self._read_scope(first)
        elif first is not None and first.type == "function_call_expression":
            function = first.child_by_field_name("function")
            if function is None or function.type not in _NAMES:
                expression["root"] = self.read(function)
            else:
                calls[0]["name"] = calls[0]["name"].rpartition("\\")[2]
        else:
            expression["root"] = self.read(first)
        return {**expression, "calls": calls}

    def _read_scope(self, call: Node) -> dict[str, Json]:
        scope = call.child_by_field_name("scope")
        if scope is None or scope.type not in _NAMES:
            return {"root": self.read(scope)}
        written_scope = self._source.tree.get_node_text(scope)
        if written_scope.lower() in {"self", "static", "parent"}:
            return {"class": written_scope.lower()}
        return {"class": self._source.resolve_class_name(written_scope, call)}

    def _read_call(self, call: Call) -> dict[str, Json]:
        runs = call.name.lower() in _RUNNING_CALLS
        values = [self.read(item.value, runs=runs) for item in call.arguments if not item.name]
        named_arguments = {
            item.name: self.read(item.value, runs=runs) for item in call.arguments if item.name
        }
        return {
            "name": call.name,
            "arguments": values,
            **({"named": named_arguments} if named_arguments else {}),
        }

    _readers: ClassVar[Mapping[str, Callable[[Expressions, Node], Json]]] = {
        **dict.fromkeys(("string", "heredoc", "nowdoc", "integer", "float"), _read_scalar),
        **dict.fromkeys(("boolean", "null"), _read_scalar),
        **dict.fromkeys(("parenthesized_expression", "cast_expression"), _read_inner),
        **dict.fromkeys(("error_suppression_expression", "reference_modifier"), _read_inner),
        **dict.fromkeys(LOADS, lambda self, node: {"of": "load", "path": self._read_inner(node)}),
        **dict.fromkeys(MEMBER_CALLS, _read_chain),
        **dict.fromkeys(("scoped_call_expression", "function_call_expression"), _read_chain),
        **dict.fromkeys(("name", "qualified_name", "relative_name"), _read_name),
        **dict.fromkeys(
            ("assignment_expression", "augmented_assignment_expression"), _read_assignment
        ),
        **dict.fromkeys(
            ("member_access_expression", "nullsafe_member_access_expression"), _read_property
        ),
        "scoped_property_access_expression": _read_static_property,
        "array_creation_expression": _read_array,
        "encapsed_string": _read_text,
        "binary_expression": _read_binary,
        "unary_op_expression": _read_unary,
        "variable_name": _read_variable,
        "class_constant_access_expression": _read_constant,
        "subscript_expression": _read_item,
        "conditional_expression": _read_choice,
        "object_creation_expression": _read_new,
    }


def _build_computed(reason: str) -> Json:
    return {"of": "computed", "why": reason}
