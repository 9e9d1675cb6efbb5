"""Names that depend on the path of their file: their spellings in texts, and their resolution.

Symbols and edges are stored per text, so that equal texts in two files share one set. The text of a
file qualifies PHP names; the path of the file qualifies names in Python, JavaScript, Go and Rust.
These names are stored as the text spells them, and qualified with the path of each document that
contains the text:

| spelling | in | means |
|---|---|---|
| `:Invoice.total` | Python, JavaScript | a name defined in the file itself |
| `.models.Invoice`, `..core.base` | Python | relative to the file's package |
| `billing.models.Invoice` | Python | from some root of the repository |
| `./money#format`, `../lib/money#format` | JavaScript | relative to the file's folder |
| `@/lib/money#format` | JavaScript | from some root of the repository |
| `:billing.Invoice.Total` | Go | a name in the file's package, which is its folder |
| `internal/billing#Invoice.Total` | Go | a package's folder from some root of the repository |
| `./lines#count`, `../store#Repo.load` | Rust | a module below the file's own, or next to it |
| `@/tax#Rule.new` | Rust | from the root of the crate |
| `scoped:Billing::Invoice` | other languages | the nearest type with a name that ends like this |
| `called:invoice.total` | documents | the definition with this short name, if there is only one |
| `as::Bill`, `as:.models.Bill` | re-exports | a re-exported name, and its target |
| `config:.vat` | PHP, Python | a setting, named after its file: `config:billing.vat` |
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from rag_assets.systems.code_memory.symbols.names import (
    CONFIG,
    OWN_SETTING_PREFIX,
    build_setting_name,
    iter_setting_names_in_file,
    list_route_keys,
    list_search_keys,
    list_setting_keys,
)

NameStyle: TypeAlias = Literal[
    "qualified", "python", "javascript", "java", "swift", "go", "rust", "sql", "none"
]
"""How the names in a file are qualified.

