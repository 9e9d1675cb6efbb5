"""Re-exported names: `export { X } from`, `export *`, `pub use`, or an import in Python.

A re-exported name stands for its target. An edge of the kind `hands_on` records this. Both of its
ends have the prefix `as:`, so that searches for callers and importers do not match them. `as:*`
stands for everything in a module. Edges also record the effect of `__all__` in Python: `*` excludes
`log` if there is `as::!log`, includes `_bill` if there is `as::+_bill`, and excludes the names that
the module itself imports by `*` if there is `as::!*`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.relations.edge_rules import spell_module_name, spell_rust_path
from rag_assets.systems.code_memory.symbols.names import PACKAGE
from rag_assets.systems.code_memory.symbols.naming import (
    EVERYTHING,
    OWN_PREFIX,
    REEXPORT_PREFIX,
    NameStyle,
    find_definition,
)

DEFAULT: Final = "default"
EXCLUDED: Final = "!"
"""Marks a name that `*` of its module excludes although it looks public."""

INCLUDED: Final = "+"
"""Marks a name that `*` of its module includes only because `__all__` lists it."""
_Stated: TypeAlias = tuple[Fact, str, str]
"""A fact, the re-exported name, and its target."""


def find_reexports(facts: Iterable[Fact], names: NameStyle) -> Iterator[tuple[Fact, str, str]]:
    """Yield the re-exports of a file: the fact that states each, its alias, and its target.

    Args:
        names: how names in the file are qualified.
    """
    find_style_reexports = _READERS.get(names)
    for fact, name, target in () if find_style_reexports is None else find_style_reexports(facts):
        if name and target and not target.startswith(PACKAGE):
            yield fact, REEXPORT_PREFIX + OWN_PREFIX + name, REEXPORT_PREFIX + target


def _find_python_reexports(facts: Iterable[Fact]) -> Iterator[_Stated]:
    """Yield the top-level imports of a Python module, whose names others can import from it."""
    all_facts = [*facts]
    exports_fact = next((fact for fact in all_facts if fact.kind == "exports"), None)
    names = dict.fromkeys([] if exports_fact is None else map(str, exports_fact.values["names"]))
    for fact in all_facts:
        values = fact.values
        if fact.kind != "imports" or fact.symbol or not values.get("member"):
            continue
        name, alias, level = str(values["name"]), str(values["alias"]), int(values["level"])
        inner = level or name.partition(".")[0] not in sys.stdlib_module_names
        if inner and (not alias.startswith("_") or alias in names):
            yield fact, alias, "." * level + name
    if exports_fact is not None:
        for mark in _iter_star_limits(all_facts, names):
            yield exports_fact, mark, OWN_PREFIX + mark


def _iter_star_limits(facts: Sequence[Fact], listed: Mapping[str, None]) -> Iterator[str]:
    """Yield the marks of names that `__all__` adds to or excludes from `*` of a module."""
    own = {fact.symbol for fact in facts if fact.kind == "declares" and "." not in fact.symbol}
    own |= {
        str(fact.values["alias"]) for fact in facts if fact.kind == "imports" and not fact.symbol
    }
    yield from (
        EXCLUDED + name
        for name in sorted(own - {*listed})
        if name == EVERYTHING or not name.startswith("_")
    )
    # Names imported by `*` are known only if `__all__` lists them.
    yield from (INCLUDED + name for name in listed if EVERYTHING in own or name.startswith("_"))


def _find_javascript_reexports(facts: Iterable[Fact]) -> Iterator[_Stated]:
    all_facts = [*facts]
    imported = {
        str(local): spell_module_name(str(fact.values["name"]), str(name))
        for fact in all_facts
        if fact.kind == "imports"
        for name, local in fact.values.get("names", ())
    }
    for fact in all_facts:
        if fact.kind != "exports":
            continue
        values = fact.values
        name, local = str(values["name"]), str(values.get("local", ""))
        name = DEFAULT if name == "export=" else name
        if module := str(values.get("module", "")):
            yield fact, name, spell_module_name(module, str(values.get("original", "")))
        elif local in imported:
            yield fact, name, imported[local]
        elif local and local != name:
            yield fact, name, OWN_PREFIX + local


def _find_rust_reexports(facts: Iterable[Fact]) -> Iterator[_Stated]:
    for fact in facts:
        if fact.kind != "imports" or fact.symbol or not fact.values.get("public"):
            continue
        for path, local in fact.values.get("names", ()):
            if local != "_":
                yield (
                    fact,
                    str(local),
                    spell_rust_path(f"{path}::*" if local == EVERYTHING else str(path)),
                )


_READERS: Final[Mapping[NameStyle, Callable[[Iterable[Fact]], Iterator[_Stated]]]] = {
    "python": _find_python_reexports,
    "javascript": _find_javascript_reexports,
    "rust": _find_rust_reexports,
}

ReexportTargets: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]
"""Re-exports: for each name its targets, each with the path of the re-exporting module."""


def _split_name(name: str) -> Iterator[tuple[str, str, str]]:
    """Split a name into module, name and members in each possible way.

    Args:
        name: `billing.Bill.total`, `web/src/lib#format`.

    Yields:
        the module with the separator after it, the name, and the members.
    """
    module, mark, local = name.rpartition("#")
    if mark:
        first, dot, rest = local.partition(".")
        yield f"{module}#", first, dot + rest
        return
    module, dot, last = name.rpartition(".")
    if dot:
        yield f"{module}.", last, ""
        outer, dot, first = module.rpartition(".")
        if dot:
            yield f"{outer}.", first, f".{last}"


def iter_possible_reexports(name: str) -> Iterator[str]:
    """Yield the names of all re-exports that may be needed to resolve a name."""
    for module, first, _ in _split_name(name):
        yield module + first
        yield module + EVERYTHING
        if module.endswith("."):
            yield from (
                module + mark
                for mark in (EXCLUDED + first, EXCLUDED + EVERYTHING, INCLUDED + first)
            )
        if _may_be_default(module, first):
            yield module + DEFAULT


def resolve_reexport(name: str, path: str, reexports: ReexportTargets) -> set[tuple[str, str]]:
    """Return the targets of a re-exported name, each with the path of the re-exporting module.

    Explicit re-exports of a module take precedence over its `*` re-exports.

    Args:
        name: the name as resolve_spelling returns it.
        path: the path of the file that uses it.
        reexports: re-exports, at least of the names that iter_possible_reexports returns.
    """
    for module, first, rest in _split_name(name):
        defaults = [DEFAULT] if _may_be_default(module, first) else []
        for own in (first, *defaults):
            alias = find_definition(module + own, path, reexports)
            if alias is not None:
                return {(_join_member(to, rest), at) for to, at in reexports[alias]}
    targets = set()
    for module, first, rest in _split_name(name):
        alias = find_definition(module + EVERYTHING, path, reexports)
        if alias is not None:
            inner = [
                (to, at) for to, at in reexports[alias] if _includes_name(to, first, at, reexports)
            ]
            targets |= {(to.removesuffix(EVERYTHING) + first + rest, at) for to, at in inner}
    return targets


def _includes_name(target: str, name: str, path: str, reexports: ReexportTargets) -> bool:
    """Return whether `from module import *` includes a name.

    Args:
        target: the module with EVERYTHING at its end.
        name: the name to import from it.
        path: the path of the file that imports by `*`.
    """
    module = target.removesuffix(EVERYTHING)
    if not target.endswith(f".{EVERYTHING}"):
        return target.endswith(EVERYTHING)
    is_included, *excluded = (
        find_definition(module + mark, path, reexports) is not None
        for mark in (INCLUDED + name, EXCLUDED + name, EXCLUDED + EVERYTHING)
    )
    return is_included or not (name.startswith("_") or any(excluded))


def group_members_by_reexport(names: Iterable[str]) -> dict[str, list[str]]:
    """Return, by re-export through which names may be imported, the members in those names.

    For the re-export of a whole module (`*`), a member is the name within that module.
    """
    members: dict[str, list[str]] = {}
    for name in names:
        for module, first, rest in _split_name(name):
            members.setdefault(module + first, []).append(rest)
            members.setdefault(module + EVERYTHING, []).append(first + rest)
    return members


def iter_import_names(alias: str, target: str, members: Iterable[str]) -> Iterator[str]:
    """Yield the names by which other files can import a re-exported definition.

    Args:
        alias: the re-exported name.
        target: the target of the re-export.
        members: members of the target, each with its leading dot; for a whole module: names in it.
    """
    module, mark, local = alias.rpartition("#")
    default = f"{module}#{module.rpartition('/')[2]}" if mark and local == DEFAULT else ""
    whole = target.endswith(EVERYTHING)
    for member in members:
        if alias.endswith(EVERYTHING):
            yield alias.removesuffix(EVERYTHING) + member
            continue
        yield f"{alias}.{member}" if whole else alias + member
        if default:
            yield default + member


def _join_member(target: str, rest: str) -> str:
    if target.endswith(f"#{EVERYTHING}") and rest:
        return target.removesuffix(EVERYTHING) + rest.removeprefix(".")
    return target + rest


def _may_be_default(module: str, name: str) -> bool:
    """Return whether a name may be the default export of a module, named after its file."""
    place, mark = module[:-1], module[-1]
    return mark == "#" and place.rpartition("/")[2] == name
