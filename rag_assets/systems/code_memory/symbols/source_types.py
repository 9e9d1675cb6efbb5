"""The source types of a repository's documents and chunks.

The path of a file determines the type of its document, before its content is read. The type of a
chunk also depends on its definition, and on ancestors and uses in other files: a class in
app/Models that does not extend a model is not a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, TypeAlias, get_args

SourceType: TypeAlias = Literal[
    "route",
    "controller",
    "controller_method",
    "model",
    "model_relation",
    "migration",
    "table",
    "service",
    "job",
    "event",
    "listener",
    "policy",
    "middleware",
    "request",
    "resource",
    "config",
    "package",
    "readme",
    "doc",
    "cursor_rule",
    "claude_rule",
    "api_endpoint",
    "run_summary",
    "file_change",
    "known_bug",
    "adr",
    "scip",
    "code",
]

SOURCE_TYPES: Final[tuple[SourceType, ...]] = get_args(SourceType)


_MAX_PATHS: Final = 4_096
"""Maximum number of paths with cached results."""

_PROSE_NAMES: Final = r"\.(?:md|markdown|mdx|rst|adoc|asciidoc|txt)$"

_PATTERNS: Final[Sequence[tuple[str, SourceType]]] = (
    (r"(?:^|/)\.cursor/rules/.*\.mdc?$|(?:^|/)\.(?:cursor|windsurf|cline)rules$", "cursor_rule"),
    (
        r"(?:^|/)\.claude/(?:rules/.*|[^/]*)\.md$|(?:^|/)(?:CLAUDE|AGENTS)(?:\.local)?\.md$",
        "claude_rule",
    ),
    (rf"(?:^|/)KNOWN[_-](?:BUGS|ISSUES){_PROSE_NAMES}", "known_bug"),
    (
        rf"(?:^|/)(?:docs?/(?:[^/]+/)*(?:adrs?|decisions)|adrs?|decisions)/[^/]+{_PROSE_NAMES}",
        "adr",
    ),
    (r"(?:^|/)README(?:[._-][^/]*)?$", "readme"),
    (
        r"""(?x) (?:^|/) (?: composer\.json | package\.json | deno\.jsonc? | Podfile
        | [^/]+\.podspec | Package\.swift | pyproject\.toml | setup\.(?:cfg|py) | Pipfile
        | requirements[^/]*\.(?:txt|in) | requirements/[^/]+\.(?:txt|in) | go\.mod | go\.work
        | packages\.config | Brewfile | environment\.ya?ml | (?:build|settings)\.sbt | bower\.json
        | Cargo\.toml | pom\.xml | build\.gradle(?:\.kts)?
        | Gemfile | [^/]+\.gemspec | pubspec\.ya?ml | mix\.exs | [^/]+\.(?:cs|fs|vb)proj ) $""",
        "package",
    ),
    (r"(?:^|/)database/migrations/.*\.php$", "migration"),
    (
        r"""(?x) (?:^|/) (?: config/.*\.(?:php|ya?ml|json|toml|ini) | settings(?:/[^/]+)?\.py
        | settings/.*\.py | \.env\.(?:[\w-]+\.)?(?:example|dist|sample|template)
        | (?:[\w-]+\.)?env\.(?:example|dist|sample|template)
        | (?:docker-)?compose(?:\.[\w-]+)?\.ya?ml
        | application(?:-[\w-]+)?\.(?:ya?ml|properties) | \.editorconfig
        | [^/]+\.(?:ini|cfg|toml|properties) ) $""",
        "config",
    ),
    (_PROSE_NAMES, "doc"),
)
"""Patterns of paths with their source types; the first pattern that matches decides."""

_RULES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), source_type) for pattern, source_type in _PATTERNS
)

_DATA: Final = re.compile(r"(?i)\.(?:json|jsonl|json5|ya?ml|toml|ini|xml|csv|tsv|properties)$")
_CONFIGURATION: Final = re.compile(
    r"""(?xi) ^[^/]*$ | (?:^|/) (?: \.[^/]+/(?:[^/]+/)*[^/]+ | \.[^/]+
    | (?:config|configs|conf|configuration|settings|deploy|deployment|helm|charts|k8s|kubernetes
        |manifests|ansible|infra|terraform|docker)/(?:[^/]+/){0,2}[^/]+
    | [^/]*(?:config|settings|manifest|schema|options|compose|workflow)s?[^/]*\.\w+
    | (?:tsconfig|jsconfig|openapi|swagger|asyncapi|chart|values|pubspec|vercel|netlify|nest-cli
        |angular|project|workspace|nx|turbo|lerna|app|application|appsettings|launchsettings)
        (?:[.-][^/]*)?\.\w+ ) $"""
)
_TEST_DATA: Final = re.compile(
    r"(?i)(?:^|/)(?:__)?(?:fixtures?|testdata|test[-_]data|cassettes|mocks?|snapshots?|goldens?"
    r"|samples?|seeds?|stubs)(?:__)?/"
)
_TRANSLATIONS: Final = re.compile(
    r"(?i)(?:^|/)(?:langs?|languages?|locales?|i18n|l10n|intl|translations?|lc_messages)/"
    r"[^\n]*\.(?:json|json5|ya?ml|php|ini|properties|xml|toml)$"
)

_MAX_PATH_CHARACTERS: Final = 4_096
"""Maximum number of characters at the end of a path that are examined."""


_TEST: Final = re.compile(
    r"(?:^|/)(?:[Tt]ests?|__tests__|specs?|[\w.-]*\.\w*Tests)/|(?:^|/)test_[^/]*\.py$"
    r"|(?:_test|Test|\.test|\.spec|_spec)\.\w{1,6}$|Tests\.(?:cs|fs|java|kt|swift|vb)$"
)


@lru_cache(_MAX_PATHS)
def is_test(path: str) -> bool:
    """Return whether a file's path shows that it contains tests."""
    return _TEST.search(path[-_MAX_PATH_CHARACTERS:]) is not None


