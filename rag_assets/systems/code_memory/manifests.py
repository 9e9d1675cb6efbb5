"""Manifests: the packages that a repository depends on, and the frameworks among them.

Each dependency yields the fact `depends_on` {package}. In Composer's manifests it also has
`constraint`, the allowed versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import add_rest_units
from rag_assets.systems.code_memory.settings.entries import ITEM, Path, SettingsEntry
from rag_assets.systems.code_memory.symbols.model import CodeText

_REQUIREMENT: Final = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[\w.-]{0,200}[A-Za-z0-9])?)[ \t]*+(?:\[[^\]\n]{0,400}\])?[ \t]*+"
    r"(?P<constraint>\(?(?:===|[<>=!~]=?)[^;#\n]{0,400}|@[^;\n]{0,2000})?[ \t]*+(?:[;#\\]|--|\r?$)"
)
_TABLE_KEY_PARTS: Final = 2
"""Length of a key's path if the key is in a top-level table."""


def iter_manifest_facts(language: str, entries: Sequence[SettingsEntry]) -> Iterator[Fact]:
    """Yield the facts in the entries of a manifest; yield nothing for any other file."""
    iter_facts = _FORMAT_READERS.get(language)
    return iter(()) if iter_facts is None else iter_facts(entries)


def _build_dependency(place: SettingsEntry | re.Match[str], package: str) -> Fact:
    """Return the fact `depends_on` for a package, with the span of the text that states it."""
    span = (place.start, place.end) if isinstance(place, SettingsEntry) else place.span()
    return Fact("depends_on", *span, "", {"package": package})


_COMPOSER: Final = frozenset({"require", "require-dev"})
_COMPOSER_PACKAGE: Final = re.compile(r".*/|php$|(?:ext|lib|php|composer)-")
_NPM: Final = frozenset(
    {"dependencies", "devDependencies", "peerDependencies", "optionalDependencies"}
)


def _iter_json_facts(entries: Sequence[SettingsEntry]) -> Iterator[Fact]:
    for entry in entries:
        path, value = entry.path, entry.value
        if len(path) != _TABLE_KEY_PARTS or value is None or path[1] == ITEM:
            continue
        if path[0] in _COMPOSER and _COMPOSER_PACKAGE.match(path[1]):
            values = {"package": path[1], "constraint": value}
            yield Fact("depends_on", entry.start, entry.end, "", values)
        elif path[0] in _NPM:
            yield _build_dependency(entry, path[1])
        elif path[0] == "imports" and value.startswith(("npm:", "jsr:")):
            name, at, _ = value[4:].lstrip("/").rpartition("@")
            yield _build_dependency(entry, name if at and name else value[4:])


_CARGO: Final = frozenset({"dependencies", "dev-dependencies", "build-dependencies"})
_PIPFILE: Final = frozenset({"packages", "dev-packages"})
_LISTS: Final = frozenset(
    {("project", "dependencies"), ("build-system", "requires"), ("tool", "uv", "dev-dependencies")}
)
_LISTS_BY_GROUP: Final = frozenset(
    {("project", "optional-dependencies"), ("dependency-groups",)}
    | {("tool", "pdm", "dev-dependencies")}
)


def _iter_toml_facts(entries: Sequence[SettingsEntry]) -> Iterator[Fact]:
    names = {entry.path[:-1]: entry.value for entry in entries if entry.path[-1] == "package"}
    seen: set[Path] = set()
    for entry in entries:
        path, above = entry.path, entry.path[:-1]
        if path[-1] == ITEM:
            if above in _LISTS or above[:-1] in _LISTS_BY_GROUP:
                yield from _iter_requirements([entry])
        elif _contains_packages(above) and path not in seen:
            seen.add(path)
            yield _build_dependency(entry, names.get(path) or path[-1])


def _iter_requirements(entries: Iterable[SettingsEntry]) -> Iterator[Fact]:
    """Yield dependencies from requirements such as `x[y] >= 1; python_version < "4"`."""
    for entry in entries:
        if required := _REQUIREMENT.match(entry.value or ""):
            yield _build_dependency(entry, required["name"])


