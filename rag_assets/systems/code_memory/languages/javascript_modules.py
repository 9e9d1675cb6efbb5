"""JavaScript modules: their imports and exports, and the HTTP requests that they send."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.grammar import Binding, ResolvedName
from rag_assets.systems.code_memory.languages.tree import (
    Node,
    SyntaxTree,
    get_first_child,
    list_code_children,
    list_field_children,
)

_NAMES: Final = frozenset({"identifier", "shorthand_property_identifier_pattern"})
_MAX_TYPE_CHARACTERS: Final = 200
"""Maximum characters of a declared type or a parameter's name; a longer text is cut off."""
MAX_EVIDENCE_CHARACTERS: Final = 200
"""Maximum characters of the evidence of an import, an export or a request."""


def get_declared_type(tree: SyntaxTree, node: Node) -> str:
    """Return a declared type as written, in one line; "" if absent."""
    text = tree.get_field_text(node, "type").removeprefix(":")
    return " ".join(text[: 2 * _MAX_TYPE_CHARACTERS].split())[:_MAX_TYPE_CHARACTERS]


def read_parameters(tree: SyntaxTree, function: Node) -> tuple[tuple[str, str], ...]:
    """Return the parameters of a function, each with its type or ""."""
    single = function.child_by_field_name("parameter")
    if single is not None:
        return ((tree.get_node_text(single), ""),)
    parameters_node = function.child_by_field_name("parameters")
    return () if parameters_node is None else tuple(_read_parameters(tree, parameters_node))


def _read_parameters(tree: SyntaxTree, parameters_node: Node) -> Iterator[tuple[str, str]]:
    for node in parameters_node.named_children:
        if node.type == "comment":
            continue
        pattern = node.child_by_field_name("pattern") or node
        if pattern.type == "assignment_pattern":
            pattern = pattern.child_by_field_name("left") or pattern
        name = " ".join(tree.get_node_text(pattern)[:_MAX_TYPE_CHARACTERS].split()).removeprefix(
            "..."
        )
        yield name, get_declared_type(tree, node)


def iter_pattern_names(tree: SyntaxTree, pattern: Node) -> Iterator[str]:
    """Yield the names that a pattern binds."""
    pending = [pattern]
    while pending:
        node = pending.pop()
        if node.type in _NAMES:
            yield tree.get_node_text(node)
        elif node.type == "pair_pattern":
            value = node.child_by_field_name("value")
            pending += [] if value is None else [value]
        elif node.type in {"assignment_pattern", "object_assignment_pattern"}:
            left_side = node.child_by_field_name("left")
            pending += [] if left_side is None else [left_side]
        else:
            pending += reversed(node.named_children)


def read_imports(tree: SyntaxTree, node: Node) -> Iterator[tuple[Fact, dict[str, Binding]]]:
    """Yield the fact of the import in a node, if it has one, with the names that it binds.

    The values of the fact are `name`, the module as written, and `names`, a list of pairs: the name
    in the module (`default`, or `*` for everything) and the local name.
    """
    if node.type == "import_statement":
        names = list(_iter_imported_names(tree, node))
        yield from _iter_import_facts(tree, node, _get_imported_module(tree, node), names)
    elif node.type == "export_statement":
        clauses = [clause for clause in node.named_children if clause.type == "export_clause"]
        names = [
            pair
            for export_clause in clauses
            for pair in _iter_aliases(tree, export_clause, "export_specifier")
        ]
        for fact, _ in _iter_import_facts(tree, node, _get_imported_module(tree, node), names):
            yield fact, {}  # A re-export does not bind its name in this file.
    elif node.type == "variable_declarator":
        if source := get_required_module(tree, node):
            yield from _iter_import_facts(
                tree, node, source, list(_iter_destructured_names(tree, node))
            )
    elif node.type == "call_expression":
        function = node.child_by_field_name("function")
        if function is not None and function.type == "import":
            yield from _iter_import_facts(tree, node, _get_first_string_argument(tree, node), [])


def get_string(tree: SyntaxTree, node: Node | None) -> str:
    """Return the text of a string without its quotes; "" for any other node."""
    return tree.get_node_text(node)[1:-1] if node is not None and node.type == "string" else ""