@lru_cache(_MAX_PATHS)
def is_data(path: str) -> bool:
    """Return whether a file contains data rather than configuration, by its type and path.

    Data are fixtures, snapshots and translations, and structured files outside the root folder and
    configuration folders that are not named like a configuration file.
    """
    path_end = path[-_MAX_PATH_CHARACTERS:]
    if _TRANSLATIONS.search(path_end):
        return True
    if not _DATA.search(path_end) or get_type_of_path(path) in {"config", "package"}:
        return False
    return _TEST_DATA.search(path_end) is not None or _CONFIGURATION.search(path_end) is None


@lru_cache(_MAX_PATHS)
def get_type_of_path(path: str) -> SourceType:
    """Return the source type of a file by its path; "code" if the path matches no pattern."""
    path_end = path[-_MAX_PATH_CHARACTERS:]
    return next((kind for pattern, kind in _RULES if pattern.search(path_end)), "code")


Kinds: TypeAlias = Mapping[str, str]
"""Source types by the qualified names of one file's definitions."""

_TYPES_BY_ROLE: Final[Mapping[str, SourceType]] = {
    "route": "route",
    "group": "route",
    "schema": "migration",
    "operation": "api_endpoint",
    "ability": "policy",
}
_METHOD_TYPES: Final[Mapping[str, SourceType]] = {"controller": "controller_method"}
_PROSE_TYPES: Final = frozenset(
    {"readme", "doc", "adr", "cursor_rule", "claude_rule", "known_bug", "run_summary"}
)
_KEY_TYPES: Final = frozenset({"config", "package"})
_SEPARATORS: Final = re.compile(r"::|\.|#")
_FILE_TYPES: Final = frozenset({*_KEY_TYPES, "migration", "table", "route", "api_endpoint"})
_MEMBER_ROLES: Final = frozenset({"method", "relation"})


def get_source_type(role: str, symbol: str, kinds: Kinds, place: str) -> str:
    """Return the source type of a chunk.

    Args:
        role, symbol: role and name of its definition.
        kinds: the source types of the document's definitions, by name.
        place: source type of its document's path; an unknown type counts as "code".
    """
    by_path = place if place in SOURCE_TYPES else "code"
    if role in _TYPES_BY_ROLE:
        return _TYPES_BY_ROLE[role]
    if by_path in _PROSE_TYPES or role == "derived":
        return by_path
    if role == "section":
        return "doc"
    if role == "key":
        return by_path if by_path in _KEY_TYPES else "code"
    owner = _find_type_of_owner(symbol, kinds)
    if role == "relation" and owner == "model":
        return "model_relation"
    if role in _MEMBER_ROLES:
        owner = _METHOD_TYPES.get(owner or "", owner)
    # For a class, the path is only a hint, which `kinds` has already used or rejected.
    return owner or (by_path if by_path in _FILE_TYPES else "code")


def _find_type_of_owner(symbol: str, kinds: Kinds) -> str | None:
    """Return the type of the innermost definition that contains a name, else the file's type."""
    name = symbol
    while name:
        if name in kinds:
            return kinds[name]
        ends = [separator.start() for separator in _SEPARATORS.finditer(name)]
        name = name[: ends[-1]] if ends else ""
    return kinds.get("")