The text of the file qualifies them in PHP ("qualified"), Java, Swift and SQL, and its path in the
other languages. "none": other files cannot use the names of this file.
"""

OWN_PREFIX: Final = ":"
SHORT_NAME_PREFIX: Final = "called:"
SCOPED_PREFIX: Final = "scoped:"
"""Prefix of the name of a type as written in a language without its own reader."""
REEXPORT_PREFIX: Final = "as:"
ANONYMOUS_PREFIX: Final = "class@"
"""Prefix of the name of an anonymous class; its line number follows."""
EVERYTHING: Final = "*"
"""Last part of a name that stands for everything in a module."""
_ROUTE: Final = "route:"
_TABLE: Final = "table:"

_PYTHON_SUFFIXES: Final = (".py", ".pyi")
_JAVASCRIPT_SUFFIXES: Final = (
    *(".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte"),
)
_STYLES_BY_SUFFIX: Final[dict[str, NameStyle]] = {
    ".java": "java",
    ".swift": "swift",
    ".go": "go",
    ".rs": "rust",
    ".sql": "sql",
}
_MAX_CACHED_RESULTS: Final = 32_768
"""Maximum number of paths, and of names, with cached results."""
_SOURCE_FOLDERS: Final = frozenset({"src", "lib", "python", "js", "app", "packages"})
"""Folders that may be the root of a name for files next to them, not only within them."""

_STANDARD_MODULES: Final = sys.stdlib_module_names
_ALIASES: Final = ("@/", "~/", "#/", "$lib/", "src/")
_MAX_LEVELS: Final = 5
"""Maximum number of folders that a relative name may ascend."""

_RELATIVE_PREFIXES: Final = (
    "./",
    *("../" * level for level in range(1, _MAX_LEVELS + 1)),
    "@/",
    "~/",
    "",
)
_MAX_SPELLING_PARTS: Final = 6
"""Maximum number of parts in a spelling of a name."""


@lru_cache(_MAX_CACHED_RESULTS)
def get_name_style(path: str) -> NameStyle:
    """Return how names in a file are qualified, by the file's suffix.

    It is "none" for files whose names are stored as their text states them, such as PHP.
    """
    if path.endswith(_PYTHON_SUFFIXES):
        return "python"
    if path.endswith(_JAVASCRIPT_SUFFIXES):
        return "javascript"
    return _STYLES_BY_SUFFIX.get(posixpath.splitext(path)[1], "none")


def qualify_defined_name(local: str, path: str) -> str:
    """Return the repository-wide name of a definition in a file."""
    style = get_name_style(path)
    if style == "python":
        return f"{_get_python_module(path)}.{local}" if _get_python_module(path) else local
    if style == "go":
        package, _, rest = local.partition(".")
        return f"{posixpath.dirname(path) or package}#{rest}"
    if style == "rust":
        return f"{_get_rust_module(path)}#{local.replace('::', '.')}"
    return f"{get_module_stem(path)}#{local}" if style == "javascript" else local


def resolve_spelling(spelling: str, path: str) -> str:
    """Return the repository-wide name for a spelling in a file; "" if it leaves the repository."""
    if spelling.startswith(REEXPORT_PREFIX):
        return REEXPORT_PREFIX + resolve_spelling(spelling.removeprefix(REEXPORT_PREFIX), path)
    if spelling.startswith(OWN_SETTING_PREFIX):
        return build_setting_name(spelling.removeprefix(OWN_SETTING_PREFIX), path)
    if spelling.startswith(OWN_PREFIX):
        return qualify_defined_name(spelling[1:], path)
    return (
        spelling
        if spelling.startswith(SHORT_NAME_PREFIX)
        else _resolve_relative_name(spelling, path)
    )


def _resolve_relative_name(spelling: str, path: str) -> str:
    style = get_name_style(path)
    if style == "python" and spelling.startswith("."):
        return _resolve_relative(spelling, path)
    if style in {"javascript", "rust"} and spelling.startswith("."):
        module, _, name = spelling.partition("#")
        folder = _get_rust_module(path) if style == "rust" else posixpath.dirname(path)
        place = posixpath.normpath(posixpath.join(folder, module))
        return "" if place.startswith("..") else f"{get_module_stem(place)}#{name}"
    return spelling


@lru_cache(_MAX_CACHED_RESULTS)
def depends_on_path(name: str) -> bool:
    """Return whether a name is only resolved with the paths of the files that may define it."""
    if name.startswith((SHORT_NAME_PREFIX, SCOPED_PREFIX)):
        return True
    if name.startswith((REEXPORT_PREFIX, CONFIG)) or f"#{ANONYMOUS_PREFIX}" in name:
        return False
    plain = not name.startswith((_ROUTE, _TABLE)) and "\\" not in name and "/" not in name[:1]
    return plain and ("#" in name or ("." in name and "::" not in name and ":" not in name))


def find_definition(name: str, path: str, defined: Iterable[str]) -> str | None:
    """Return the definition that a name in a file refers to; None if no candidate matches.

    The name starts at some root: a folder above the file, or a source folder next to it. The
    nearest root with a match wins.

    Args:
        name: `billing.models.Bill`, `@/lib/money#format`; or `called:` with a short name.
        path: the path of the file that uses the name; for `scoped:`, the using definition.
        defined: qualified names of the candidate definitions, which share a short name.
    """
    if name.startswith(SHORT_NAME_PREFIX):
        candidates = list(defined)
        return candidates[0] if len(candidates) == 1 else None
    candidates = find_candidates(name, defined)
    if name.startswith(SCOPED_PREFIX):
        return _find_nearest_type(name, path, candidates)
    mark, name = _split_alias(name)
    is_standard = name.partition(".")[0] in _STANDARD_MODULES
    if mark == "." and is_standard and get_name_style(path) == "python":
        return None
    roots = {full.removesuffix(name).rstrip(mark).replace(mark, "/"): full for full in candidates}
    near = [root for root in roots if _is_near_root(root, path)]
    return roots[max(near, key=len)] if near else None


def find_candidates(name: str, defined: Iterable[str]) -> list[str]:
    """Return the definitions that a name may refer to, whichever file uses it.

    Args:
        name: the name as written, or `called:` with a short name.
        defined: qualified names of the candidate definitions, which share a short name.
    """
    if name.startswith(SHORT_NAME_PREFIX):
        return [*defined]
    if name.startswith(SCOPED_PREFIX):
        name = name.removeprefix(SCOPED_PREFIX)
        return [full for full in defined if _is_scoped(full) and f"::{full}".endswith(f"::{name}")]
    mark, name = _split_alias(name)
    return [full for full in defined if full == name or full.endswith(mark + name)]


def _find_nearest_type(name: str, user: str, types: Iterable[str]) -> str | None:
    """Return the type that a name in a definition refers to; None if two are equally near.

    A type in a scope around the definition hides all others, as it does for compilers. Otherwise
    the nearest type is the one that shares the most scopes with the definition, because imports of
    scopes are not read.

    Args:
        name: the name with the prefix `scoped:`.
        user: the definition that uses it.
        types: the types whose names end with it.
    """
    around, ending = user.split("::"), f"::{name.removeprefix(SCOPED_PREFIX)}"
    nearness: dict[str, tuple[bool, int]] = {}
    for full in types:
        scope = f"::{full}".removesuffix(ending).split("::")[1:]
        shared = len(posixpath.commonprefix([scope, around]))
        if full != user:
            nearness[full] = shared == len(scope), shared
    most = max(nearness.values(), default=None)
    best = [full for full, near in nearness.items() if near == most]
    return best[0] if len(best) == 1 else None


def _is_scoped(name: str) -> bool:
    """Return whether a name has the form `A::b` of languages without their own reader."""
    return not any(mark in name for mark in "\\.#/") and ":" not in name.replace("::", "")


def _split_alias(name: str) -> tuple[str, str]:
    """Return the separator of a name's parts, and the name without a path alias such as `@/`."""
    if "#" not in name:
        return ".", name
    for alias in _ALIASES:
        name = name.removeprefix(alias)
    return "/", name


