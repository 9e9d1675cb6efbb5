"""Manifests: the packages that a repository depends on, and the frameworks among them.

Fact `depends_on` {package, constraint, group, manager}: a package; `group` is runtime, development,
peer, optional, build, or the group's name in the manifest.
Fact `autoloads` {namespace, path, group}: where Composer finds classes of a namespace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.units import add_rest_units
from rag_assets.systems.code_memory.settings.entries import (
    ITEM,
    Entry,
    Path,
)
from rag_assets.systems.code_memory.symbols.model import CodeText

_REQUIREMENT: Final = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[\w.-]{0,200}[A-Za-z0-9])?)[ \t]*+(?:\[[^\]\n]{0,400}\])?[ \t]*+"
    r"(?P<constraint>\(?(?:===|[<>=!~]=?)[^;#\n]{0,400}|@[^;\n]{0,2000})?[ \t]*+(?:[;#\\]|--|\r?$)"
)


def parse_requirement(line: str) -> tuple[str, str] | None:
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
        entries: the entries of the file, outer entries before inner entries.
    """
    made = _OF_FORMAT.get(language)
    return iter(()) if made is None else made(text, entries)


def dependency_fact(
    span: tuple[int, int], package: str, constraint: str, group: str, manager: str
) -> Fact:
    """Return the fact that a manifest depends on a package."""
    values = {"package": package, "constraint": constraint, "group": group, "manager": manager}
    return Fact("depends_on", *span, "", values)


_COMPOSER: Final = {"require": _RUNTIME, "require-dev": _DEVELOPMENT}
_COMPOSER_PACKAGE: Final = re.compile(r".*/|php$|(?:ext|lib|php|composer)-")
_AUTOLOAD: Final = {"autoload": _RUNTIME, "autoload-dev": _DEVELOPMENT}
_LONGEST_NAMESPACE: Final = 500
_NPM: Final = {
    "dependencies": _RUNTIME,
    "devDependencies": _DEVELOPMENT,
    "peerDependencies": "peer",
    "optionalDependencies": "optional",
}


def _json_facts(text: str, entries: Sequence[Entry]) -> Iterator[Fact]:
    for entry in entries:
        path, value = entry.path, entry.value
        if value is not None and path[1:2] == ("psr-4",) and path[0] in _AUTOLOAD:
            # The value is a folder or a list of folders; each fact repeats the namespace.
            if len(path) in {3, 4} and len(path[2]) <= _LONGEST_NAMESPACE:
                yield _autoload_fact(entry, path[2], value)
        elif len(path) != _IN_TABLE or value is None or path[1] == ITEM:
            continue
        elif path[0] in _COMPOSER and _COMPOSER_PACKAGE.match(path[1]):
            yield _dependency_of_entry(entry, path[1], value, _COMPOSER[path[0]], "composer")
        elif path[0] in _NPM:
            yield _dependency_of_entry(entry, path[1], value, _NPM[path[0]], "npm")
        elif path[0] == "imports" and value.startswith(("npm:", "jsr:")):
            name, at, version = value[4:].lstrip("/").rpartition("@")
            package = name if at and name else value[4:]
            yield _dependency_of_entry(entry, package, version if name else "", _RUNTIME, value[:3])


def _autoload_fact(entry: Entry, namespace: str, path: str) -> Fact:
    group = _AUTOLOAD[entry.path[0]]
    values = {"namespace": namespace.replace("\\\\", "\\"), "path": path, "group": group}
    return Fact("autoloads", entry.start, entry.end, "", values)


def _dependency_of_entry(
    entry: Entry, package: str, constraint: str, group: str, manager: str
) -> Fact:
    return dependency_fact((entry.start, entry.end), package, constraint, group, manager)


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


def _toml_facts(text: str, entries: Sequence[Entry]) -> Iterator[Fact]:
    versions = {one.path[:-1]: one.value for one in entries if one.path[-1] == "version"}
    names = {one.path[:-1]: one.value for one in entries if one.path[-1] == "package"}
    seen: set[Path] = set()
    for entry in entries:
        path = entry.path
        if path[-1] == ITEM:
            yield from _requirement_in_item(entry)
            continue
        table = _group_and_manager(path)
        if table is None or path in seen:
            continue
        seen.add(path)
        group, manager = table
        constraint = entry.value if entry.value is not None else versions.get(path)
        yield _dependency_of_entry(
            entry, names.get(path) or path[-1], constraint or "", group, manager
        )