def _get_imported_module(tree: SyntaxTree, node: Node) -> str:
    """Return the module that an import or export statement names; "" if it names none."""
    if module := get_string(tree, node.child_by_field_name("source")):
        return module
    for child in node.named_children:
        if child.type == "import_require_clause":
            return get_string(tree, child.child_by_field_name("source"))
    return ""


def get_required_module(tree: SyntaxTree, declarator: Node) -> str:
    """Return the module in `name = require("module")`; "" for any other declarator."""
    value = declarator.child_by_field_name("value")
    if value is not None and value.type == "member_expression":
        value = value.child_by_field_name("object")
    if value is None or value.type != "call_expression":
        return ""
    return (
        _get_first_string_argument(tree, value)
        if tree.get_field_text(value, "function") == "require"
        else ""
    )


def _get_first_string_argument(tree: SyntaxTree, call: Node) -> str:
    arguments = list_field_children(call, "arguments")
    return get_string(tree, arguments[0]) if arguments else ""


def _iter_import_facts(
    tree: SyntaxTree, node: Node, source: str, names: list[tuple[str, str]]
) -> Iterator[tuple[Fact, dict[str, Binding]]]:
    if not source:
        return
    values = {"name": source, "names": [list(pair) for pair in names]}
    bound = {
        local: Binding(ResolvedName("" if name == "*" else name, source)) for name, local in names
    }
    yield tree.build_fact("imports", node, "", values, MAX_EVIDENCE_CHARACTERS), bound


def _iter_imported_names(tree: SyntaxTree, statement: Node) -> Iterator[tuple[str, str]]:
    for clause in statement.named_children:
        if clause.type == "import_require_clause":
            yield "*", tree.get_node_text(get_first_child(clause))
        elif clause.type == "import_clause":
            for node in clause.named_children:
                yield from _read_import_clause(tree, node)


def _read_import_clause(tree: SyntaxTree, node: Node) -> Iterator[tuple[str, str]]:
    if node.type == "identifier":
        yield "default", tree.get_node_text(node)
    elif node.type == "namespace_import":
        yield "*", tree.get_node_text(get_first_child(node))
    elif node.type == "named_imports":
        yield from _iter_aliases(tree, node, "import_specifier")


def _iter_aliases(tree: SyntaxTree, clause: Node, specifier: str) -> Iterator[tuple[str, str]]:
    """Yield each name in a clause with its alias; a name without an alias is its own alias."""
    for node in clause.named_children:
        if node.type == specifier:
            name = tree.get_field_text(node, "name")
            alias = node.child_by_field_name("alias")
            yield name, tree.get_node_text(alias) if alias is not None else name


def _iter_destructured_names(tree: SyntaxTree, declarator: Node) -> Iterator[tuple[str, str]]:
    name = declarator.child_by_field_name("name")
    value = declarator.child_by_field_name("value")
    if name is None or value is None:
        return
    if name.type == "identifier":
        member = value.child_by_field_name("property")
        yield (
            tree.get_node_text(member) if value.type == "member_expression" else "*",
            tree.get_node_text(name),
        )
    elif name.type == "object_pattern" and value.type == "call_expression":
        for node in name.named_children:
            if node.type == "shorthand_property_identifier_pattern":
                yield tree.get_node_text(node), tree.get_node_text(node)
            elif node.type == "pair_pattern":
                local = node.child_by_field_name("value")
                if local is not None and local.type == "identifier":
                    yield tree.get_field_text(node, "key"), tree.get_node_text(local)


_CLAUSES: Final = frozenset({"export_clause", "namespace_export"})


@dataclass(frozen=True, slots=True)
class ExportedName:
    """A name that a module exports.

    Attributes:
        name: the name that importing modules use: `default`, `*` for everything in a module,
            `export=` for the module itself.
        local: its name in the file; "" if it has none.
        module: the module that it is re-exported from; "" for the file's own names.
        original: its name in that module.
    """

    name: str
    local: str = ""
    module: str = ""
    original: str = ""

    def build_fact_values(self) -> dict[str, str]:
        """Return the attributes that are not "", as the values of the fact `exports`."""
        values = {"name": self.name, "local": self.local, "module": self.module}
        values["original"] = self.original
        return {key: value for key, value in values.items() if value}


