"""Names that a module hands on: by `export { X } from`, `export *`, `pub use`, or an import.

A name that is imported from there means what it is handed on from. An edge of the kind `hands_on`
says so; both of its ends have the prefix `as:`, so that whoever looks for what is called or
imported by a name does not meet them. `as:*` stands for all that a module has. What `__all__` of
Python takes from that is stated too: `as::!log` is kept back, and `as::+_bill` given although it
would not be; `as::!*` keeps back what the module itself has of another one by `*`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from rag_assets.code.model import Fact
from rag_assets.code.naming import ALL, HANDED, OWN, NameStyle, meant
from rag_assets.code.nodes import PACKAGE
from rag_assets.code.spelled_rules import from_module, rust_path

DEFAULT: Final = "default"
KEPT: Final = "!"
"""Before a name that a module does not give by `*`, although its name does not say so."""

GIVEN: Final = "+"
"""Before a name that a module gives by `*`, although nothing else of it says so."""
_Stated: TypeAlias = tuple[Fact, str, str]
"""A fact, the name that it hands on, and what that stands for."""


def handed_on(facts: Iterable[Fact], names: NameStyle) -> Iterator[tuple[Fact, str, str]]:
    """What a file hands on: the fact that says so, the name, and what it stands for.

    Args:
        facts: of the file.
        names: how its names are made.
    """
    made = _BY_STYLE.get(names)
    for fact, name, target in () if made is None else made(facts):
        if name and target and not target.startswith(PACKAGE):
            yield fact, HANDED + OWN + name, HANDED + target


def _python(facts: Iterable[Fact]) -> Iterator[_Stated]:
    """Whatever a module imports from another one at its top can be imported from itself."""
    found = [*facts]
    listed = next((fact for fact in found if fact.kind == "exports"), None)
    names = dict.fromkeys([] if listed is None else map(str, listed.values["names"]))
    for fact in found:
        values = fact.values
        if fact.kind != "imports" or fact.symbol or not values.get("member"):
            continue
        name, alias, level = str(values["name"]), str(values["alias"]), int(values["level"])
        inner = level or name.partition(".")[0] not in sys.stdlib_module_names
        if inner and (not alias.startswith("_") or alias in names):
            yield fact, alias, "." * level + name
    if listed is not None:
        for mark in _limits(found, names):
            yield listed, mark, OWN + mark


def _limits(facts: Sequence[Fact], listed: Mapping[str, None]) -> Iterator[str]:
    """What `__all__` changes of what a module of Python gives by `*`: marked names."""
    own = {fact.symbol for fact in facts if fact.kind == "declares" and "." not in fact.symbol}
    own |= {
        str(fact.values["alias"]) for fact in facts if fact.kind == "imports" and not fact.symbol
    }
    yield from (
        KEPT + name for name in sorted(own - {*listed}) if name == ALL or not name.startswith("_")
    )
    # Of what a module has of another one by `*`, only the names that it lists are known.
    yield from (GIVEN + name for name in listed if ALL in own or name.startswith("_"))


def _javascript(facts: Iterable[Fact]) -> Iterator[_Stated]:
    found = [*facts]
    imported = {
        str(local): from_module(str(fact.values["name"]), str(name))
        for fact in found
        if fact.kind == "imports"
        for name, local in fact.values.get("names", ())
    }
    for fact in found:
        if fact.kind != "exports":
            continue
        values = fact.values
        name, local = str(values["name"]), str(values.get("local", ""))
        name = DEFAULT if name == "export=" else name
        if module := str(values.get("module", "")):
            yield fact, name, from_module(module, str(values.get("original", "")))
        elif local in imported:
            yield fact, name, imported[local]
        elif local and local != name:
            yield fact, name, OWN + local


def _rust(facts: Iterable[Fact]) -> Iterator[_Stated]:
    for fact in facts:
        if fact.kind != "imports" or fact.symbol or not fact.values.get("public"):
            continue
        for path, local in fact.values.get("names", ()):
            if local != "_":
                yield fact, str(local), rust_path(f"{path}::*" if local == ALL else str(path))


_BY_STYLE: Final[Mapping[NameStyle, Callable[[Iterable[Fact]], Iterator[_Stated]]]] = {
    "python": _python,
    "javascript": _javascript,
    "rust": _rust,
}

Handed: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]
"""What names stand for that modules hand on: names, each with the path of the module."""


def parts_of(name: str) -> Iterator[tuple[str, str, str]]:
    """How a name may be one of a module and of what that has: module, name, members.

    Args:
        name: `billing.Bill.total`, `web/src/lib#format`.

    Yields:
        the module with the mark after it.
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


