"""The rules that exclude files of a repository from the index, such as generated or vendored files.

Vendored code is recognized by path. The patterns are GitHub Linguist's, from
`lib/linguist/vendor.yml` at commit b45dbe9b2825a43285bcd035861be91cc0a7299e, verbatim in
`vendor.yml` next to its licence. Generated files are recognized by their names or first lines, with
the rules of Linguist's `generated.rb` for the file types that are indexed; in addition, the marks
`@generated` and DO NOT EDIT count in a comment of any language.

Only one translation of a text is indexed. Files are translations of each other if their
paths differ only in a language, and if there are at least three languages: `lang/de/auth.php`,
`intl/de-DE.json`, `messages_de.properties`. Outside a folder or a file format for translations,
they must include English or the original text (`messages.properties`), or have five languages,
since `markets/de.yml` is about a country. Outside, configuration never counts as translations.
Program files count only within folders named after languages. The original text is indexed; without
it, English; without both, the language of most files.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from itertools import chain
from typing import Final, Literal, TypeAlias

from rag_assets.ingest.sources.globs import compile_globs
from rag_assets.systems.code_memory.sources.repositories.attributes import (
    DETECTABLE,
    DOCUMENTATION,
    GENERATED,
    VENDORED,
    Attributes,
    AttributeValue,
    is_binary,
    split_path,
)
from rag_assets.systems.code_memory.sources.repositories.names import find_repository_type
from rag_assets.systems.code_memory.sources.repositories.objects import REGULAR, SUBMODULE
from rag_assets.systems.code_memory.symbols.source_types import is_data

_COMPONENT_STARTS = ("(^|/)", r"(^|\/)")
_GITHUB_FOLDER = ".github/"
"""Folder of workflows and templates; Linguist lists it only to leave it out of its statistics."""
_IDLE_STARTS = (r"([^\s]*)", "(.*?)")
"""Starts of patterns that match anything and therefore have no effect in a search."""


def is_vendored(path: str) -> bool:
    """Return whether a path within its repository belongs to vendored code."""
    if path.startswith(_GITHUB_FOLDER):
        return False
    at_start, at_component, anywhere = _load_patterns()
    if at_start.match(path) or anywhere.search(path):
        return True
    components = chain((0,), (slash.end() for slash in re.finditer("/", path)))
    return any(at_component.match(path, at) for at in components)


@cache
def _load_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the patterns for the start of a path, the start of any component, and anywhere."""
    text = files(__package__).joinpath("vendor.yml").read_text("utf-8")
    start, component, anywhere = [], [], []
    for line in text.splitlines():
        if not line.startswith("- "):
            continue
        pattern = line[2:].strip()
        prefix = next((p for p in _COMPONENT_STARTS if pattern.startswith(p)), None)
        idle = next((p for p in _IDLE_STARTS if pattern.startswith(p)), "")
        if prefix is not None:
            component.append(pattern[len(prefix) :])
        elif pattern.startswith("^"):
            start.append(pattern[1:])
        else:
            anywhere.append(pattern[len(idle) :])
    first, second, third = (
        re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
        for patterns in (start, component, anywhere)
    )
    return first, second, third


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
_MARK_TEXTS: Final = (b"generated", b"do not edit", b"do not modify")
"""Texts in lower case; every match of _MARK contains one of them."""
_RUNS_OF_LINES: Final = ("js", "css", "mjs", "cjs")
_MINIFIED_LINE_BYTES = 110
_MARKUP: Final = ("md", "markdown", "mdx", "html", "htm", "xml", "rst", "adoc", "txt", "svg")
_SOURCE_MAP: Final = re.compile(rb"/[*/][#@] source(?:Mapping)?URL=")
_MAP_CONTENT: Final = re.compile(rb'\{"version":\d+,|/\*\* Begin line maps\. \*\*/\{')


def is_generated_name(path: str) -> bool:
    """Return whether a file's name shows that a program has written it."""
    return _NAMES.search(path) is not None


