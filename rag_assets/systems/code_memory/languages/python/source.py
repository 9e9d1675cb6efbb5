"""One Python file: its definitions, its imports, and the references of its names.

A reference is a name that is resolved as far as one file allows:
- `:Invoice.total` is defined in the file itself;
- `.models.Invoice`, `..core.Base` come from a relative import, with the same number of dots;
- `billing.models.Invoice` is absolute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from rag_assets.systems.code_memory.languages.tree import (
    Node,
    SyntaxTree,
    get_syntax_tree,
    is_comment,
)

IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})
_LAYOUTS = frozenset({"src", "lib", "python"})


@dataclass(frozen=True, slots=True)
class PythonImport:
    """One name that an import statement binds.

    Attributes:
        name: the imported name, dotted, without the dots of a relative import; ends with `*` for
            everything in a module.
        alias: the name that it is bound to; `*` for everything.
        level: number of dots in a relative import; 0 for an absolute import.
        member: whether the statement is `from … import …`; then the last part of the name is a
            member.
    """

    name: str
    alias: str
    level: int
    member: bool
    node: Node

    @property
    def reference(self) -> str:
        """Return the reference of the bound name; `import a.b` binds `a`."""
        if not self.member and "." in self.name and self.alias == self.name.partition(".")[0]:
            return self.alias
        return "." * self.level + self.name


def iter_imports(tree: SyntaxTree, statement: Node) -> Iterator[PythonImport]:
    """Yield the names that an import statement binds, in order."""
    name_nodes = [
        _read_name_and_alias(tree, child) for child in statement.children_by_field_name("name")
    ]
    if statement.type == "import_statement":
        for name, alias in name_nodes:
            yield PythonImport(name, alias or name.partition(".")[0], 0, False, statement)
        return
    module_name = "".join(tree.get_field_text(statement, "module_name").split())
    if statement.type == "future_import_statement":
        module_name = "__future__"
    module = module_name.lstrip(".")
    level, prefix = len(module_name) - len(module), f"{module}." if module else ""
    for name, alias in name_nodes:
        yield PythonImport(prefix + name, alias or name, level, True, statement)
    if any(child.type == "wildcard_import" for child in statement.children):
        yield PythonImport(f"{prefix}*", "*", level, True, statement)


def _read_name_and_alias(tree: SyntaxTree, node: Node) -> tuple[str, str]:
    if node.type == "aliased_import":
        alias = tree.get_field_text(node, "alias")
        return "".join(tree.get_field_text(node, "name").split()), alias
    return "".join(tree.get_node_text(node).split()), ""


def get_module_name(path: str, packages: Collection[str] = (), roots: Collection[str] = ()) -> str:
    """Return the dotted module name of a file.

    Args:
        path: POSIX path within the repository.
        packages: folders that have an `__init__.py`; "" is the repository's top folder.
        roots: folders that modules are imported from, such as the folder of `manage.py`; the
            folders of a namespace package start below such a folder.

    Returns:
        the name, without the `src` folder of a src layout; "" for `__init__.py` at a root.
    """
    folders, _, file = path.rpartition("/")
    stem = file.rsplit(".", 1)[0]
    names = [] if stem == "__init__" else [stem]
    folder = folders
    while folder and folder in packages:
        folder, _, last = folder.rpartition("/")
        names.append(last)
    above = [root for root in roots if not root or f"{folder}/".startswith(f"{root}/")]
    root = max(above, key=len, default="")
    remaining_parts = folder[len(root) :].strip("/").split("/") if folder != root else []
    if remaining_parts and remaining_parts[0] in _LAYOUTS:
        remaining_parts = remaining_parts[1:]
    if names and not (packages and folders in packages and not above):
        names.extend(reversed(remaining_parts))
    return ".".join(reversed(names))


def resolve_reference(reference: str, module: str, *, package: bool) -> str:
    """Return the absolute dotted name of a reference; "" if its dots leave the outermost package.

    Args:
        reference: a name in the form that this module describes.
        module: the file's module name.
        package: whether the file is the `__init__.py` of a package.
    """
    if reference.startswith(":"):
        return f"{module}.{reference[1:]}".strip(".")
    name = reference.lstrip(".")
    level = len(reference) - len(name)
    if not level:
        return name
    parts = module.split(".") if module else []
    up = level - 1 if package else level
    if up > len(parts):
        return ""
    return ".".join([*parts[: len(parts) - up], *([name] if name else [])])


Sort: TypeAlias = Literal["class", "method", "function"]
DEFINITIONS = frozenset({"class_definition", "function_definition"})


@dataclass(slots=True, eq=False)
class PythonDefinition:
    """A class or a function, with the definition around it.

    Attributes:
        node: the definition without its decorators.
        sort: class, function, or method for a function directly in a class.
        name, symbol: its own name; the dotted name that includes all definitions around it.
        within: the definition around it; None at top level.
        members: the definitions directly within it, in order.
    """

    node: Node
    sort: Sort
    name: str
    symbol: str
    within: PythonDefinition | None
    depth: int
    decorators: tuple[Node, ...]
    members: list[PythonDefinition] = field(default_factory=list)
    imports: list[PythonImport] = field(default_factory=list)

    @property
    def whole(self) -> Node:
        """Return the definition with its decorators."""
        above = self.node.parent
        return above if self.decorators and above is not None else self.node

    @property
    def last(self) -> Node:
        """Return the last token of its code; comments may follow that token in its block."""
        at = self.node
        while True:
            code = [child for child in at.children if not is_comment(child) and child.end_byte]
            if not code:
                return at
            at = code[-1]

    @property
    def public(self) -> bool:
        """Return whether the name does not start with an underscore, or is a dunder name."""
        special = self.name.startswith("__") and self.name.endswith("__")
        return special or not self.name.startswith("_")

    @property
    def body(self) -> Node | None:
        """Return the block of the definition; None if it is missing."""
        return self.node.child_by_field_name("body")


class PythonSource:
    """A Python file.

    Attributes:
        definitions: all classes and functions, in order.
        imports: all imports at top level, including conditional imports.
    """

    def __init__(self, text: str) -> None:
        self.tree = get_syntax_tree(text, "tree_sitter_python")
        self.definitions: list[PythonDefinition] = []
        self.imports: list[PythonImport] = []
        self._find_definitions()

    @property
    def text(self) -> str:
        """Return the text of the file."""
        return self.tree.text

    @cached_property
    def names(self) -> dict[str, str]:
        """Return the reference of each name that a top-level definition or import binds."""
        references: dict[str, str] = {}
        for definition in self.definitions:
            if definition.within is None:
                references.setdefault(definition.name, f":{definition.name}")
        for imported in self.imports:
            references.setdefault(imported.alias, imported.reference)
        return references

    @property
    def outermost(self) -> Iterator[PythonDefinition]:
        """Yield the definitions at top level."""
        return (definition for definition in self.definitions if definition.within is None)

    def iter_statements(self, block: Node | None = None) -> Iterator[tuple[Node, str]]:
        """Yield the statements of a block, including statements under a condition or in a loop.

        Args:
            block: the block of a class, or the module.

        Yields:
            each simple statement or definition, and the kind of the outermost compound statement
            around it (`if`, `for`, `try` …); "" if absent.
        """
        pending = [(child, "") for child in reversed((block or self.tree.root).named_children)]
        while pending:
            node, under = pending.pop()
            if node.type in _COMPOUND or node.type in _PARTS:
                inner = under or _COMPOUND.get(node.type, "")
                pending.extend((child, inner) for child in reversed(node.named_children))
            elif not is_comment(node) and (node.type in _STATEMENTS or node.type in DEFINITIONS):
                yield node, under

    def _find_definitions(self) -> None:
        pending: list[tuple[Node, PythonDefinition | None]] = [(self.tree.root, None)]
        while pending:
            node, around = pending.pop()
            inner = around
            if node.type in DEFINITIONS:
                inner = self._define(node, around)
            elif node.type in IMPORTS:
                imports = self.imports if around is None else around.imports
                imports.extend(iter_imports(self.tree, node))
                continue
            pending.extend((child, inner) for child in reversed(node.named_children))

    def _define(self, node: Node, around: PythonDefinition | None) -> PythonDefinition:
        name = self.tree.get_field_text(node, "name")
        depth = 0 if around is None else around.depth + 1
        # At greater depth, the total length of names would grow quadratically.
        prefix = "" if around is None else f"{around.symbol}." if depth < _MAX_DEPTH else "…."
        sort: Sort = "class" if node.type == "class_definition" else "function"
        if sort == "function" and around is not None and around.sort == "class":
            sort = "method"
        above = node.parent
        decorators: tuple[Node, ...] = ()
        if above is not None and above.type == "decorated_definition":
            decorators = tuple(n for n in above.named_children if n.type == "decorator")
        definition = PythonDefinition(node, sort, name, prefix + name, around, depth, decorators)
        self.definitions.append(definition)
        if around is not None:
            around.members.append(definition)
        return definition


_MAX_DEPTH = 30
_COMPOUND = {
    "if_statement": "if",
    "for_statement": "for",
    "while_statement": "while",
    "try_statement": "try",
    "with_statement": "with",
    "match_statement": "match",
}
_PARTS = frozenset(
    {"block", "else_clause", "elif_clause", "except_clause", "finally_clause", "case_clause"}
    | {"except_group_clause"}
)
_STATEMENTS = frozenset(
    {"expression_statement", "decorated_definition", "return_statement", "delete_statement"}
    | {"type_alias_statement", "pass_statement", "raise_statement", "assert_statement"}
    | {"import_statement", "import_from_statement", "future_import_statement"}
    | {"global_statement", "print_statement", "exec_statement"}
)