def find_exports(tree: SyntaxTree) -> dict[int, tuple[ExportedName, ...]]:
    """Return the names that each top-level statement exports, by the id of the statement's node."""
    exports: dict[int, tuple[ExportedName, ...]] = {}
    for node in tree.root.named_children:
        if node.type == "export_statement":
            exports[node.id] = tuple(_iter_exports_of_statement(tree, node))
        elif node.type == "expression_statement":
            exports[node.id] = tuple(_iter_assigned_exports(tree, get_first_child(node)))
    return {key: names for key, names in exports.items() if names}


def _iter_exports_of_statement(tree: SyntaxTree, node: Node) -> Iterator[ExportedName]:
    declaration = node.child_by_field_name("declaration")
    kinds = {child.type for child in node.children}
    if "default" in kinds:
        identifier = _find_default_identifier(node) if declaration is None else None
        name_node = identifier if declaration is None else declaration.child_by_field_name("name")
        yield ExportedName("default", tree.get_node_text(name_node))
    elif declaration is not None:
        for name in _iter_declared_names(tree, declaration):
            yield ExportedName(name, name)
    elif "namespace" in kinds:  # `export as namespace X` does not export a member of the module.
        return
    elif "=" in kinds:
        yield ExportedName("export=", tree.get_node_text(_find_default_identifier(node)))
    elif kinds & _CLAUSES or "*" in kinds:
        yield from _iter_exported_names(tree, node)


def _find_default_identifier(node: Node) -> Node | None:
    value = node.child_by_field_name("value") or next(iter(list_code_children(node)), None)
    return value if value is not None and value.type == "identifier" else None


def _iter_exported_names(tree: SyntaxTree, node: Node) -> Iterator[ExportedName]:
    source = _get_imported_module(tree, node)
    has_names = False
    for child in node.named_children:
        if child.type == "namespace_export":
            has_names = True
            yield ExportedName(_unquote(tree, get_first_child(child)), "", source, "*")
        elif child.type == "export_clause":
            has_names = True
            for specifier in child.named_children:
                yield from _read_export_specifier(tree, specifier, source)
    if source and not has_names:
        yield ExportedName("*", "", source, "*")


def _read_export_specifier(tree: SyntaxTree, node: Node, source: str) -> Iterator[ExportedName]:
    if node.type != "export_specifier":
        return
    name = _unquote(tree, node.child_by_field_name("name"))
    alias = node.child_by_field_name("alias")
    public = name if alias is None else _unquote(tree, alias)
    yield ExportedName(public, "", source, name) if source else ExportedName(public, name)


def _unquote(tree: SyntaxTree, node: Node | None) -> str:
    return get_string(tree, node) or tree.get_node_text(node)


def _iter_declared_names(tree: SyntaxTree, declaration: Node) -> Iterator[str]:
    if declaration.type == "ambient_declaration":
        for child in declaration.named_children:
            if child.type != "comment":
                yield from _iter_declared_names(tree, child)
                return
    elif declaration.type in {"lexical_declaration", "variable_declaration"}:
        for declarator in declaration.named_children:
            name = declarator.child_by_field_name("name")
            if name is not None:
                yield from iter_pattern_names(tree, name)
    elif declaration.type == "import_alias":
        yield tree.get_node_text(get_first_child(declaration))
    else:
        name = declaration.child_by_field_name("name")
        if name is not None:
            yield tree.get_node_text(name).split(".", 1)[0].strip()


def _iter_assigned_exports(tree: SyntaxTree, node: Node | None) -> Iterator[ExportedName]:
    """Yield the exports of `module.exports = …`, `exports.name = …`, also in `a = b = …`."""
    while node is not None and node.type == "assignment_expression":
        right = node.child_by_field_name("right")
        path = "".join(tree.get_field_text(node, "left").split())
        name = path.removeprefix("module.").removeprefix("exports")
        if path in {"module.exports", "exports"}:
            if path == "module.exports" and right is not None:
                yield from _iter_exports_of_module_value(tree, right)
        elif path.startswith(("module.exports.", "exports.")) and "." not in name[1:]:
            value = right if right is not None and right.type == "identifier" else None
            yield ExportedName(name[1:], tree.get_node_text(value))
        node = right