def _is_near_root(root: str, path: str) -> bool:
    above, _, last = root.rpartition("/")
    is_within = not root or path.startswith(f"{root}/")
    is_adjacent = last in _SOURCE_FOLDERS and (not above or path.startswith(f"{above}/"))
    return is_within or is_adjacent


def ends_with_name(defined: str, name: str) -> bool:
    """Return whether a definition's name is `name`, or ends with it after a separator."""
    return defined == name or defined.endswith((f".{name}", f"/{name}", f":{name}"))


def iter_spellings(name: str, short: str) -> Iterator[str]:
    """Yield the spellings by which texts may refer to a definition with this short name."""
    if name.startswith(REEXPORT_PREFIX):
        targets = iter_spellings(name.removeprefix(REEXPORT_PREFIX), short)
        yield from (
            REEXPORT_PREFIX + target
            for target in targets
            if not target.startswith(SHORT_NAME_PREFIX)
        )
        return
    yield name
    yield SHORT_NAME_PREFIX + short
    if _is_scoped(name):
        parts = name.split("::")[-_MAX_SPELLING_PARTS:]
        yield from (SCOPED_PREFIX + "::".join(parts[at:]) for at in range(len(parts)))
    if name.startswith(_TABLE):
        yield from (SHORT_NAME_PREFIX + key for key in list_search_keys(name))
    elif name.startswith(CONFIG):
        yield from (SHORT_NAME_PREFIX + key for key in list_setting_keys(name.removeprefix(CONFIG)))
    elif name.startswith(_ROUTE):
        methods, _, path = name.removeprefix(_ROUTE).partition(" ")
        keys = list_route_keys(tuple(methods.split("|")), path[path.find("/") :], "")
        yield from (SHORT_NAME_PREFIX + key for key in keys)
    elif "#" in name:
        yield from _iter_javascript_spellings(name)
    elif "." in name and "\\" not in name:
        yield from _iter_python_spellings(name)


def iter_own_spellings(name: str) -> Iterator[str]:
    """Yield the spellings of a definition in its own file, as edges store them."""
    if name.startswith(REEXPORT_PREFIX):
        yield REEXPORT_PREFIX + OWN_PREFIX + re.split(r"[#.]", name)[-1]
        return
    if name.startswith(CONFIG):
        yield from iter_local_names(name)
        return
    yield name
    if depends_on_path(name):
        yield from (OWN_PREFIX + local for local in iter_local_names(name) if local != name)


