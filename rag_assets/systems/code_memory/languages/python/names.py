"""Names in Python: what imports bind, what references refer to, and the module names of paths.

A reference is a name that is resolved as far as one file allows:

- `:Invoice.total` is defined in the file itself;
- `.models.Invoice`, `..core.Base` come from a relative import, with the same number of dots;
- `billing.models.Invoice` is absolute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_assets.systems.code_memory.languages.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})
_LAYOUTS = frozenset({"src", "lib", "python"})


@dataclass(frozen=True, slots=True)
class Import:
    """One name that an import statement binds.

    Attributes:
        name: the imported name, dotted, without the dots of a relative import; ends with `*` for
            everything in a module.
        alias: the name that it is bound to; `*` for everything.
        level: number of dots in a relative import; 0 for an absolute import.
        member: whether the statement is `from … import …`; then the last part of the name is a
            member.
        node: the statement.
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


def imports_of(tree: SyntaxTree, statement: Node) -> Iterator[Import]:
    """Yield the names that an import statement binds, in order."""
    if statement.type == "import_statement":
        for child in statement.children_by_field_name("name"):
            name, alias = _named(tree, child)
            yield Import(name, alias or name.partition(".")[0], 0, False, statement)
        return
    module, level = _module(tree, statement)
    prefix = f"{module}." if module else ""
    for child in statement.children_by_field_name("name"):
        name, alias = _named(tree, child)
        yield Import(prefix + name, alias or name, level, True, statement)
    if any(child.type == "wildcard_import" for child in statement.children):
        yield Import(f"{prefix}*", "*", level, True, statement)


def _module(tree: SyntaxTree, statement: Node) -> tuple[str, int]:
    if statement.type == "future_import_statement":
        return "__future__", 0
    node = statement.child_by_field_name("module_name")
    text = "".join(tree.of(node).split())
    module = text.lstrip(".")
    return module, len(text) - len(module)


def _named(tree: SyntaxTree, node: Node) -> tuple[str, str]:
    if node.type == "aliased_import":
        alias = tree.of(node.child_by_field_name("alias"))
        return "".join(tree.of(node.child_by_field_name("name")).split()), alias
    return "".join(tree.of(node).split()), ""


def module_of(path: str, packages: Collection[str] = (), roots: Collection[str] = ()) -> str:
    """Return the dotted module name of a file.

    Args:
        path: POSIX path within the repository.
        packages: folders that have an `__init__.py`; "" is the repository's top folder.
        roots: folders that modules are imported from, such as the folder of `manage.py`; the
            folders of a namespace package start below such a folder.

    Returns:
        a name that does not include the `src` folder of a src layout; "" for `__init__.py` at a
            root.
    """
    folders, _, file = path.rpartition("/")
    stem = file.rsplit(".", 1)[0]
    names = [] if stem == "__init__" else [stem]
    folder = folders
    while folder and folder in packages:
        folder, _, last = folder.rpartition("/")
        names.append(last)
    above = [root for root in roots if _within(folder, root)]
    root = max(above, key=len, default="")
    left = folder[len(root) :].strip("/").split("/") if folder != root else []
    if left and left[0] in _LAYOUTS:
        left = left[1:]
    if names and not (packages and folders in packages and not above):
        names.extend(reversed(left))
    return ".".join(reversed(names))


def absolute(reference: str, module: str, *, package: bool) -> str:
    """Return the absolute dotted name of a reference; "" if it leaves the outermost package.

    Args:
        reference: see this module.
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


def _within(folder: str, root: str) -> bool:
    return not root or folder == root or folder.startswith(f"{root}/")
