"""The reader of PHP statements that may create routes, as facts."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import (
    CLASS_ROLES,
    ClassLike,
    Method,
    PhpSource,
)
from rag_assets.systems.code_memory.languages.php.values import MEMBER_CALLS
from rag_assets.systems.code_memory.languages.tree import Node, get_first_child, list_field_children
from rag_assets.systems.code_memory.laravel.routes.expressions import LOADS, Expressions, Json
from rag_assets.systems.code_memory.laravel.settings import find_settings

FACADES: Final = frozenset({"Route", "Illuminate\\Support\\Facades\\Route"})
ROUTER_TYPES: Final = frozenset(
    {
        "Illuminate\\Routing\\Router",
        "Illuminate\\Routing\\RouteRegistrar",
        "Illuminate\\Contracts\\Routing\\Registrar",
        "Laravel\\Lumen\\Routing\\Router",
        "Router",
    }
)
VERBS: Final = frozenset({"get", "post", "put", "patch", "delete", "options"})
RESOURCES: Final = frozenset(
    {"resource", "resources", "apiresource", "apiresources", "singleton"}
    | {"softdeletableresources"}
)
DIRECT: Final = frozenset({"match", "any", "fallback", "redirect", "permanentredirect", "view"})
ROUTING: Final = (
    VERBS
    | RESOURCES
    | DIRECT
    | frozenset(
        {"as", "name", "prefix", "middleware", "withoutmiddleware", "controller", "domain", "group"}
        | {"namespace", "where", "scopebindings", "withoutscopedbindings", "can", "missing"}
        | {
            "pattern",
            "patterns",
            "resourceverbs",
            "resourceparameters",
            "singularresourceparameters",
        }
        | {"wherealpha", "wherealphanumeric", "wherenumber", "whereuuid", "whereulid", "wherein"}
        | {"addroute"}
    )
)
"""Router calls that create routes, in lower case."""

_LOADERS = frozenset({"loadroutesfrom", "withrouting", "loadroutesusing"} | {"withbroadcasting"})
_ROUTERS = frozenset(
    {"$router", "$route", "$r", "$this->router", "$app->router", "$this->app->router"}
    | {"$app['router']", "$this->app['router']", "app('router')", "app()->router"}
)
_OTHER_ROUTER_CALLS = frozenset(
    {"currentroutename", "current", "has", "is", "getroutes", "currentrouteaction", "input"}
    | {"currentrouteuses", "getcurrentroute", "dispatch", "bind", "model", "uses", "matched"}
    | {"currentroutenamed", "getroutesbyname", "hasmacro", "substitutebindings"}
)
"""Router calls for other purposes, in lower case."""

_MAX_RECEIVER_CHARACTERS = 40
_ROUTING_WORDS: Final = (
    *("Route::", "Route;", "outer", "outes", "Provider", "$r->", "$route->", "Route as"),
    *("require ", "require(", "require_once", "include ", "include(", "include_once", "{Route"),
    *("Route,", "Route}"),
)
"""A text without any of these words cannot create routes; most texts have none."""

_ROUTING_NODES = LOADS | MEMBER_CALLS | {"simple_parameter", "scoped_call_expression"}
_NAMES = frozenset({"name", "qualified_name", "relative_name"})


class RoutePositions:
    """The positions in a file of calls that may create routes, or load files that do."""

    def __init__(self, source: PhpSource) -> None:
        self._source = source
        self._routers: set[str] = set()
        self._starts: list[int] = []
        if any(word in source.text for word in _ROUTING_WORDS):
            nodes = source.tree.find_nodes(_ROUTING_NODES)
            self._starts = [node.start_byte for node in nodes if self._is_routing_position(node)]

    def __bool__(self) -> bool:
        return bool(self._starts) or any(map(is_provider, self._source.classes))

    def contains_position(self, node: Node) -> bool:
        """Return whether a node contains one of these positions."""
        at = bisect_left(self._starts, node.start_byte)
        return at < len(self._starts) and self._starts[at] < node.end_byte

    def _is_routing_position(self, node: Node) -> bool:
        if node.type in LOADS:
            return True
        tree, name = self._source.tree, self._source.tree.get_field_text(node, "name")
        if node.type == "simple_parameter":
            # A variable named like a parameter with a router type is a router in the whole file.
            written_type = tree.get_field_text(node, "type").lstrip("?")
            if written_type and self._source.resolve_class_name(written_type, node) in ROUTER_TYPES:
                self._routers.add(name)
            return False
        if node.type != "scoped_call_expression":
            return self._is_routing_member_call(node, name.lower())
        scope = node.child_by_field_name("scope")
        if scope is None or scope.type not in _NAMES:
            return False
        is_facade = self._source.resolve_class_name(tree.get_node_text(scope), node) in FACADES
        name = name.lower()
        return name not in _OTHER_ROUTER_CALLS if is_facade else name in {"routes", "userroutes"}

    def _is_routing_member_call(self, node: Node, name: str) -> bool:
        if name in _LOADERS:
            return True
        if name not in ROUTING and name != "routes":
            return False
        receiver = node.child_by_field_name("object")
        # A longer text is a chain, whose start is examined separately.
        is_short = receiver is not None and _get_node_size(receiver) <= _MAX_RECEIVER_CHARACTERS
        receiver_text = self._source.tree.get_node_text(receiver) if is_short else ""
        if name == "routes":
            return receiver_text == "$this"
        return receiver_text.replace('"', "'") in _ROUTERS or receiver_text in self._routers


def is_provider(class_like: ClassLike) -> bool:
    """Return whether the name of a parent class ends in `Provider`, as for service providers."""
    return any(parent.rpartition("\\")[2].endswith("Provider") for parent in class_like.parents)


_CLASS: Final = re.compile(r"\\?[A-Za-z_]\w*(?:\\[A-Za-z_]\w*)+(?:@\w+)?")
_ACTIONS: Final = VERBS | {"match", "any", "controller", "fallback"}
_PAIR: Final = 2


def iter_controller_targets(expression: Json) -> Iterator[tuple[str, str]]:
    """Yield the controllers to which an expression routes, each with the method or "".

    Names are fully qualified.
    """
    if not isinstance(expression, dict) or expression.get("of") != "chain":
        return
    for call in expression["calls"]:
        name, arguments = call["name"].lower(), call["arguments"]
        actions = arguments[-1:] if name in _ACTIONS else []
        if name in RESOURCES and arguments:
            first = arguments[0]
            is_array = isinstance(first, dict) and first.get("of") == "array"
            # `resources` gets an array of controllers, `resource` a name and a controller.
            actions = [item for _, item in first["items"]] if is_array else arguments[1:2]
        for action in actions:
            yield from _iter_targets_of_action(action)


def _iter_targets_of_action(action: Json) -> Iterator[tuple[str, str]]:
    if isinstance(action, str) and _CLASS.fullmatch(action):
        controller, _, method = action.lstrip("\\").partition("@")
        yield controller, method
    elif isinstance(action, dict) and action.get("of") == "array":
        keyed = {key: value for key, value in action["items"] if isinstance(key, str)}
        plain = [value for _, value in action["items"] if isinstance(value, str)]
        if isinstance(keyed.get("uses"), str):
            yield from _iter_targets_of_action(keyed["uses"])
        elif not keyed and len(plain) == len(action["items"]) == _PAIR:
            yield from _iter_targets_of_action("@".join(plain))


_ENTRIES = frozenset({"boot", "register", "map", "configurepackage"})
_OTHER_PROPERTIES = frozenset(
    {"listen", "subscribe", "policies", "bindings", "singletons", "observers"}
)
"""Properties of providers that do not affect routes."""

_OTHER_PROVIDER_CALLS = frozenset(
    {"mergeconfigfrom", "publishes", "loadviewsfrom", "loadmigrationsfrom", "loadtranslationsfrom"}
    | {"registerpolicies", "commands", "loadjsontranslationsfrom", "loadviewcomponentsas"}
)
_BRANCHES = frozenset({"if_statement", "else_if_clause", "else_clause"})
_VALUES = frozenset(
    {"array_creation_expression", "string", "encapsed_string", "binary_expression"}
    | {"class_constant_access_expression", "member_access_expression"}
)
_DECLARATIONS = frozenset({*CLASS_ROLES, "function_definition", "namespace_definition"})
_MAX_VALUE_CHARACTERS = 500
"""Maximum size of the value of a constant or property that may matter to a route."""


def iter_facts(source: PhpSource) -> Iterator[Fact]:
    """Yield facts of a file's constants, settings, and statements that may create routes."""
    for class_ in source.classes:
        for constant in class_.constants:
            value = source.read_value(constant.value)
            plain = isinstance(value, str | int) and not isinstance(value, bool)
            if plain and len(str(value)) <= _MAX_VALUE_CHARACTERS:
                values = {"name": constant.name, "value": value}
                yield source.tree.build_fact("constant", constant.node, class_.name, values)
    settings = find_settings(source)
    if settings is not None:
        node, values = settings
        yield source.tree.build_fact("configuration", node, "", values)
    marks = RoutePositions(source)
    if marks:
        yield from _Reader(source, marks).iter_facts()


