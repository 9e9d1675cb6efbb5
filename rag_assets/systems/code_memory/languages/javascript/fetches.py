"""HTTP requests that a module sends: `fetch`, axios and similar clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.javascript.imports import string_of
from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

_METHODS: Final = frozenset({"get", "post", "put", "patch", "delete", "head", "options"})
_FUNCTIONS: Final = frozenset({"fetch", "$fetch", "ofetch", "useFetch", "useLazyFetch", "axios"})
_CLIENTS: Final = frozenset({"axios", "$http", "$axios", "ky", "got", "superagent", "http", "api"})
_CALLED: Final = _FUNCTIONS | {"$http", "$axios", "ky", "got"}
_MAKERS: Final = frozenset({"create", "extend"})
_HOLE: Final = "{}"


class Fetches:
    """Finds the requests that one file sends.

    The fact `fetches` has `method` (GET by default; "" if it is a variable), `path` as written with
    `{}` for computed parts, and `client`, the name of the called function.
    """

    def __init__(self, tree: SyntaxTree) -> None:
        self._tree = tree
        self._bases: dict[str, str] = {}

    def of(self, node: Node, symbol: str) -> Iterator[Fact]:
        """Yield the request that a call sends, if it sends one."""
        if node.type == "variable_declarator":
            self._client(node)
        if node.type != "call_expression":
            return
        listed = node.child_by_field_name("arguments")
        function = node.child_by_field_name("function")
        if listed is None or function is None or listed.type != "arguments":
            return
        found = self._request(function, [a for a in listed.named_children if a.type != "comment"])
        if found is not None:
            method, path, client = found
            start = self._tree.start(node)
            end = min(self._tree.end(node), start + 200)
            values = {"method": method, "path": path, "client": client}
            yield Fact("fetches", start, end, symbol, values)

    def _client(self, declarator: Node) -> None:
        """Record the base URL of a client: `const api = axios.create({ baseURL: … })`."""
        value = declarator.child_by_field_name("value")
        if value is None or value.type != "call_expression":
            return
        function = value.child_by_field_name("function")
        listed = value.child_by_field_name("arguments")
        if function is None or function.type != "member_expression" or listed is None:
            return
        maker = self._tree.of(function.child_by_field_name("property"))
        client = self._tree.of(function.child_by_field_name("object"))
        if maker in _MAKERS and client in _CLIENTS:
            options = listed.named_child(0)
            base = _option(self._tree, options, "baseURL") or _option(
                self._tree, options, "prefixUrl"
            )
            name = self._tree.of(declarator.child_by_field_name("name"))
            self._bases[name] = (self._path(base) or "") if base is not None else ""

    def _request(self, function: Node, arguments: Sequence[Node]) -> tuple[str, str, str] | None:
        if not arguments:
            return None
        if function.type == "identifier":
            name = self._tree.of(function)
            known = name in _CALLED or name in self._bases
            return self._called(name, arguments) if known else None
        if function.type == "member_expression":
            verb = self._tree.of(function.child_by_field_name("property"))
            client = self._receiver(function.child_by_field_name("object"))
            return self._of_client(client, verb, arguments)
        return None

    def _of_client(
        self, client: str, verb: str, arguments: Sequence[Node]
    ) -> tuple[str, str, str] | None:
        known = client in _CLIENTS or client in self._bases
        if verb in _METHODS and known:
            path = self._path(arguments[0])
            return None if path is None else (verb.upper(), self._whole(client, path), client)
        if verb in _CALLED and client in {"window", "self", "this"}:
            return self._called(verb, arguments)
        return self._called(client, arguments) if verb == "request" and known else None

    def _receiver(self, node: Node | None) -> str:
        """Return the last name of a receiver: `axios`, `this.$http`, `Vue.prototype.$http`."""
        if node is None:
            return ""
        if node.type == "member_expression":
            return self._tree.of(node.child_by_field_name("property"))
        return self._tree.of(node) if node.type in {"identifier", "this"} else ""

    def _called(self, name: str, arguments: Sequence[Node]) -> tuple[str, str, str] | None:
        first = arguments[0]
        options = arguments[1] if len(arguments) > 1 else None
        if first.type == "object":
            url = _option(self._tree, first, "url")
            if url is None:
                return None
            first, options = url, first
        path = self._path(first)
        if path is None:
            return None
        return self._method(options), self._whole(name, path), name

    def _whole(self, client: str, path: str) -> str:
        base = self._bases.get(client, "")
        if not base or "://" in path:
            return path
        return f"{base.rstrip('/')}/{path.lstrip('/')}"

    def _method(self, options: Node | None) -> str:
        stated = _option(self._tree, options, "method")
        if stated is None:
            return "GET"
        return string_of(self._tree, stated).upper()

    def _path(self, node: Node) -> str | None:
        """Return a path with `{}` for computed parts; None if it has no literal part."""
        parts = [_part(self._tree, one) for one in _summands(node)]
        if not any(literal for literal, _ in parts):
            return None
        return "".join(text for _, text in parts)


def _summands(node: Node) -> list[Node]:
    """Return the operands of `a + b + c`, in order."""
    found: list[Node] = []
    todo = [node]
    while todo:
        one = todo.pop()
        operator = one.child_by_field_name("operator")
        if one.type == "binary_expression" and operator is not None and operator.type == "+":
            sides = [one.child_by_field_name("right"), one.child_by_field_name("left")]
            todo += [side for side in sides if side is not None]
        elif one.type == "parenthesized_expression" and one.named_child_count == 1:
            todo += one.named_children
        else:
            found.append(one)
    return found


def _part(tree: SyntaxTree, node: Node) -> tuple[bool, str]:
    """Return whether an operand has literal text, and its text with `{}` for computed parts."""
    if node.type == "string":
        return True, string_of(tree, node)
    if node.type != "template_string":
        return False, _HOLE
    text, at = "", tree.start(node) + 1
    for child in node.named_children:
        if child.type == "template_substitution":
            text += tree.text[at : tree.start(child)] + _HOLE
            at = tree.end(child)
    text += tree.text[at : tree.end(node) - 1]
    return bool(text.replace(_HOLE, "")), text


def _option(tree: SyntaxTree, options: Node | None, name: str) -> Node | None:
    """Return the value of an option in an object literal."""
    if options is None or options.type != "object":
        return None
    for entry in options.named_children:
        if entry.type == "pair":
            key = entry.child_by_field_name("key")
            if name in {tree.of(key), string_of(tree, key)}:
                return entry.child_by_field_name("value")
    return None
