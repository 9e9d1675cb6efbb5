"""The rules that exclude files of a repository from the index, such as generated or vendored files.

Vendored code is recognized by path. The patterns are GitHub Linguist's, from
`lib/linguist/vendor.yml` at commit b45dbe9b2825a43285bcd035861be91cc0a7299e, verbatim in
`vendor.yml` next to its licence. Generated files are recognized by their names or first lines, with
the rules of Linguist's `generated.rb` for the file types that are indexed; in addition, the marks
`@generated` and DO NOT EDIT count in a comment of any language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from rag_assets.ingest.sources.globs import Rules, compile_globs
from rag_assets.systems.code_memory.sources.repositories.attributes import (
    DETECTABLE,
    DOCUMENTATION,
    GENERATED,
    VENDORED,
    Attributes,
    AttributeValue,
    is_binary,
)
from rag_assets.systems.code_memory.sources.repositories.names import repository_type_of
from rag_assets.systems.code_memory.sources.repositories.objects import LINK, REGULAR, SUBMODULE
from rag_assets.systems.code_memory.sources.repositories.translations import left_out_translations
from rag_assets.systems.code_memory.symbols.source_types import is_data

_AT_COMPONENT = ("(^|/)", r"(^|\/)")
_OWN = ".github/"
"""Folder of workflows and templates; Linguist lists it only to leave it out of its statistics."""
_IDLE = (r"([^\s]*)", "(.*?)")
"""Starts of patterns that match anything and therefore have no effect in a search."""


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The patterns, grouped by where they may match, so that few are tried at each position.

    Attributes:
        at_start: pattern that matches at the start of the path.
        at_component: pattern that matches at the start of any path component.
        anywhere: pattern that matches anywhere in the path.
    """

    at_start: re.Pattern[str]
    at_component: re.Pattern[str]
    anywhere: re.Pattern[str]


def is_vendored(path: str) -> bool:
    """Return whether a path belongs to vendored code.

    Args:
        path: the path of a file, below the top of its repository.
    """
    if path.startswith(_OWN):
        return False
    patterns = _patterns()
    if patterns.at_start.match(path) or patterns.anywhere.search(path):
        return True
    at = 0
    while True:
        if patterns.at_component.match(path, at):
            return True
        at = path.find("/", at) + 1
        if not at:
            return False


@cache
def _patterns() -> _Patterns:
    text = files(__package__).joinpath("vendor.yml").read_text("utf-8")
    start, component, anywhere = [], [], []
    for line in text.splitlines():
        if not line.startswith("- "):
            continue
        pattern = line[2:].strip()
        prefix = next((p for p in _AT_COMPONENT if pattern.startswith(p)), None)
        idle = next((p for p in _IDLE if pattern.startswith(p)), "")
        if prefix is not None:
            component.append(pattern[len(prefix) :])
        elif pattern.startswith("^"):
            start.append(pattern[1:])
        else:
            anywhere.append(pattern[len(idle) :])
    return _Patterns(*(_join_patterns(patterns) for patterns in (start, component, anywhere)))