def _contains_packages(table: Path) -> bool:
    """Return whether the keys of a TOML table at a path are names of packages."""
    if table[:2] == ("tool", "poetry"):
        inner = table[4:] if table[2:3] == ("group",) else table[2:]
        return inner == ("dependencies",) or table[2:] == ("dev-dependencies",)
    if len(table) == 1:
        return table[0] in _PIPFILE | _CARGO
    return table[:1] in {("workspace",), ("target",)} and table[-1] in _CARGO


_PUB: Final = frozenset({"dependencies", "dev_dependencies"})


def _iter_yaml_facts(entries: Sequence[SettingsEntry]) -> Iterator[Fact]:
    """Yield the dependencies in the manifest of a Dart package or a conda environment."""
    tops = {entry.path[0] for entry in entries if len(entry.path) == 1}
    for entry in entries if tops & {"environment", "channels"} else ():
        path = entry.path
        if "environment" in tops:
            if len(path) == _TABLE_KEY_PARTS and path[0] in _PUB and path[1] != ITEM:
                yield _build_dependency(entry, path[1])
        elif path == ("dependencies", ITEM) and entry.value:
            yield _build_dependency(entry, entry.value.partition("=")[0].strip())
        elif path == ("dependencies", ITEM, "pip", ITEM):
            yield from _iter_requirements([entry])


_CFG: Final = frozenset({"install_requires", "setup_requires", "tests_require"})


def _iter_ini_facts(entries: Sequence[SettingsEntry]) -> Iterator[Fact]:
    for entry in entries:
        base = entry.path[:-1] if entry.path[-1] == ITEM else entry.path
        is_list = base[:1] == ("options.extras_require",) or (
            base[:1] == ("options",) and base[-1] in _CFG
        )
        if is_list and len(base) == _TABLE_KEY_PARTS:
            yield from _iter_requirements([entry])


_FORMAT_READERS: Final[Mapping[str, Callable[[Sequence[SettingsEntry]], Iterator[Fact]]]] = {
    "ini": _iter_ini_facts,
    "json": _iter_json_facts,
    "toml": _iter_toml_facts,
    "yaml": _iter_yaml_facts,
}

_Q: Final = "[\"']"
_NAME: Final = r"[^\"'\n]{1,300}"

_GO_LINE: Final = re.compile(
    r"(?:require[ \t]++)?"
    r"(?P<name>[\w.-]+\.[\w.-]+(?:/[^\s\"]++)?|\w[\w.-]*+/[^\s\"]++)[ \t]++v\d"
)
_RUBY: Final = re.compile(
    r"[ \t]*+(?:gem|pod|\w+\.(?:add_)?(?:development_)?(?:runtime_)?dependency)[ \t(]++"
    rf"{_Q}(?P<name>{_NAME}){_Q}"
)
_GRADLE: Final = re.compile(
    r"[ \t]*+\w*(?:[iI]mplementation|[aA]pi|[cC]ompileOnly|[rR]untimeOnly|[cC]ompile"
    r"|kapt|ksp|annotationProcessor)[ \t(]++(?:(?:enforcedP|p)latform[ \t]*+\()?[ \t]*+"
    rf"{_Q}(?P<name>[\w.-]++:[\w.-]++)(?::[^\"'\n]{{0,100}})?{_Q}"
)
_MIX: Final = re.compile(r"[ \t]*+\{:(?P<name>\w++)[ \t]*+,")
_SWIFT: Final = re.compile(
    rf"\.package\([^)\n]{{0,300}}?url:[ \t]*+\"(?P<name>{_NAME})\"(?:[ \t]*+,[^)\n]{{0,200}})?"
)
_PRODUCT: Final = re.compile(rf"\.product\([ \t]*+name:[ \t]*+\"(?P<name>{_NAME})\"")
_PROJECT: Final = re.compile(
    r"<(?:Package(?:Reference|Version)|package)\s(?P<attributes>[^<>]{0,600})"
)
_ATTRIBUTE: Final = re.compile(r"(?i)\b(?P<name>include|id)\s*=\s*\"(?P<value>[^\"]{0,300})\"")
_POM: Final = re.compile(
    r"<dependency>(?P<inner>[^<]*+(?:<(?!/dependency>)[^<]*+){0,60})</dependency>"
)
_TAG: Final = re.compile(r"<(?P<name>groupId|artifactId)>\s*+(?P<value>[^<\s]*+)")
_INCLUDE: Final = ("-", "#", "git+", "http:", "https:", ".", "/")