def _requirement_in_item(entry: Entry) -> Iterator[Fact]:
    """Yield the requirement that a list item states."""
    base = entry.path[:-1]
    group = _LISTS.get(base)
    if group is None and base[:-1] in _LISTS_BY_GROUP:
        group = _LISTS_BY_GROUP[base[:-1]] or _normalize_group(base[-1])
    told = parse_requirement(entry.value or "") if group is not None else None
    if told is not None and group is not None:
        yield _dependency_of_entry(entry, told[0], told[1], group, "pip")


def _normalize_group(name: str) -> str:
    return _DEVELOPMENT if name.lower() in _DEVELOPERS else name


def _group_and_manager(path: Path) -> tuple[str, str] | None:
    """Return group and package manager of a key in a table of packages."""
    above = path[:-1]
    if above[:2] == ("tool", "poetry"):
        return _poetry_group(above[2:])
    if len(above) == 1 and above[0] in _PIPFILE:
        return _PIPFILE[above[0]], "pip"
    within = above[:1] in {("workspace",), ("target",)}
    if above and (within or len(above) == 1) and above[-1] in _CARGO:
        return _CARGO[above[-1]], "cargo"
    return None


def _poetry_group(above: Path) -> tuple[str, str] | None:
    if above == ("dependencies",):
        return _RUNTIME, "pip"
    if above == ("dev-dependencies",):
        return _DEVELOPMENT, "pip"
    if above[:1] == ("group",) and above[2:] == ("dependencies",):
        return _normalize_group(above[1]), "pip"
    return None


_PUB: Final = {"dependencies": _RUNTIME, "dev_dependencies": _DEVELOPMENT}


def _yaml_facts(text: str, entries: Sequence[Entry]) -> Iterator[Fact]:
    tops = {entry.path[0] for entry in entries if len(entry.path) == 1}
    if "environment" in tops:
        yield from _pub_facts(entries)
    elif "channels" in tops:
        yield from _conda_facts(entries)


def _pub_facts(entries: Sequence[Entry]) -> Iterator[Fact]:
    inner = {one.path[:2]: one.value for one in entries if one.path[2:] == ("version",)}
    for entry in entries:
        if len(entry.path) == _IN_TABLE and entry.path[0] in _PUB and entry.path[1] != ITEM:
            constraint = entry.value or inner.get(entry.path) or ""
            yield _dependency_of_entry(entry, entry.path[1], constraint, _PUB[entry.path[0]], "pub")


def _conda_facts(entries: Sequence[Entry]) -> Iterator[Fact]:
    for entry in entries:
        if entry.path == ("dependencies", ITEM) and entry.value:
            name, _, version = entry.value.partition("=")
            yield _dependency_of_entry(
                entry, name.strip(), version.lstrip("=").strip(), _RUNTIME, "conda"
            )
        elif entry.path == ("dependencies", ITEM, "pip", ITEM) and entry.value:
            told = parse_requirement(entry.value)
            if told is not None:
                yield _dependency_of_entry(entry, *told, _RUNTIME, "pip")


_CFG: Final[Mapping[Path, str]] = {
    ("options", "install_requires"): _RUNTIME,
    ("options", "setup_requires"): _BUILD,
    ("options", "tests_require"): _DEVELOPMENT,
}


def _ini_facts(text: str, entries: Sequence[Entry]) -> Iterator[Fact]:
    for entry in entries:
        item = entry.path[-1] == ITEM
        base = entry.path[:-1] if item else entry.path
        group = _CFG.get(base)
        if base[:1] == ("options.extras_require",) and len(base) == _IN_TABLE:
            group = "optional"
        told = parse_requirement(entry.value or "") if group is not None else None
        if told is not None and group is not None:
            yield _dependency_of_entry(entry, *told, group, "pip")


_OF_FORMAT: Final[Mapping[str, Callable[[str, Sequence[Entry]], Iterator[Fact]]]] = {
    "ini": _ini_facts,
    "json": _json_facts,
    "toml": _toml_facts,
    "yaml": _yaml_facts,
}


_GROUPS: Final = {
    "test": "development",
    "tests": "development",
    "development": "development",
    "dev": "development",
    "provided": "optional",
}
_Q: Final = "[\"']"
_NAME: Final = r"[^\"'\n]{1,300}"

