"""Places: the source type of a file, derived from its path before its content is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from rag_assets.systems.code_memory.symbols.source_types import SourceType

_PATHS: Final = 4_096
"""Maximum number of paths with cached results: a walk asks often, and for few files."""

_PROSE: Final = r"\.(?:md|markdown|mdx|rst|adoc|asciidoc|txt)$"

_PATTERNS: Final[Sequence[tuple[str, SourceType]]] = (
    (r"(?:^|/)\.cursor/rules/.*\.mdc?$|(?:^|/)\.(?:cursor|windsurf|cline)rules$", "cursor_rule"),
    (
        r"(?:^|/)\.claude/(?:rules/.*|[^/]*)\.md$|(?:^|/)(?:CLAUDE|AGENTS)(?:\.local)?\.md$",
        "claude_rule",
    ),
    (rf"(?:^|/)KNOWN[_-](?:BUGS|ISSUES){_PROSE}", "known_bug"),
    (
        rf"(?:^|/)(?:docs?/(?:[^/]+/)*(?:adrs?|decisions)|adrs?|decisions)/[^/]+{_PROSE}",
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
    (_PROSE, "doc"),
)
"""The first pattern that matches decides."""

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

_READ: Final = 4_096
"""Maximum number of characters examined, from the end of a path."""


_TEST: Final = re.compile(
    r"(?:^|/)(?:[Tt]ests?|__tests__|specs?|[\w.-]*\.\w*Tests)/|(?:^|/)test_[^/]*\.py$"
    r"|(?:_test|Test|\.test|\.spec|_spec)\.\w{1,6}$|Tests\.(?:cs|fs|java|kt|swift|vb)$"
)


@lru_cache(_PATHS)
def is_test(path: str) -> bool:
    """Return whether a file contains tests, according to its path.

    Args:
        path: POSIX path within the repository.
    """
    return _TEST.search(path[-_READ:]) is not None


@lru_cache(_PATHS)
def is_data(path: str) -> bool:
    """Return whether a file holds data rather than configuration, according to its type and path.

    Data are fixtures, snapshots, translations, and structured files outside the root folder and
    configuration folders that have no usual name of a configuration file.

    Args:
        path: POSIX path within the repository.
    """
    shown = path[-_READ:]
    if _TRANSLATIONS.search(shown):
        return True
    if not _DATA.search(shown) or type_of_place(path) in {"config", "package"}:
        return False
    return _TEST_DATA.search(shown) is not None or _CONFIGURATION.search(shown) is None


@lru_cache(_PATHS)
def type_of_place(path: str) -> SourceType:
    """Return the source type of a file by its path; "code" if the path matches no pattern.

    Args:
        path: POSIX path within the repository.
    """
    shown = path[-_READ:]
    return next((kind for pattern, kind in _RULES if pattern.search(shown)), "code")
