"""Media types of files in repositories, by suffix or by well-known name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rag_assets.ingest.parsing.media_types import HTML, MARKDOWN, PLAIN, find_media_type

_RUBY, _SHELL, _PYTHON, _PHP = "text/x-ruby", "text/x-shell", "text/x-python", "text/x-php"
_OTHER = "text/x-other"
_INI = "text/x-ini"
_TYPES_BY_NAME: Final[Mapping[str, str]] = {
    **dict.fromkeys(("podfile", "gemfile", "rakefile", "fastfile", "brewfile", "guardfile"), _RUBY),
    **dict.fromkeys(("capfile", "dangerfile", "steepfile", "vagrantfile"), _RUBY),
    **dict.fromkeys(("build", "build.bazel", "workspace", "workspace.bazel", "tiltfile"), _OTHER),
    **dict.fromkeys(("earthfile", "meson.build", "snakefile"), _OTHER),
    "jenkinsfile": "text/x-groovy",
    **dict.fromkeys(("dockerfile", "containerfile", "makefile", "gnumakefile", "justfile"), PLAIN),
    **dict.fromkeys(("procfile", "cartfile", "license", "licence", "copying", "notice"), PLAIN),
    **dict.fromkeys(("readme", "changelog", "contributing", "authors", "codeowners"), PLAIN),
    **dict.fromkeys(("cmakelists.txt", "go.mod", "go.work", "pipfile"), PLAIN),
    **dict.fromkeys((".cursorrules", ".windsurfrules", ".clinerules"), PLAIN),
    **dict.fromkeys((".editorconfig", ".env.example", ".env.dist", ".env.sample"), _INI),
    ".env.template": _INI,
    "artisan": _PHP,
    "sconstruct": _PYTHON,
    "wscript": _PYTHON,
}
_TYPES_BY_SUFFIX: Final[Mapping[str, str]] = {
    "mdc": MARKDOWN,
    "podspec": _RUBY,
    "gemspec": _RUBY,
    "rake": _RUBY,
    "rbi": _RUBY,
    "ru": _RUBY,
    "command": _SHELL,
    "modulemap": PLAIN,
    # Suffixes that Drupal and older applications use.
    **dict.fromkeys(("inc", "install", "module", "phtml", "theme"), _PHP),
}
_VARIANTS: Final = dict.fromkeys(("containerfile", "dockerfile", "makefile"), PLAIN) | {
    "jenkinsfile": "text/x-groovy"
}
"""Names that may have any suffix, as in `Dockerfile.dev`."""
_SCRIPT: Final = re.compile(r"(?i)(?:^|/)(?:s?bin|exe|scripts?|hooks|\.husky)/(?:[^/]+/)*[^./]+$")
"""Matches files without a suffix in folders of scripts."""
_TEMPLATE = "text/x-template"
_TEMPLATE_FOLDER: Final = re.compile(
    r"(?i)(?:^|/)_?(?:templates?|views?|layouts?|partials?|includes?|components?|themes?|src|app|lib)/"
)
"""Matches folders in which HTML is part of a program: its expressions and attributes are kept."""


def find_repository_type(path: str) -> str | None:
    """Return the media type of a file in a repository; None if its name is unknown."""
    media_type = find_media_type(path)
    if media_type == HTML and _TEMPLATE_FOLDER.search(path) is not None:
        return _TEMPLATE
    if media_type is not None:
        return media_type
    name = path.rpartition("/")[2].lower()
    named = _TYPES_BY_NAME.get(name) or _VARIANTS.get(name.partition(".")[0])
    if named is not None:
        return named
    if _SCRIPT.search(path) is not None:
        return PLAIN
    return _TYPES_BY_SUFFIX.get(name.rpartition(".")[2] if "." in name else "")