def _iter_exports_of_module_value(tree: SyntaxTree, value: Node) -> Iterator[ExportedName]:
    if value.type == "identifier":
        yield ExportedName("export=", tree.get_node_text(value))
    elif value.type != "object":
        if value.type != "assignment_expression":
            yield ExportedName("export=", "")
    else:
        yield from _iter_exports_of_object(tree, value)


def _iter_exports_of_object(tree: SyntaxTree, value: Node) -> Iterator[ExportedName]:
    for entry in value.named_children:
        if entry.type == "shorthand_property_identifier":
            yield ExportedName(tree.get_node_text(entry), tree.get_node_text(entry))
        elif entry.type == "pair":
            inner = entry.child_by_field_name("value")
            local = (
                tree.get_node_text(inner)
                if inner is not None and inner.type == "identifier"
                else ""
            )
            key = entry.child_by_field_name("key")
            if key is not None and key.type != "computed_property_name":
                yield ExportedName(_unquote(tree, key), local)
        elif entry.type == "method_definition":
            yield ExportedName(_unquote(tree, entry.child_by_field_name("name")))


_METHODS: Final = frozenset({"get", "post", "put", "patch", "delete", "head", "options"})
_FUNCTIONS: Final = frozenset({"fetch", "$fetch", "ofetch", "useFetch", "useLazyFetch", "axios"})
_CLIENTS: Final = frozenset({"axios", "$http", "$axios", "ky", "got", "superagent", "http", "api"})
_CALLABLE_CLIENTS: Final = _FUNCTIONS | {"$http", "$axios", "ky", "got"}
_MAKERS: Final = frozenset({"create", "extend"})
_HOLE: Final = "{}"
_Request: TypeAlias = tuple[str, str]
"""Method and path of a request."""


