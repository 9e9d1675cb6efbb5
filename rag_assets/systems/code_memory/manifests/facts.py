"""Dependencies in manifests that consist of keys and values.

Fact `depends_on` {package, constraint, group, manager}: a package; `group` is runtime, development,
peer, optional, build, or the group's name in the manifest.
Fact `autoloads` {namespace, path, group}: where Composer finds classes of a namespace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.settings.entries import ITEM, Entry, Path

_REQUIREMENT: Final = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[\w.-]{0,200}[A-Za-z0-9])?)[ \t]*+(?:\[[^\]\n]{0,400}\])?[ \t]*+"
    r"(?P<constraint>\(?(?:===|[<>=!~]=?)[^;#\n]{0,400}|@[^;\n]{0,2000})?[ \t]*+(?:[;#\\]|--|\r?$)"
)


def requirement(line: str) -> tuple[str, str] | None:
    """Return the package and version constraint in a line; None if it is not a requirement."""
    found = _REQUIREMENT.match(line)
    if found is None:
        return None
    constraint = (found["constraint"] or "").partition(" #")[0].partition(" --")[0]
    return found["name"], constraint.strip().rstrip("\\").strip().strip("()").lstrip("@").strip()


_IN_TABLE: Final = 2
"""Length of a key's path if the key is in a top-level table."""

_RUNTIME, _DEVELOPMENT, _BUILD = "runtime", "development", "build"


def facts_of_entries(language: str, text: str, entries: Sequence[Entry]) -> Iterator[Fact]:
    """Yield the facts of a manifest; for any other file, yield nothing.

    Args:
        language: json, toml, yaml or ini.
        entries: the entries of the file, outer entries before inner entries.
    """
    made = _OF_FORMAT.get(language)
    return iter(()) if made is None else made(text, entries)


def dependency(
    span: tuple[int, int], package: str, constraint: str, group: str, manager: str
) -> Fact:
    """Return a fact that a manifest depends on a package."""
    values = {"package": package, "constraint": constraint, "group": group, "manager": manager}
    return Fact("depends_on", *span, "", values)


_COMPOSER: Final = {"require": _RUNTIME, "require-dev": _DEVELOPMENT}
_AUTOLOAD: Final = {"autoload": _RUNTIME, "autoload-dev": _DEVELOPMENT}
_LONGEST_NAMESPACE: Final = 500
_NPM: Final = {
    "dependencies": _RUNTIME,
    "devDependencies": _DEVELOPMENT,
    "peerDependencies": "peer",
    "optionalDependencies": "optional",
}


def _json(text: str, entries: Sequence[Entry]) -> Iterator[Fact]:
    for entry in entries:
        path, value = entry.path, entry.value
        if value is not None and path[1:2] == ("psr-4",) and path[0] in _AUTOLOAD:
            # The value is a folder or a list of folders; each fact repeats the namespace.
            if len(path) in {3, 4} and len(path[2]) <= _LONGEST_NAMESPACE:
                yield _autoload(entry, path[2], value)
        elif len(path) != _IN_TABLE or value is None or path[1] == ITEM:
            continue
        elif path[0] in _COMPOSER and _is_composers(path[1]):
            yield _of(entry, path[1], value, _COMPOSER[path[0]], "composer")
        elif path[0] in _NPM:
            yield _of(entry, path[1], value, _NPM[path[0]], "npm")
        elif path[0] == "imports" and value.startswith(("npm:", "jsr:")):
            name, at, version = value[4:].lstrip("/").rpartition("@")
            package = name if at and name else value[4:]
            yield _of(entry, package, version if name else "", _RUNTIME, value[:3])


def _is_composers(name: str) -> bool:
    return "/" in name or name == "php" or name.startswith(("ext-", "lib-", "php-", "composer-"))


def _autoload(entry: Entry, namespace: str, path: str) -> Fact:
    group = _AUTOLOAD[entry.path[0]]
    values = {"namespace": namespace.replace("\\\\", "\\"), "path": path, "group": group}
    return Fact("autoloads", entry.start, entry.end, "", values)


def _of(entry: Entry, package: str, constraint: str, group: str, manager: str) -> Fact:
    return dependency((entry.start, entry.end), package, constraint, group, manager)


_CARGO: Final = {
    "dependencies": _RUNTIME,
    "dev-dependencies": _DEVELOPMENT,
    "build-dependencies": _BUILD,
}
_PIPFILE: Final = {"packages": _RUNTIME, "dev-packages": _DEVELOPMENT}
_LISTS: Final[Mapping[Path, str]] = {
    ("project", "dependencies"): _RUNTIME,
    ("build-system", "requires"): _BUILD,
    ("tool", "uv", "dev-dependencies"): _DEVELOPMENT,
}
_LISTS_BY_GROUP: Final[Mapping[Path, str]] = {
    ("project", "optional-dependencies"): "optional",
    ("dependency-groups",): "",
    ("tool", "pdm", "dev-dependencies"): "",
}
_DEVELOPERS: Final = frozenset(
    {"dev", "develop", "development", "test", "tests", "testing", "lint"}
)