_GO_LINE: Final = re.compile(
    r"^(?:require[ \t]++)?[ \t]*+"
    r"(?P<name>[\w.-]+\.[\w.-]+(?:/[^\s\"]++)?|\w[\w.-]*+/[^\s\"]++)[ \t]++"
    r"(?P<version>v\d[^\s]*+)(?P<more>[^\n]*+)"
)
_RUBY: Final = re.compile(
    r"^[ \t]*+(?:gem|(?P<pod>pod)"
    r"|\w+\.(?:add_)?(?P<development>development_)?(?:runtime_)?dependency)[ \t(]++"
    rf"{_Q}(?P<name>{_NAME}){_Q}(?:[ \t]*+,[ \t]*+{_Q}(?P<version>{_NAME}){_Q})?"
)
_GROUP: Final = re.compile(r"^[ \t]*+group[ \t(]++(?P<names>[^#\n]{1,200}?)\)?[ \t]++do\b")
_GRADLE: Final = re.compile(
    r"^[ \t]*+(?P<more>\w*(?:[iI]mplementation|[aA]pi|[cC]ompileOnly|[rR]untimeOnly|[cC]ompile"
    r"|kapt|ksp|annotationProcessor))[ \t(]++(?:(?:enforcedP|p)latform[ \t]*+\()?[ \t]*+"
    rf"{_Q}(?P<name>[\w.-]++:[\w.-]++)(?::(?P<version>[^\"'\n]{{0,100}}))?{_Q}"
)
_SWIFT: Final = re.compile(
    rf"\.package\([^)\n]{{0,300}}?url:[ \t]*+\"(?P<name>{_NAME})\""
    r"(?:[ \t]*+,(?P<version>[^)\n]{0,200}))?"
)
_PRODUCT: Final = re.compile(rf"\.product\([ \t]*+name:[ \t]*+\"(?P<name>{_NAME})\"")
_MIX: Final = re.compile(
    r"^[ \t]*+\{:(?P<name>\w++)[ \t]*+,(?:[ \t]*+\"(?P<version>[^\"\n]{1,100})\")?(?P<more>[^\n]*+)"
)
_PROJECT: Final = re.compile(
    r"<(?:Package(?:Reference|Version)|package)\s(?P<attributes>[^<>]{0,600})"
)
_ATTRIBUTE: Final = re.compile(
    r"(?i)\b(?P<name>include|version|id)\s*=\s*\"(?P<value>[^\"]{0,300})\""
)
_POM: Final = re.compile(
    r"<dependency>(?P<inner>[^<]*+(?:<(?!/dependency>)[^<]*+){0,60})</dependency>"
)
_TAG: Final = re.compile(r"<(?P<name>groupId|artifactId|version|scope)>\s*+(?P<value>[^<\s]*+)")
_INCLUDE: Final = ("-", "#", "git+", "http:", "https:", ".", "/")


def _trimmed_span(at: int, line: str) -> tuple[int, int]:
    """Return the offsets of a line without the white space around it."""
    return at + len(line) - len(line.lstrip()), at + len(line.rstrip())