class _Reader:
    """A reader of the statements of one file, block by block."""

    def __init__(self, source: PhpSource, marks: RoutePositions) -> None:
        self._source = source
        self._marks = marks
        self._expressions = Expressions(source, self._queue_block)
        self._blocks: deque[tuple[int, Node]] = deque()
        self._last = 0
        self._symbol = ""

    def iter_facts(self) -> Iterator[Fact]:
        """Yield facts of statements that may concern routes, and of the functions around them."""
        for class_ in self._source.classes:
            if is_provider(class_) or self._marks.contains_position(class_.node):
                for method in class_.methods:
                    if method.body is not None:
                        symbol = f"{class_.name}::{method.name}"
                        yield from self._iter_facts_of_function(symbol, method)
                yield from self._iter_property_facts(class_)
        for name, function in self._source.functions:
            if function.body is not None and self._marks.contains_position(function.body):
                yield from self._iter_facts_of_function(name, function)
        self._symbol = ""
        for statement in self._source.iter_statements():
            if statement.type not in _DECLARATIONS:
                yield from self._read_statement(0, statement)
        yield from self._iter_facts_of_queued_blocks()

    def _iter_property_facts(self, class_like: ClassLike) -> Iterator[Fact]:
        self._symbol = class_like.name
        for property_ in class_like.properties:
            node = property_.value
            if (
                node is None
                or property_.name in _OTHER_PROPERTIES
                or _get_node_size(node) > _MAX_VALUE_CHARACTERS
            ):
                continue
            value = self._expressions.read(node, runs=False)
            if not isinstance(value, dict) or value["of"] != "computed":
                yield self._build_fact(property_.node, "member", name=property_.name, value=value)

    def _iter_facts_of_function(self, symbol: str, method: Method) -> Iterator[Fact]:
        self._symbol = symbol
        body = method.body
        facts = [
            fact
            for statement in (body.named_children if body is not None else ())
            for fact in self._read_statement(0, statement)
        ]
        facts += self._iter_facts_of_queued_blocks()
        if facts or method.name.lower() in _ENTRIES:
            parameters = self._expressions.read_parameters(method.node)
            yield self._build_fact(method.node, "function", body, parameters=parameters)
            yield from facts

    def _iter_facts_of_queued_blocks(self) -> Iterator[Fact]:
        """Yield the statements of the blocks that were queued while other blocks were read."""
        while self._blocks:
            block, body = self._blocks.popleft()
            if body.type in {"compound_statement", "colon_block", "switch_block"}:
                for statement in body.named_children:
                    yield from self._read_statement(block, statement)
            elif body.type.endswith("_statement"):
                yield from self._read_statement(block, body)
            else:  # the expression of an arrow function
                yield from self._read_value_statement(block, body, "return", body)

    def _queue_block(self, body: Node) -> int:
        self._last += 1
        self._blocks.append((self._last, body))
        return self._last

    def _read_statement(self, block: int, node: Node) -> Iterator[Fact]:
        read = self._readers.get(node.type)
        if read is not None and (self._marks.contains_position(node) or self._may_matter(node)):
            yield from read(self, block, node)

    def _may_matter(self, node: Node) -> bool:
        """Return whether a statement that contains no routing call may still influence routes.

        It does if it sets a variable near such calls, returns a short value, or calls code that may
        create routes.
        """
        expression = get_first_child(node)
        if node.type not in {"expression_statement", "return_statement"} or expression is None:
            return False
        if expression.type in {"assignment_expression", "augmented_assignment_expression"}:
            return node.parent is not None and self._marks.contains_position(node.parent)
        if expression.type in _VALUES:
            return (
                node.type == "return_statement"
                and _get_node_size(expression) <= _MAX_VALUE_CHARACTERS
            )
        return self._has_routing_call(expression)

    def _has_routing_call(self, expression: Node) -> bool:
        chain = self._source.parse_chain(expression)
        if chain is None:
            return False
        if chain.static:
            owner = self._source.resolve_class_name(chain.root, expression)
            return not owner.startswith("Illuminate\\")
        if chain.root == "$this":
            return (
                len(chain.calls) == 1 and chain.calls[0].name.lower() not in _OTHER_PROVIDER_CALLS
            )
        registers = chain.calls[0].name.lower() == "register"
        return not chain.root or (registers and chain.root in {"$this->app", "$app"})

    def _read_expression(self, block: int, node: Node) -> Iterator[Fact]:
        expression = get_first_child(node)
        if expression is not None:
            op = "return" if node.type == "return_statement" else "do"
            yield from self._read_value_statement(block, node, op, expression)

    def _read_value_statement(
        self, block: int, node: Node, op: str, expression: Node
    ) -> Iterator[Fact]:
        before = len(self._blocks)
        value = self._expressions.read(expression)
        body = self._blocks[before][1] if len(self._blocks) > before else None
        yield self._build_fact(node, op, body, block=block, value=value)
        start, end = self._get_statement_span(node, body)
        for controller, action in iter_controller_targets(value):
            values = {"controller": controller, "action": action}
            yield Fact("routes_to", start, end, self._symbol, values)

    def _read_if(self, block: int, node: Node) -> Iterator[Fact]:
        branches: list[Json] = []
        otherwise = None
        for part in [node, *node.named_children]:
            body = part.child_by_field_name("body")
            if body is None or part.type not in _BRANCHES:
                continue
            if part.type == "else_clause":
                otherwise = self._queue_block(body)
                continue
            condition = self._expressions.read(part.child_by_field_name("condition"), runs=False)
            branches.append([condition, self._queue_block(body)])
        values = {} if otherwise is None else {"otherwise": otherwise}
        body = _get_body(node)
        yield self._build_fact(node, "if", body, block=block, branches=branches, **values)

    def _read_switch(self, block: int, node: Node) -> Iterator[Fact]:
        condition = {"of": "computed", "why": "a case"}
        cases = list_field_children(node, "body")
        branches = [[condition, self._queue_block(case)] for case in cases]
        body = node.child_by_field_name("body")
        yield self._build_fact(node, "if", body, block=block, branches=branches)

    def _read_loop(self, block: int, node: Node) -> Iterator[Fact]:
        body = _get_body(node)
        parts = [part for part in node.named_children if part != body and part.type != "comment"]
        if body is None or len(parts) != _PAIR:
            return
        variables = parts[1].named_children if parts[1].type == "pair" else [parts[1]]
        names = [self._source.tree.get_node_text(variable).lstrip("&$") for variable in variables]
        values = {
            "over": self._expressions.read(parts[0]),
            "key": names[0] if len(names) > 1 else "",
            "item": names[-1],
            "body": self._queue_block(body),
        }
        yield self._build_fact(node, "each", body, block=block, **values)

    def _read_block(self, block: int, node: Node) -> Iterator[Fact]:
        body = node if node.type == "compound_statement" else _get_body(node)
        if body is not None:
            repeats = node.type not in {"try_statement", "compound_statement"}
            number = self._queue_block(body)
            yield self._build_fact(node, "run", body, block=block, body=number, repeats=repeats)

    def _read_case(self, block: int, node: Node) -> Iterator[Fact]:
        for statement in node.named_children:
            if statement.type.endswith("_statement"):
                yield from self._read_statement(block, statement)

    _readers: ClassVar[Mapping[str, Callable[[_Reader, int, Node], Iterator[Fact]]]] = {
        "expression_statement": _read_expression,
        "return_statement": _read_expression,
        "if_statement": _read_if,
        "switch_statement": _read_switch,
        "case_statement": _read_case,
        "default_statement": _read_case,
        "foreach_statement": _read_loop,
        **dict.fromkeys(("compound_statement", "try_statement", "while_statement"), _read_block),
        **dict.fromkeys(("do_statement", "for_statement"), _read_block),
    }

    def _build_fact(self, node: Node, op: str, until: Node | None = None, **values: Json) -> Fact:
        start, end = self._get_statement_span(node, until)
        return Fact("routing", start, end, self._symbol, {"op": op, **values})

    def _get_statement_span(self, node: Node, body: Node | None) -> tuple[int, int]:
        """Return the start and end of a statement, without its body."""
        tree = self._source.tree
        start = tree.start(node)
        if body is None or body.start_byte <= node.start_byte:
            return start, tree.end(node)
        return start, start + len(tree.text[start : tree.start(body)].rstrip())


def _get_node_size(node: Node) -> int:
    return node.end_byte - node.start_byte


def _get_body(node: Node) -> Node | None:
    """Return the body of a statement: its last block or statement."""
    body = node.child_by_field_name("body")
    if body is not None:
        return body
    statements = [n for n in node.named_children if n.type.endswith(("_statement", "_block"))]
    return statements[-1] if statements else None
