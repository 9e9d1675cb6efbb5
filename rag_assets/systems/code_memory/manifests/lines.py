"""Dependencies in manifests that are programs or plain lists.

Each dependency yields the fact `depends_on`; see manifests.facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.units import covering
from rag_assets.systems.code_memory.manifests.facts import dependency, facts_of_entries, requirement
from rag_assets.systems.code_memory.settings.entries import toml_entries
from rag_assets.systems.code_memory.symbols.model import CodeText

_GROUPS: Final = {
    "test": "development",
    "tests": "development",
    "development": "development",
    "dev": "development",
    "provided": "optional",
}
_Q: Final = "[\"']"
_NAME: Final = r"[^\"'\n]{1,300}"

_GO: Final = re.compile(
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
    r"^[ \t]*+(?P<group>\w*(?:[iI]mplementation|[aA]pi|[cC]ompileOnly|[rR]untimeOnly|[cC]ompile"
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


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.splitlines(keepends=True):
        yield at, line.rstrip("\r\n")
        at += len(line)


def requirements(text: str, group: str = "runtime") -> Iterator[Fact]:
    """Yield the dependencies in a pip requirements file."""
    for at, line in _lines(text):
        content = line.strip()
        if not content or content.startswith(_INCLUDE):
            continue
        told = requirement(content)
        if told is not None:
            start = at + line.index(content[0])
            yield dependency((start, start + len(content)), *told, group, "pip")


def go_modules(text: str) -> Iterator[Fact]:
    """Yield the dependencies in `require` of go.mod; other directives have no plain version."""
    block = ""
    for at, line in _lines(text):
        content = line.strip()
        if content.endswith("(") or content == ")":
            block = content.rstrip("( \t")
            block = "" if block == ")" else block
            continue
        found = _GO.match(content)
        if found is None or not (block == "require" or content.startswith("require")):
            continue
        group = "indirect" if "// indirect" in found["more"] else "runtime"
        start = at + line.index(content[0])
        yield dependency(
            (start, start + len(content)), found["name"], found["version"], group, "go"
        )


def ruby(text: str) -> Iterator[Fact]:
    """Yield the dependencies in a Gemfile, gemspec, Podfile or podspec."""
    group = "runtime"
    pods = "Pod::Spec" in text
    for at, line in _lines(text):
        if head := _GROUP.match(line):
            group = _group_of(head["names"])
        elif line.strip() == "end":
            group = "runtime"
        elif found := _RUBY.match(line):
            manager = "cocoapods" if pods or found["pod"] else "bundler"
            told = "development" if found["development"] else group
            start, end = at + len(line) - len(line.lstrip()), at + len(line.rstrip())
            yield dependency((start, end), found["name"], found["version"] or "", told, manager)


def _group_of(names: str) -> str:
    first = names.replace(":", " ").replace(",", " ").split()
    return _GROUPS.get(first[0].strip("\"'"), first[0].strip("\"'")) if first else "runtime"


def gradle(text: str) -> Iterator[Fact]:
    """Yield the dependencies in a Gradle build file."""
    for at, line in _lines(text):
        if found := _GRADLE.match(line):
            group = "development" if "test" in found["group"].lower() else "runtime"
            span = at + len(line) - len(line.lstrip()), at + len(line.rstrip())
            yield dependency(
                span,
                found["name"],
                found["version"] or "",
                group,
                "maven",
            )


def swift(text: str) -> Iterator[Fact]:
    """Yield the dependencies in Package.swift."""
    for found in _SWIFT.finditer(text):
        version = (found["version"] or "").strip().strip(",").strip()
        yield dependency(found.span(), found["name"], version, "runtime", "swiftpm")
    for product in _PRODUCT.finditer(text):  # the modules that its sources import
        yield dependency(product.span(), product["name"], "", "runtime", "swiftpm")


def mix(text: str) -> Iterator[Fact]:
    """Yield the dependencies in mix.exs."""
    for at, line in _lines(text):
        if found := _MIX.match(line):
            group = "development" if "only:" in found["more"] else "runtime"
            span = at + len(line) - len(line.lstrip()), at + len(line.rstrip())
            yield dependency(
                span,
                found["name"],
                found["version"] or "",
                group,
                "hex",
            )


def xml(text: str) -> Iterator[Fact]:
    """Yield the dependencies in pom.xml, a .NET project file or packages.config."""
    for found in _PROJECT.finditer(text):
        told = {
            one["name"].lower(): one["value"] for one in _ATTRIBUTE.finditer(found["attributes"])
        }
        package = told.get("include") or told.get("id")
        if package:
            version = told.get("version", "")
            yield dependency(found.span(), package, version, "runtime", "nuget")
    for found in _POM.finditer(text):
        tags: dict[str, str] = {}
        for tag in _TAG.finditer(found["inner"]):
            tags.setdefault(tag["name"], tag["value"])
        if "groupId" in tags and "artifactId" in tags:
            package = f"{tags['groupId']}:{tags['artifactId']}"
            group = _GROUPS.get(tags.get("scope", ""), "runtime")
            version = tags.get("version", "")
            yield dependency(found.span(), package, version, group, "maven")


def read_groovy(text: str) -> CodeText:
    """Return the paragraphs of Groovy, and the dependencies of a build file."""
    return _reading(text, "groovy", gradle(text))


def read_kotlin(text: str) -> CodeText:
    """Return the paragraphs of Kotlin, and the dependencies of a build file."""
    return _reading(text, "kotlin", gradle(text))


def read_elixir(text: str) -> CodeText:
    """Return the paragraphs of Elixir, and the dependencies of mix.exs."""
    return _reading(text, "elixir", mix(text) if "Mix.Project" in text else ())


def read_ruby(text: str) -> CodeText:
    """Return the paragraphs of Ruby, and the dependencies of its manifests."""
    return _reading(text, "ruby", ruby(text))


def read_xml(text: str) -> CodeText:
    """Return the paragraphs of XML, and the dependencies of its manifests."""
    return _reading(text, "xml", xml(text))


def read_plain(text: str) -> CodeText:
    """Return the paragraphs of a plain text; if the text is a manifest, also its dependencies."""
    return _reading(text, "plain", _plain_facts(text))


def _plain_facts(text: str) -> Iterator[Fact]:
    """Yield dependencies in go.mod, or in a requirements list with at least one constraint."""
    lines = [line.strip() for _, line in _lines(text)]
    told = [line for line in lines if line and not line.startswith(("#", "//"))]
    if told and told[0].startswith("module "):
        return go_modules(text)
    named = [line for line in told if not line.startswith(("-", "git+", ".", "http"))]
    found = [requirement(line) for line in named]
    if found and all(found) and any(one is not None and one[1] for one in found):
        return requirements(text)
    return iter(())


def _reading(text: str, language: str, facts: Iterable[Fact]) -> CodeText:
    return CodeText(covering(text, ()), tuple(facts), language)


def pipfile(text: str) -> Iterator[Fact]:
    """Yield the dependencies in a Pipfile."""
    return facts_of_entries("toml", text, toml_entries(text)[0])


_BY_NAME: Final[Mapping[str, Callable[[str], Iterator[Fact]]]] = {
    "build.gradle": gradle,
    "build.gradle.kts": gradle,
    "gemfile": ruby,
    "go.mod": go_modules,
    "mix.exs": mix,
    "package.swift": swift,
    "packages.config": xml,
    "pipfile": pipfile,
    "podfile": ruby,
    "pom.xml": xml,
}
_BY_SUFFIX: Final[Mapping[str, Callable[[str], Iterator[Fact]]]] = {
    ".csproj": xml,
    ".fsproj": xml,
    ".gemspec": ruby,
    ".podspec": ruby,
    ".vbproj": xml,
}


def statements_of(path: str, text: str) -> Iterator[Fact]:
    """Return the dependencies in a manifest, recognized by its file name; empty for other files.

    Args:
        path: POSIX path within the repository.
    """
    name = PurePosixPath(path).name.lower()
    made = _BY_NAME.get(name) or _BY_SUFFIX.get(PurePosixPath(name).suffix)
    if made is not None:
        return made(text)
    if name.endswith((".txt", ".in")) and "requirements" in path.lower():
        development = any(word in name for word in ("dev", "test", "lint"))
        return requirements(text, "development" if development else "runtime")
    return iter(())