def asked_of(name: str) -> Iterator[str]:
    """The names that modules may hand on, one of which leads to what a name means."""
    for module, first, _ in parts_of(name):
        yield module + first
        yield module + ALL
        if module.endswith("."):
            yield from (module + mark for mark in (KEPT + first, KEPT + ALL, GIVEN + first))
        if _may_be_default(module, first):
            yield module + DEFAULT


def behind(name: str, path: str, handed: Handed) -> set[tuple[str, str]]:
    """What a name stands for, where a module hands it on: names, and the paths of modules.

    What it names itself goes before what it has of all that another one has.

    Args:
        name: as a file means it.
        path: of that file.
        handed: what modules hand on, at least of the names asked_of tells.
    """
    for module, first, rest in parts_of(name):
        defaults = [DEFAULT] if _may_be_default(module, first) else []
        for own in (first, *defaults):
            alias = meant(module + own, path, handed)
            if alias is not None:
                return {(_member(to, rest), at) for to, at in handed[alias]}
    found = set()
    for module, first, rest in parts_of(name):
        alias = meant(module + ALL, path, handed)
        if alias is not None:
            inner = [(to, at) for to, at in handed[alias] if _gives(to, first, at, handed)]
            found |= {(to.removesuffix(ALL) + first + rest, at) for to, at in inner}
    return found


def _gives(target: str, name: str, path: str, handed: Handed) -> bool:
    """Whether a name is among all that a module gives.

    Args:
        target: all of that module.
        name: of what is wanted of it.
        path: of the file that takes all of it.
        handed: see behind.
    """
    module = target.removesuffix(ALL)
    if not target.endswith(f".{ALL}"):
        return target.endswith(ALL)
    given, *kept = (
        meant(module + mark, path, handed) is not None
        for mark in (GIVEN + name, KEPT + name, KEPT + ALL)
    )
    return given or not (name.startswith("_") or any(kept))


def beyond(names: Iterable[str]) -> dict[str, list[str]]:
    """By what modules may hand on, the members of it that names are.

    A name that ends with `*` stands for all of a module: the member is then the whole name in it.
    """
    found: dict[str, list[str]] = {}
    for name in names:
        for module, first, rest in parts_of(name):
            found.setdefault(module + first, []).append(rest)
            found.setdefault(module + ALL, []).append(first + rest)
    return found


def handed_names(alias: str, target: str, members: Iterable[str]) -> Iterator[str]:
    """The names by which what a module hands on is imported from it.

    Args:
        alias: that it hands on.
        target: what that stands for.
        members: of the target, with the dot before them; of all of a module: names in it.
    """
    module, mark, local = alias.rpartition("#")
    default = f"{module}#{module.rpartition('/')[2]}" if mark and local == DEFAULT else ""
    whole = target.endswith(ALL)
    for member in members:
        if alias.endswith(ALL):
            yield alias.removesuffix(ALL) + member
            continue
        yield f"{alias}.{member}" if whole else alias + member
        if default:
            yield default + member


def _member(target: str, rest: str) -> str:
    if target.endswith(f"#{ALL}") and rest:
        return target.removesuffix(ALL) + rest.removeprefix(".")
    return target + rest


def _may_be_default(module: str, name: str) -> bool:
    """Whether a name may be what a module exports by default, which is called like its file."""
    place, mark = module[:-1], module[-1]
    return mark == "#" and place.rpartition("/")[2] == name
