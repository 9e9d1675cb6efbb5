"""The rules that exclude files of a repository from the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
)
from rag_assets.systems.code_memory.sources.repositories.contents import is_binary
from rag_assets.systems.code_memory.sources.repositories.generated import (
    is_generated,
    is_generated_name,
)
from rag_assets.systems.code_memory.sources.repositories.names import repository_type_of
from rag_assets.systems.code_memory.sources.repositories.translations import left_out_translations
from rag_assets.systems.code_memory.sources.repositories.trees import LINK, REGULAR, SUBMODULE
from rag_assets.systems.code_memory.sources.repositories.vendored import is_vendored
from rag_assets.systems.code_memory.symbols.source_types import is_data

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