def is_generated(path: str, content: bytes) -> bool:
    """Return whether a file's content shows that a program has written it."""
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower()
    if suffix in _RUNS_OF_LINES and _is_minified(content):
        return True
    if suffix == "map" and _MAP_CONTENT.match(content):
        return True
    if suffix in ("yml", "yaml") and b"recorded_with: VCR" in content[-200:]:
        return True
    return _has_generated_mark(suffix, content[:_HEADER_BYTES])


def _is_minified(content: bytes) -> bool:
    """Return whether lines are very long on average, or the last line names a source map."""
    if not content:
        return False
    lines = content.count(b"\n") + 1
    if (len(content) - lines + 1) // lines > _MINIFIED_LINE_BYTES:
        return True
    last = content[-_HEADER_BYTES:].split(b"\n")[-2:]
    return any(_SOURCE_MAP.match(line) for line in last)


def _has_generated_mark(suffix: str, head: bytes) -> bool:
    lowered = head.lower()
    if not any(word in lowered for word in _MARK_TEXTS):
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
"""The rules in the order in which they are tried; the first that applies to a file is counted."""

_LFS: Final = (b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/")
_LFS_BYTES = 1_024
_DATA_BYTES = 131_072
"""Size in bytes above which data files that are not configuration are excluded."""


class Exclusion:
    """Decides which files of a repository are excluded.

    Args:
        include: globs of the files to take; empty: all files of a known type.
        exclude: globs of files to exclude.
        modes: modes of all files of the repository by path, as in a Git tree.
    """

    def __init__(
        self,
        include: Sequence[str],
        exclude: Sequence[str],
        attributes: Attributes,
        modes: Mapping[str, int],
    ) -> None:
        self._include = compile_globs(include, ignore_case=True) if include else None
        self._exclude = compile_globs(exclude, ignore_case=True)
        self._attributes = attributes
        self._folders: dict[str, tuple[bool, bool]] = {"": (False, False)}
        self._by_name = {path: self._find_path_rule(path, mode) for path, mode in modes.items()}
        # A translation is excluded only if the text is indexed in another language.
        candidates = (path for path, rule in self._by_name.items() if rule is None)
        translations = find_superfluous_translations(candidates)
        self._originals = frozenset(translations.values())
        for path in translations:
            if not self._is_demanded(path):
                self._by_name[path] = "translation"

    def find_name_rule(self, path: str) -> ExclusionRule | None:
        """Return the rule that excludes a file because of its path, mode or attributes, or None."""
        return self._by_name[path]

    def _find_path_rule(self, path: str, mode: int) -> ExclusionRule | None:
        if mode == SUBMODULE:
            return "submodule"
        if mode not in REGULAR:
            return "link"
        attributes = self._attributes.get(path)
        if not self._is_included(path, attributes):
            return "not-included"
        return _find_attribute_rule(path, attributes)

    def find_content_rule(self, path: str, content: bytes) -> ExclusionRule | None:
        """Return the rule that excludes a file because of its content, or None."""
        if not content.strip():
            return "empty"
        if len(content) < _LFS_BYTES and content.startswith(_LFS):
            return "lfs"
        if is_binary(content):
            return "binary"
        attribute = self._attributes.get(path).get(GENERATED)
        if attribute is None and is_generated(path, content):
            return "generated"
        if len(content) > _DATA_BYTES and is_data(path):
            is_kept = path in self._originals or self._is_demanded(path)
            return None if is_kept else "data"
        return None

    def _is_demanded(self, path: str) -> bool:
        """Return whether `include` or the attributes ask for a file, whatever its type and size."""
        return self._include is not None or _is_set(self._attributes.get(path).get(DETECTABLE))

    def is_excluded(self, path: str) -> bool:
        """Return whether `exclude` matches a file or a folder that contains it."""
        excluded = self._exclude.decide(*split_path(path), is_folder=False) is True
        return excluded or self._find_folder_rules(path[: path.rfind("/") + 1])[1]

    def _is_included(self, path: str, attributes: dict[str, AttributeValue]) -> bool:
        if self.is_excluded(path):
            return False
        if self._include is None:
            return find_repository_type(path) is not None or _is_set(attributes.get(DETECTABLE))
        decision = self._include.decide(*split_path(path), is_folder=False)
        included, _ = self._find_folder_rules(path[: path.rfind("/") + 1])
        return included if decision is None else decision

    def _find_folder_rules(self, folder: str) -> tuple[bool, bool]:
        """Return whether `include` takes all files in a folder, and whether `exclude` does."""
        missing = []
        at = folder
        while at not in self._folders:
            missing.append(at)
            at = at[: at.rfind("/", 0, -1) + 1]
        included, excluded = self._folders[at]
        for path in reversed(missing):
            above, name = split_path(path[:-1])
            if self._include is not None:
                decision = self._include.decide(above, name, is_folder=True)
                included = included if decision is None else decision
            excluded = excluded or self._exclude.decide(above, name, is_folder=True) is True
            self._folders[path] = included, excluded
        return included, excluded


def _find_attribute_rule(path: str, attributes: dict[str, AttributeValue]) -> ExclusionRule | None:
    """Return the rule by which the attributes of a file, or else its name, exclude it, or None."""
    documentation = _is_set(attributes.get(DOCUMENTATION))
    vendored = _is_attribute_enabled(attributes.get(VENDORED))
    if vendored or (vendored is None and not documentation and is_vendored(path)):
        return "vendored"
    generated = _is_attribute_enabled(attributes.get(GENERATED))
    if generated or (generated is None and is_generated_name(path)):
        return "generated"
    if _is_attribute_enabled(attributes.get(DETECTABLE)) is False and not documentation:
        return "undetectable"
    if attributes.get("filter") == "lfs":
        return "lfs"
    return "binary" if attributes.get("binary") is True else None


def _is_attribute_enabled(value: AttributeValue) -> bool | None:
    """Return whether a linguist attribute is set and not "false"; None if it is unspecified."""
    if value is None or isinstance(value, bool):
        return value
    return value.lower() != "false"


def _is_set(value: AttributeValue) -> bool:
    return _is_attribute_enabled(value) is True


_MIN_TRANSLATIONS: Final = 3
"""Minimum number of files that differ only in language for them to count as translations."""
_MIN_TRANSLATIONS_ELSEWHERE: Final = 5
"""Minimum number outside of translation folders if there is neither an English nor an original."""
_MAX_LANGUAGE_PARTS: Final = 3
"""Number of parts at the end of a path that may be its language."""
_CODE_WORDS: Final = (
    "aa ab af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv"
    " cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho"
    " hr ht hu hy hz ia id ie ig ii ik io is it iu iw ja jv ka kg ki kj kk kl km kn ko kr ks"
    " ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl"
    " nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl"
    " sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve"
    " vi vo wa wo xh yi yo za zh zu ckb ast fil hsb kab kmr pap sah scn tok yue"
)
_CODES: Final = frozenset(_CODE_WORDS.split())
"""Language codes of ISO 639."""
_LANGUAGE: Final = re.compile(
    r"(?P<code>[a-z]{2,3})(?:[-_](?:r?[A-Z]{2}|[a-z]{2}|[A-Z][a-z]{3}|\d{3}|latin|cyrillic"
    r"|(?:in)?formal|valencia)){0,2}(?=[./]|$)"
)
_BEFORE_LANGUAGE: Final = re.compile(r"(?:^|/)(?:values-)?|[._-]")
_FOLDER: Final = re.compile(
    r"(?i)(?:^|/)(?:langs?|languages?|locales?|i18n|l10n|intl|translations?|messages)/"
)
_TRANSLATION_PATH: Final = re.compile(
    rf"{_FOLDER.pattern}|\.lproj/|\.(?:arb|ftl|mo|po|strings|xlf|xliff)$"
)
_CONFIGURATION: Final = re.compile(
    r"(?i)(?:^|/)(?:(?:configs?|conf|configuration|settings|deploy|deployment|helm|charts|k8s"
    r"|kubernetes|manifests|ansible|infra|terraform|docker)/|values[._-][^/]*\.ya?ml$)"
)
_DATA_SUFFIXES: Final = (
    *(".arb", ".ftl", ".ini", ".json", ".json5", ".mo", ".php", ".po", ".properties", ".resx"),
    *(".strings", ".toml", ".xlf", ".xliff", ".xml", ".yaml", ".yml", ".md", ".txt", ".html"),
)
_PROGRAM_SUFFIXES: Final = (".php", ".js", ".ts", ".mjs", ".rb", ".py", ".md", ".txt", ".html")
_ENGLISH: Final = ("en", "en-us", "en_us", "en-gb", "en_gb")
_AMBIGUOUS_CODES: Final = frozenset(("as", "cs", "is", "ml", "or", "pl", "ps", "ts"))
"""Codes that, in paths of programs, are more likely programming languages or ordinary words."""


def find_superfluous_translations(paths: Iterable[str]) -> dict[str, str]:
    """Return the translations to leave out, each with the file that is indexed instead."""
    all_paths = frozenset(paths)
    alike: defaultdict[bytes, dict[str, str]] = defaultdict(dict)
    for path in all_paths:
        for template, language in _iter_language_templates(path):
            alike[_hash_template(template)][language] = path
    groups: list[tuple[str, dict[str, str]]] = []
    for key, versions in alike.items():
        if len(versions) >= _MIN_TRANSLATIONS:
            original = _find_original(key, versions)
            if _are_translations(versions, has_original=original in all_paths):
                groups.append((original, versions))
    spread = Counter(language for _, versions in groups for language in versions)
    left_out: dict[str, str] = {}
    for original, versions in groups:
        fallback = min(versions, key=lambda code: (-spread[code], code))
        language = _find_english(versions) or fallback
        indexed = original if original in all_paths else versions[language]
        left_out.update((path, indexed) for path in versions.values() if path != indexed)
    return left_out


def _are_translations(versions: Mapping[str, str], *, has_original: bool) -> bool:
    path = next(iter(versions.values()))
    is_program = path.lower().endswith(_PROGRAM_SUFFIXES)
    languages = {
        language[:2] for language in versions if not (is_program and language in _AMBIGUOUS_CODES)
    }
    if len(languages) < _MIN_TRANSLATIONS:
        return False
    if _TRANSLATION_PATH.search(path) is not None:
        return True
    if _CONFIGURATION.search(path) is not None:
        return False
    return (
        has_original
        or _find_english(versions) is not None
        or len(languages) >= _MIN_TRANSLATIONS_ELSEWHERE
    )


def _find_english(languages: Iterable[str]) -> str | None:
    by_name = {language.lower(): language for language in languages}
    return next((by_name[code] for code in _ENGLISH if code in by_name), None)


def _find_original(key: bytes, versions: Mapping[str, str]) -> str:
    """Return the path of the untranslated text: the path without a language in it."""
    path = next(iter(versions.values()))
    template = next(
        candidate
        for candidate, _ in _iter_language_templates(path)
        if _hash_template(candidate) == key
    )
    return re.sub(r"[._-]\{\}|\{\}\.lproj(?=/)", "", template)


def _hash_template(template: str) -> bytes:
    """Return a short hash of a path, so that long paths do not take memory."""
    return blake2b(template.encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _iter_language_templates(path: str) -> Iterator[tuple[str, str]]:
    """Yield, for each part of a path that may be a language: the path with `{}` there, the part."""
    lowered = path.lower()
    if not lowered.endswith((*_DATA_SUFFIXES, *_PROGRAM_SUFFIXES)):
        return
    if lowered.endswith(_PROGRAM_SUFFIXES) and _FOLDER.search(path) is None:
        return
    matches = (_LANGUAGE.match(path, before.end()) for before in _BEFORE_LANGUAGE.finditer(path))
    languages = (match for match in matches if match is not None and match["code"] in _CODES)
    for reading in deque(languages, _MAX_LANGUAGE_PARTS):
        yield f"{path[: reading.start()]}{{}}{path[reading.end() :]}", reading[0]