def _join_patterns(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_NAMES: Final = re.compile(
    r"(?:^|/)(?:"
    # folders of tools and of their output
    r"\.idea/|Pods/|Carthage/Build/|__generated__/|node_modules/|Godeps/|htmlcov/|\.pnp\."
    r"|\.sqlx/query-[a-f\d]{64}\.json$"
    # lock files
    r"|(?:composer|Cargo|deno|flake|poetry|pdm|uv|pixi|Gopkg|glide|Pipfile|Podfile|Gemfile|yarn"
    r"|pubspec|mix|esy|\w+\.esy|MODULE\.bazel|mise|mise\.[^/]+|Cartfile|Brewfile|conda)\.lock$"
    r"|Cartfile\.resolved$|Package\.resolved$|npm-shrinkwrap\.json$|package-lock\.json$"
    r"|pnpm-lock\.yaml$|bun\.lockb?$|go\.sum$|\.terraform\.lock\.hcl$|packages\.lock\.json$"
    r"|project\.assets\.json$|Cargo\.toml\.orig$|(?:Julia)?Manifest(?:-v\d+\.\d+)?\.toml$"
    r"|gradle\.lockfile$|\.secrets\.baseline$"
    # wrappers of build tools
    r"|(?i:gradlew(?:\.bat)?|mvnw(?:\.cmd)?)$"
    r"|[^/]*(?i:\.designer\.(?:cs|vb)|\.feature\.cs|_tlb\.pas|\.(?:css|js|mjs|cjs|ts)\.map)$"
    r"|[^/]*\.(?:nib|xcworkspacedata|xcuserstate)$"
    r"|[^/]*.\.zep\.(?:c|h|php)$"
    r"|[^/]*[.-]min\.(?:js|css|mjs|cjs)$"
    r"|[^/]*(?:_pb2(?:_grpc)?\.pyi?|\.pb\.(?:go|cc|h|swift)|_pb\.(?:js|d\.ts)|\.g\.dart"
    r"|\.freezed\.dart)$"
    r")"
)
_HEADER_BYTES = 4_096
_HEADER_LINES = 20
_COMMENT: Final = re.compile(r"^\s*(?://|/\*|\*|#|--|;|%|<!--|\"\"\"|'''|\(\*|<\?php\s*(?:/|#))")
_MARKUP_COMMENT: Final = re.compile(r"^\s*<!--")
_MARK: Final = re.compile(
    r"(?<![\w@])@generated\b"
    r"|\bDO NOT (?:EDIT|MODIFY)\b"
    r"|(?i:\b(?:auto(?:matically|matic)?[ -]?generated|code generated|machine generated"
    r"|generated (?:code|file|by|from|automatically))"
    r"\b[^\n]{0,200}\bdo(?:n't| not) (?:edit|modify|change)\b)"
    r"|\b(?:Generated by the (?:protocol buffer compiler|gRPC)|Autogenerated by Thrift Compiler"
    r"|Generated by (?:Cython|Haxe|PEG\.js|jison|CoffeeScript|roxygen2|pkgdown|Doxygen)"
    r"|generated by jison|This file is (?:automatically generated by Racc|generated by jOOQ)"
    r"|The following code was generated by JFlex"
    r"|This is a generated file\. Not intended for manual editing)\b"
    r"|^// Generated by \S|^// Code generated "
)
_WORDS: Final = (b"generated", b"do not edit", b"do not modify")
"""Texts of which each match of _MARK contains one, in lower case."""
_RUNS_OF_LINES: Final = ("js", "css", "mjs", "cjs")
_MINIFIED_LENGTH = 110
_MARKUP: Final = ("md", "markdown", "mdx", "html", "htm", "xml", "rst", "adoc", "txt", "svg")
_SOURCE_MAP: Final = re.compile(rb"/[*/][#@] source(?:Mapping)?URL=")
_MAP_CONTENT: Final = re.compile(rb'\{"version":\d+,|/\*\* Begin line maps\. \*\*/\{')


def is_generated_name(path: str) -> bool:
    """Return whether programs write files of this name."""
    return _NAMES.search(path) is not None


def is_generated(path: str, content: bytes) -> bool:
    """Return whether a program wrote a file's content.

    Args:
        content: the whole content of the file.
    """
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower()
    if suffix in _RUNS_OF_LINES and _is_minified(content):
        return True
    if suffix == "map" and _MAP_CONTENT.match(content):
        return True
    if suffix in ("yml", "yaml") and b"recorded_with: VCR" in content[-200:]:
        return True
    return _has_generated_mark(suffix, content[:_HEADER_BYTES])


def _is_minified(content: bytes) -> bool:
    """Return whether lines are longer than people write, or the last line names a source map."""
    if not content:
        return False
    lines = content.count(b"\n") + 1
    if (len(content) - lines + 1) // lines > _MINIFIED_LENGTH:
        return True
    last = content[-_HEADER_BYTES:].split(b"\n")[-2:]
    return any(_SOURCE_MAP.match(line) for line in last)


def _has_generated_mark(suffix: str, head: bytes) -> bool:
    lowered = head.lower()
    if not any(word in lowered for word in _WORDS):
        return False
    comment = _MARKUP_COMMENT if suffix in _MARKUP else _COMMENT
    lines = head.decode("utf-8", "replace").split("\n")[:_HEADER_LINES]
    return any(comment.match(line) and _MARK.search(line) for line in lines)


ExclusionRule: TypeAlias = Literal[
    "submodule",
    "link",
    "not-included",
    "vendored",
    "generated",
    "translation",
    "undetectable",
    "empty",
    "lfs",
    "binary",
    "data",
    "too-large",
]
EXCLUSION_RULES: Final[tuple[ExclusionRule, ...]] = get_args(ExclusionRule)
"""All rules in the order in which they are tried; the first that applies to a file is counted."""

_LFS: Final = (b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/")
_LFS_BYTES = 1_024
_DATA_BYTES = 131_072
"""Size in bytes above which a data file is left out, unless it is configuration: only programs use
it."""


class Exclusion:
    """Decides which files are excluded.

    Args:
        include: globs of the files to take; empty: all files of a known type.
        exclude: globs of the files to leave out.
        attributes: attributes of the repository's files.
        modes: modes of all files of the repository by path, as in a Git tree.
    """

    def __init__(
        self,
        include: Sequence[str],
        exclude: Sequence[str],
        attributes: Attributes,
        modes: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._include = compile_globs(include, ignore_case=True) if include else None
        self._exclude = compile_globs(exclude, ignore_case=True)
        self._attributes = attributes
        self._folders: dict[str, tuple[bool, bool]] = {"": (False, False)}
        self._by_name = {path: self._by_path(path, mode) for path, mode in modes.items()}
        # A translation is excluded only if the text is indexed in another language.
        candidates = (path for path, rule in self._by_name.items() if rule is None)
        translations = left_out_translations(candidates)
        self._originals = frozenset(translations.values())
        for path in translations:
            if not self._is_demanded(path):
                self._by_name[path] = "translation"

    def by_name(self, path: str) -> ExclusionRule | None:
        """Return the rule that excludes a file regardless of its content; None if none does."""
        return self._by_name[path]

    def _by_path(self, path: str, mode: int) -> ExclusionRule | None:
        if mode == SUBMODULE:
            return "submodule"
        if mode == LINK or mode not in REGULAR:
            return "link"
        attributes = self._attributes.of(path)
        if not self._is_included(path, attributes):
            return "not-included"
        return _by_attributes(path, attributes)

    def by_content(self, path: str, content: bytes) -> ExclusionRule | None:
        """Return the rule that excludes a file because of its content; None if none does.

        Args:
            content: the whole content of the file.
        """
        if not content.strip():
            return "empty"
        if len(content) < _LFS_BYTES and content.startswith(_LFS):
            return "lfs"
        if is_binary(content):
            return "binary"
        told = self._attributes.of(path).get(GENERATED)
        if told is None and is_generated(path, content):
            return "generated"
        if len(content) > _DATA_BYTES and is_data(path) and not self._is_wanted(path):
            return "data"
        return None

    def _is_wanted(self, path: str) -> bool:
        """Return whether a file is required, or is the translation that is to be indexed."""
        return path in self._originals or self._is_demanded(path)

    def _is_demanded(self, path: str) -> bool:
        """Return whether `include` or attributes require a file, whatever its name and size."""
        return self._include is not None or _is_set(self._attributes.of(path).get(DETECTABLE))

    def is_excluded(self, path: str) -> bool:
        """Return whether `exclude` leaves a file out, or a folder above it."""
        folder, slash, name = path.rpartition("/")
        raw_folder, raw_name = _bytes(folder + slash), _bytes(name)
        excluded = self._exclude.decide(raw_folder, raw_name, is_folder=False) is True
        return excluded or self._folder(folder + slash)[1]

    def _is_included(self, path: str, attributes: dict[str, AttributeValue]) -> bool:
        folder, slash, name = path.rpartition("/")
        if self.is_excluded(path):
            return False
        included, _ = self._folder(folder + slash)
        raw_folder, raw_name = _bytes(folder + slash), _bytes(name)
        if self._include is None:
            return repository_type_of(path) is not None or _is_set(attributes.get(DETECTABLE))
        told = self._include.decide(raw_folder, raw_name, is_folder=False)
        return included if told is None else told

    def _folder(self, folder: str) -> tuple[bool, bool]:
        """Return whether everything below a folder is included, and whether it is excluded."""
        missing = []
        at = folder
        while at not in self._folders:
            missing.append(at)
            at = at[: at.rfind("/", 0, -1) + 1]
        included, excluded = self._folders[at]
        for path in reversed(missing):
            above, _, name = path[:-1].rpartition("/")
            raw_above, raw_name = _bytes(f"{above}/" if above else ""), _bytes(name)
            told = _decide(self._include, raw_above, raw_name)
            included = included if told is None else told
            excluded = excluded or _decide(self._exclude, raw_above, raw_name) is True
            self._folders[path] = included, excluded
        return included, excluded


def _by_attributes(path: str, attributes: dict[str, AttributeValue]) -> ExclusionRule | None:
    """Return the rule for a file's attributes and name; attributes take precedence."""
    documentation = _is_set(attributes.get(DOCUMENTATION))
    vendored = _is_switched_on(attributes.get(VENDORED))
    if vendored or (vendored is None and not documentation and is_vendored(path)):
        return "vendored"
    generated = _is_switched_on(attributes.get(GENERATED))
    if generated or (generated is None and is_generated_name(path)):
        return "generated"
    if _is_switched_on(attributes.get(DETECTABLE)) is False and not documentation:
        return "undetectable"
    if attributes.get("filter") == "lfs":
        return "lfs"
    return "binary" if attributes.get("binary") is True else None


def _decide(rules: Rules | None, folder: bytes, name: bytes) -> bool | None:
    return None if rules is None else rules.decide(folder, name, is_folder=True)


def _is_switched_on(value: AttributeValue) -> bool | None:
    """Return whether a linguist attribute is set and not "false"; None if it is unspecified."""
    if value is None or isinstance(value, bool):
        return value
    return value.lower() != "false"


def _is_set(value: AttributeValue) -> bool:
    return _is_switched_on(value) is True


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