class RequestFinder:
    """A reader of the HTTP requests that one file sends.

    A request yields the fact `fetches` with `method` (GET by default; "" if it is a variable), and
    `path` as written, with `{}` for computed parts.
    """

    def __init__(self, tree: SyntaxTree) -> None:
        self._tree = tree
        self._base_urls: dict[str, str] = {}

    def find_requests(self, node: Node, symbol: str) -> Iterator[Fact]:
        """Yield the HTTP request that a node sends; `symbol` is the definition around it."""
        if node.type == "variable_declarator":
            self._record_client(node)
        if node.type != "call_expression":
            return
        arguments_node = node.child_by_field_name("arguments")
        function = node.child_by_field_name("function")
        if arguments_node is None or function is None or arguments_node.type != "arguments":
            return
        request = self._read_request(function, list_code_children(arguments_node))
        if request is not None:
            values = {"method": request[0], "path": request[1]}
            yield self._tree.build_fact("fetches", node, symbol, values, MAX_EVIDENCE_CHARACTERS)

    def _record_client(self, declarator: Node) -> None:
        """Record the base URL of an HTTP client: `const api = axios.create({ baseURL: … })`."""
        value = declarator.child_by_field_name("value")
        if value is None or value.type != "call_expression":
            return
        function = value.child_by_field_name("function")
        arguments_node = value.child_by_field_name("arguments")
        if function is None or function.type != "member_expression" or arguments_node is None:
            return
        maker = self._tree.get_field_text(function, "property")
        client = self._tree.get_field_text(function, "object")
        if maker in _MAKERS and client in _CLIENTS:
            options = get_first_child(arguments_node)
            url = _find_option_value(self._tree, options, "baseURL")
            url = url or _find_option_value(self._tree, options, "prefixUrl")
            name = self._tree.get_field_text(declarator, "name")
            self._base_urls[name] = (self._find_request_path(url) or "") if url is not None else ""

    def _read_request(self, function: Node, arguments: Sequence[Node]) -> _Request | None:
        if not arguments:
            return None
        if function.type == "identifier":
            name = self._tree.get_node_text(function)
            is_client = name in _CALLABLE_CLIENTS or name in self._base_urls
            return self._read_function_request(name, arguments) if is_client else None
        if function.type == "member_expression":
            verb = self._tree.get_field_text(function, "property")
            client = self._get_receiver_name(function.child_by_field_name("object"))
            return self._read_client_request(client, verb, arguments)
        return None

    def _read_client_request(
        self, client: str, verb: str, arguments: Sequence[Node]
    ) -> _Request | None:
        is_client = client in _CLIENTS or client in self._base_urls
        if verb in _METHODS and is_client:
            path = self._find_request_path(arguments[0])
            return None if path is None else (verb.upper(), self._join_base_url(client, path))
        if verb in _CALLABLE_CLIENTS and client in {"window", "self", "this"}:
            return self._read_function_request(verb, arguments)
        if verb == "request" and is_client:
            return self._read_function_request(client, arguments)
        return None

    def _get_receiver_name(self, node: Node | None) -> str:
        """Return the last name of a receiver: `$http` for `this.$http`; "" if it has none."""
        if node is None:
            return ""
        if node.type == "member_expression":
            return self._tree.get_field_text(node, "property")
        return self._tree.get_node_text(node) if node.type in {"identifier", "this"} else ""

    def _read_function_request(self, name: str, arguments: Sequence[Node]) -> _Request | None:
        first = arguments[0]
        options = arguments[1] if len(arguments) > 1 else None
        if first.type == "object":
            url = _find_option_value(self._tree, first, "url")
            if url is None:
                return None
            first, options = url, first
        path = self._find_request_path(first)
        if path is None:
            return None
        return self._find_request_method(options), self._join_base_url(name, path)

    def _join_base_url(self, client: str, path: str) -> str:
        base = self._base_urls.get(client, "")
        if not base or "://" in path:
            return path
        return f"{base.rstrip('/')}/{path.lstrip('/')}"

    def _find_request_method(self, options: Node | None) -> str:
        method_option = _find_option_value(self._tree, options, "method")
        if method_option is None:
            return "GET"
        return get_string(self._tree, method_option).upper()

    def _find_request_path(self, node: Node) -> str | None:
        """Return a request's path, with `{}` for computed parts; None without literal text."""
        parts = [_read_operand_text(self._tree, operand) for operand in _list_operands_of_sum(node)]
        if not any(literal for literal, _ in parts):
            return None
        return "".join(text for _, text in parts)


def _list_operands_of_sum(node: Node) -> list[Node]:
    """Return the operands of `a + b + c` in order; a node that is not a sum is its only operand."""
    operands: list[Node] = []
    pending = [node]
    while pending:
        at = pending.pop()
        operator = at.child_by_field_name("operator")
        if at.type == "binary_expression" and operator is not None and operator.type == "+":
            sides = [at.child_by_field_name("right"), at.child_by_field_name("left")]
            pending += [side for side in sides if side is not None]
        elif at.type == "parenthesized_expression" and at.named_child_count == 1:
            pending += at.named_children
        else:
            operands.append(at)
    return operands


def _read_operand_text(tree: SyntaxTree, node: Node) -> tuple[bool, str]:
    """Return whether an operand has literal text, and that text with `{}` for computed parts."""
    if node.type == "string":
        return True, get_string(tree, node)
    if node.type != "template_string":
        return False, _HOLE
    text, at = "", tree.start(node) + 1
    for child in node.named_children:
        if child.type == "template_substitution":
            text += tree.text[at : tree.start(child)] + _HOLE
            at = tree.end(child)
    text += tree.text[at : tree.end(node) - 1]
    return bool(text.replace(_HOLE, "")), text


def _find_option_value(tree: SyntaxTree, options: Node | None, name: str) -> Node | None:
    """Return the value of an option in an object literal; None if the option is missing."""
    if options is None or options.type != "object":
        return None
    for entry in options.named_children:
        if entry.type == "pair":
            key = entry.child_by_field_name("key")
            if name in {tree.get_node_text(key), get_string(tree, key)}:
                return entry.child_by_field_name("value")
    return None