def iter_local_names(name: str) -> Iterator[str]:
    """Yield the names that a definition may have in the text of its file."""
    yield name
    if name.startswith(CONFIG):
        yield from iter_setting_names_in_file(name)
        return
    if "#" in name:
        module, _, local = name.rpartition("#")
        yield local
        yield from (f"{package}.{local}" for package in _iter_go_package_names(module))
        if "." in local:
            yield local.replace(".", "::")
    elif "." in name and "\\" not in name:
        parts = name.split(".")
        yield from (
            ".".join(parts[at:])
            for at in range(max(1, len(parts) - _MAX_SPELLING_PARTS), len(parts))
        )


def get_module_stem(path: str) -> str:
    """Return the path of a JavaScript module without the endings that imports may omit."""
    suffix = next(
        (known_suffix for known_suffix in _JAVASCRIPT_SUFFIXES if path.endswith(known_suffix)), ""
    )
    return path.removesuffix(suffix).removesuffix("/index").rstrip("/")


def find_go_folder(path: str) -> str:
    """Return the folder of a Go package in its repository, according to its import path.

    Args:
        path: `github.com/acme/shop/internal/tax`.

    Returns:
        `internal/tax`; for the root of a module, the module's own name; "" for the standard
            library.
    """
    host, *parts = path.split("/")
    if "." not in host:
        return ""
    root, folders = parts[: _ROOT_PARTS.get(host, 1)], parts[_ROOT_PARTS.get(host, 1) :]
    if folders and _VERSION.fullmatch(folders[0]):
        folders.pop(0)
    return "/".join(folders or root[-1:])


_ROOT_PARTS: Final = {"github.com": 2, "gitlab.com": 2, "bitbucket.org": 2, "codeberg.org": 2}
"""Number of parts that name the repository in an import path, after its host."""

_VERSION: Final = re.compile(r"v\d+")


def _iter_go_package_names(folder: str) -> Iterator[str]:
    """Yield the names that the package in a folder may have."""
    *above, last = folder.rsplit("/", 2)[-2:]
    names = {last, "main", last.removeprefix("go-").removesuffix("-go").replace("-", "")}
    yield from sorted(names | set(above if _VERSION.fullmatch(last) else ()))


def _get_rust_module(path: str) -> str:
    folder, _, file = path.removesuffix(".rs").rpartition("/")
    return folder if file in {"mod", "lib", "main"} else f"{folder}/{file}".lstrip("/")


def _get_python_module(path: str) -> str:
    suffix = next(
        (known_suffix for known_suffix in _PYTHON_SUFFIXES if path.endswith(known_suffix)), ""
    )
    path = path.removesuffix(suffix)
    return path.removesuffix("/__init__").removesuffix("__init__").replace("/", ".").strip(".")


def _resolve_relative(spelling: str, path: str) -> str:
    name = spelling.lstrip(".")
    levels = len(spelling) - len(name)
    package = _get_python_module(path).split(".")
    is_package = path.rpartition("/")[2].startswith("__init__.")
    kept_count = len(package) - levels + is_package
    if kept_count < 0:
        return ""  # The name points outside the repository.
    return ".".join([*filter(None, package[:kept_count]), name])


def _iter_python_spellings(name: str) -> Iterator[str]:
    parts = name.split(".")
    for at in range(max(0, len(parts) - _MAX_SPELLING_PARTS), len(parts)):
        rest = ".".join(parts[at:])
        yield from (
            f"{'.' * level}{rest}"
            for level in range(_MAX_LEVELS + 1)
            if level or at < len(parts) - 1
        )
        yield OWN_PREFIX + rest


def _iter_javascript_spellings(name: str) -> Iterator[str]:
    module, _, local = name.partition("#")
    yield from (
        OWN_PREFIX + local_name for local_name in iter_local_names(name) if local_name != name
    )
    parts = module.split("/")
    for at in range(max(0, len(parts) - _MAX_SPELLING_PARTS), len(parts) + 1):
        rest = "/".join(parts[at:])
        yield from (f"{before}{rest}#{local}" for before in _RELATIVE_PREFIXES if before or rest)