def _iter_line_facts(text: str, pattern: re.Pattern[str]) -> Iterator[Fact]:
    """Yield the dependencies in the lines that match a pattern; its group `name` is the package."""
    for start, end, line in _iter_trimmed_lines(text):
        if match := pattern.match(line):
            yield Fact("depends_on", start, end, "", {"package": match["name"]})


def _iter_trimmed_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and text of each line, without white space around the text."""
    at = 0
    for line in text.splitlines(keepends=True):
        start = at + len(line) - len(line.lstrip())
        yield start, at + len(line.rstrip()), line.strip()
        at += len(line)


def _iter_go_module_facts(text: str) -> Iterator[Fact]:
    """Yield the dependencies in the `require` directives of go.mod."""
    block = ""
    for start, end, line in _iter_trimmed_lines(text):
        if line.endswith("(") or line == ")":
            block = line.rstrip("( \t") if line != ")" else ""
        elif "require" in {block, line[:7]} and (match := _GO_LINE.match(line)):
            yield Fact("depends_on", start, end, "", {"package": match["name"]})


def iter_swift_facts(text: str) -> Iterator[Fact]:
    """Yield the packages that Package.swift depends on, and the products it uses from them."""
    for pattern in (_SWIFT, _PRODUCT):
        yield from (_build_dependency(match, match["name"]) for match in pattern.finditer(text))


def _iter_xml_facts(text: str) -> Iterator[Fact]:
    """Yield the dependencies in pom.xml, a .NET project file or packages.config."""
    for element in _PROJECT.finditer(text):
        matches = _ATTRIBUTE.finditer(element["attributes"])
        attributes = {match["name"].lower(): match["value"] for match in matches}
        if package := attributes.get("include") or attributes.get("id"):
            yield _build_dependency(element, package)
    for element in _POM.finditer(text):
        tags: dict[str, str] = {}
        for tag in _TAG.finditer(element["inner"]):
            tags.setdefault(tag["name"], tag["value"])
        if len(tags) == len({"groupId", "artifactId"}):
            yield _build_dependency(element, f"{tags['groupId']}:{tags['artifactId']}")


def _iter_plain_facts(text: str) -> Iterator[Fact]:
    """Yield dependencies in go.mod, or in a requirements file that constrains a version."""
    lines = [
        line for *_, line in _iter_trimmed_lines(text) if line and not line.startswith(("#", "//"))
    ]
    if lines and lines[0].startswith("module "):
        return _iter_go_module_facts(text)
    requirement_lines = [line for line in lines if not line.startswith(("-", "git+", ".", "http"))]
    requirements = [
        requirement for line in requirement_lines if (requirement := _REQUIREMENT.match(line))
    ]
    if len(requirements) == len(requirement_lines) and any(
        requirement["constraint"] for requirement in requirements
    ):
        return (
            Fact("depends_on", start, end, "", {"package": required["name"]})
            for start, end, line in _iter_trimmed_lines(text)
            if not line.startswith(_INCLUDE) and (required := _REQUIREMENT.match(line))
        )
    return iter(())


def _read_manifest(text: str, find: Callable[[str], Iterable[Fact]]) -> CodeText:
    """Return the paragraphs of a text as units, and its dependencies if it is a manifest."""
    return CodeText(add_rest_units(text, ()), tuple(find(text)))


read_elixir: Final = partial(
    _read_manifest, find=lambda text: _iter_line_facts(text, _MIX) if "Mix.Project" in text else ()
)
read_gradle: Final = partial(_read_manifest, find=partial(_iter_line_facts, pattern=_GRADLE))
read_plain: Final = partial(_read_manifest, find=_iter_plain_facts)
read_ruby: Final = partial(_read_manifest, find=partial(_iter_line_facts, pattern=_RUBY))
read_xml: Final = partial(_read_manifest, find=_iter_xml_facts)


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
"""The packages of frameworks, by package manager; `=` separates a framework with another name."""

FRAMEWORKS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        (manager, package.partition("=")[0]): package.rpartition("=")[2]
        for manager, _, packages in (
            line.partition(" ") for line in _FRAMEWORK_PACKAGES.strip().split("\n")
        )
        for package in packages.split(", ")
    }
)
"""Names of frameworks, by package manager and package."""