def _lines_with_offsets(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.splitlines(keepends=True):
        yield at, line.rstrip("\r\n")
        at += len(line)


def requirement_facts(text: str, group: str = "runtime") -> Iterator[Fact]:
    """Yield the dependencies in a pip requirements file."""
    for at, line in _lines_with_offsets(text):
        content = line.strip()
        if not content or content.startswith(_INCLUDE):
            continue
        told = parse_requirement(content)
        if told is not None:
            yield dependency_fact(_trimmed_span(at, line), *told, group, "pip")


def go_module_facts(text: str) -> Iterator[Fact]:
    """Yield the dependencies in `require` of go.mod; other directives have no plain version."""
    block = ""
    for at, line in _lines_with_offsets(text):
        content = line.strip()
        if content.endswith("(") or content == ")":
            block = content.rstrip("( \t")
            block = "" if block == ")" else block
            continue
        found = _GO_LINE.match(content)
        if found is None or not (block == "require" or content.startswith("require")):
            continue
        group = "indirect" if "// indirect" in found["more"] else "runtime"
        yield dependency_fact(_trimmed_span(at, line), found["name"], found["version"], group, "go")


def ruby_facts(text: str) -> Iterator[Fact]:
    """Yield the dependencies in a Gemfile, gemspec, Podfile or podspec."""
    group = "runtime"
    pods = "Pod::Spec" in text
    for at, line in _lines_with_offsets(text):
        if head := _GROUP.match(line):
            group = _first_known_group(head["names"])
        elif line.strip() == "end":
            group = "runtime"
        elif found := _RUBY.match(line):
            manager = "cocoapods" if pods or found["pod"] else "bundler"
            told = "development" if found["development"] else group
            yield dependency_fact(
                _trimmed_span(at, line), found["name"], found["version"] or "", told, manager
            )


def _first_known_group(names: str) -> str:
    first = names.replace(":", " ").replace(",", " ").split()
    return _GROUPS.get(first[0].strip("\"'"), first[0].strip("\"'")) if first else "runtime"


def gradle_facts(text: str) -> Iterator[Fact]:
    """Yield the dependencies in a Gradle build file."""
    for at, line in _lines_with_offsets(text):
        if found := _GRADLE.match(line):
            yield _dependency_in_line(at, line, found, "test" in found["more"].lower(), "maven")


def mix_facts(text: str) -> Iterator[Fact]:
    """Yield the dependencies in mix.exs."""
    for at, line in _lines_with_offsets(text):
        if found := _MIX.match(line):
            yield _dependency_in_line(at, line, found, "only:" in found["more"], "hex")


def _dependency_in_line(
    at: int, line: str, found: re.Match[str], is_development: bool, manager: str
) -> Fact:
    group = _DEVELOPMENT if is_development else _RUNTIME
    span = _trimmed_span(at, line)
    return dependency_fact(span, found["name"], found["version"] or "", group, manager)


def swift_facts(text: str) -> Iterator[Fact]:
    """Yield the dependencies in Package.swift."""
    for found in _SWIFT.finditer(text):
        version = (found["version"] or "").strip().strip(",").strip()
        yield dependency_fact(found.span(), found["name"], version, "runtime", "swiftpm")
    for product in _PRODUCT.finditer(text):  # the modules that its sources import
        yield dependency_fact(product.span(), product["name"], "", "runtime", "swiftpm")


def xml_facts(text: str) -> Iterator[Fact]:
    """Yield the dependencies in pom.xml, a .NET project file or packages.config."""
    for found in _PROJECT.finditer(text):
        told = {
            one["name"].lower(): one["value"] for one in _ATTRIBUTE.finditer(found["attributes"])
        }
        package = told.get("include") or told.get("id")
        if package:
            version = told.get("version", "")
            yield dependency_fact(found.span(), package, version, "runtime", "nuget")
    for found in _POM.finditer(text):
        tags: dict[str, str] = {}
        for tag in _TAG.finditer(found["inner"]):
            tags.setdefault(tag["name"], tag["value"])
        if "groupId" in tags and "artifactId" in tags:
            package = f"{tags['groupId']}:{tags['artifactId']}"
            group = _GROUPS.get(tags.get("scope", ""), "runtime")
            version = tags.get("version", "")
            yield dependency_fact(found.span(), package, version, group, "maven")


def _plain_facts(text: str) -> Iterator[Fact]:
    """Yield dependencies in go.mod, or in a requirements list with at least one constraint."""
    lines = [line.strip() for _, line in _lines_with_offsets(text)]
    told = [line for line in lines if line and not line.startswith(("#", "//"))]
    if told and told[0].startswith("module "):
        return go_module_facts(text)
    named = [line for line in told if not line.startswith(("-", "git+", ".", "http"))]
    found = [parse_requirement(line) for line in named]
    if found and all(found) and any(one is not None and one[1] for one in found):
        return requirement_facts(text)
    return iter(())


def _read_manifest(text: str, language: str, find: Callable[[str], Iterable[Fact]]) -> CodeText:
    """Return the paragraphs of a text, and its dependencies if it is a manifest."""
    return CodeText(add_rest_units(text, ()), tuple(find(text)), language)


read_elixir: Final = partial(
    _read_manifest,
    language="elixir",
    find=lambda text: mix_facts(text) if "Mix.Project" in text else (),
)
read_groovy: Final = partial(_read_manifest, language="groovy", find=gradle_facts)
read_kotlin: Final = partial(_read_manifest, language="kotlin", find=gradle_facts)
read_plain: Final = partial(_read_manifest, language="plain", find=_plain_facts)
read_ruby: Final = partial(_read_manifest, language="ruby", find=ruby_facts)
read_xml: Final = partial(_read_manifest, language="xml", find=xml_facts)


_FRAMEWORK_PACKAGES: Final = """
bundler rails, sinatra
cargo actix-web=actix, axum, rocket
composer cakephp/cakephp=cakephp, laravel/framework=laravel, laravel/lumen-framework=lumen
composer slim/slim=slim, symfony/framework-bundle=symfony, symfony/symfony=symfony, yiisoft/yii2=yii
go github.com/gin-gonic/gin=gin, github.com/gofiber/fiber/v2=fiber, github.com/labstack/echo/v4=echo
hex phoenix
npm @angular/core=angular, @nestjs/core=nest, @sveltejs/kit=sveltekit, express, fastify, next, nuxt
npm react, react-native, svelte, vue
pip django, fastapi, flask, starlette
pub flutter
"""
"""Package managers with the packages of frameworks: each package, and its framework."""

FRAMEWORKS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        (manager, package.partition("=")[0]): package.rpartition("=")[2]
        for manager, _, packages in (
            line.partition(" ") for line in _FRAMEWORK_PACKAGES.strip().split("\n")
        )
        for package in packages.split(", ")
    }
)
"""Names of frameworks, by package manager and lower-case package."""