def _toml(text: str, entries: Sequence[Entry]) -> Iterator[Fact]:
    versions = {one.path[:-1]: one.value for one in entries if one.path[-1] == "version"}
    names = {one.path[:-1]: one.value for one in entries if one.path[-1] == "package"}
    seen: set[Path] = set()
    for entry in entries:
        path = entry.path
        if path[-1] == ITEM:
            yield from _listed(entry)
            continue
        table = _table_of(path)
        if table is None or path in seen:
            continue
        seen.add(path)
        group, manager = table
        constraint = entry.value if entry.value is not None else versions.get(path)
        yield _of(entry, names.get(path) or path[-1], constraint or "", group, manager)


def _listed(entry: Entry) -> Iterator[Fact]:
    """Yield the requirement that a list item states."""
    base = entry.path[:-1]
    group = _LISTS.get(base)
    if group is None and base[:-1] in _LISTS_BY_GROUP:
        group = _LISTS_BY_GROUP[base[:-1]] or _group_named(base[-1])
    told = requirement(entry.value or "") if group is not None else None
    if told is not None and group is not None:
        yield _of(entry, told[0], told[1], group, "pip")


def _group_named(name: str) -> str:
    return _DEVELOPMENT if name.lower() in _DEVELOPERS else name


def _table_of(path: Path) -> tuple[str, str] | None:
    """Return group and package manager of a key in a table of packages."""
    above = path[:-1]
    if above[:2] == ("tool", "poetry"):
        return _poetry(above[2:])
    if len(above) == 1 and above[0] in _PIPFILE:
        return _PIPFILE[above[0]], "pip"
    within = above[:1] in {("workspace",), ("target",)}
    if above and (within or len(above) == 1) and above[-1] in _CARGO:
        return _CARGO[above[-1]], "cargo"
    return None


def _poetry(above: Path) -> tuple[str, str] | None:
    if above == ("dependencies",):
        return _RUNTIME, "pip"
    if above == ("dev-dependencies",):
        return _DEVELOPMENT, "pip"
    if above[:1] == ("group",) and above[2:] == ("dependencies",):
        return _group_named(above[1]), "pip"
    return None


_PUB: Final = {"dependencies": _RUNTIME, "dev_dependencies": _DEVELOPMENT}


def _yaml(text: str, entries: Sequence[Entry]) -> Iterator[Fact]:
    tops = {entry.path[0] for entry in entries if len(entry.path) == 1}
    if "environment" in tops:
        yield from _pub(entries)
    elif "channels" in tops:
        yield from _conda(entries)


def _pub(entries: Sequence[Entry]) -> Iterator[Fact]:
    inner = {one.path[:2]: one.value for one in entries if one.path[2:] == ("version",)}
    for entry in entries:
        if len(entry.path) == _IN_TABLE and entry.path[0] in _PUB and entry.path[1] != ITEM:
            constraint = entry.value or inner.get(entry.path) or ""
            yield _of(entry, entry.path[1], constraint, _PUB[entry.path[0]], "pub")


def _conda(entries: Sequence[Entry]) -> Iterator[Fact]:
    for entry in entries:
        if entry.path == ("dependencies", ITEM) and entry.value:
            name, _, version = entry.value.partition("=")
            yield _of(entry, name.strip(), version.lstrip("=").strip(), _RUNTIME, "conda")
        elif entry.path == ("dependencies", ITEM, "pip", ITEM) and entry.value:
            told = requirement(entry.value)
            if told is not None:
                yield _of(entry, *told, _RUNTIME, "pip")


_CFG: Final[Mapping[Path, str]] = {
    ("options", "install_requires"): _RUNTIME,
    ("options", "setup_requires"): _BUILD,
    ("options", "tests_require"): _DEVELOPMENT,
}


def _ini(text: str, entries: Sequence[Entry]) -> Iterator[Fact]:
    for entry in entries:
        item = entry.path[-1] == ITEM
        base = entry.path[:-1] if item else entry.path
        group = _CFG.get(base)
        if base[:1] == ("options.extras_require",) and len(base) == _IN_TABLE:
            group = "optional"
        told = requirement(entry.value or "") if group is not None else None
        if told is not None and group is not None:
            yield _of(entry, *told, group, "pip")


_OF_FORMAT: Final[Mapping[str, Callable[[str, Sequence[Entry]], Iterator[Fact]]]] = {
    "ini": _ini,
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
}
