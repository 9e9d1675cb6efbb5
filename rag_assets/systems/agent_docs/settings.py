"""Settings of agents.yaml: names, defaults, limits, and the origin of each value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from rag_assets.common.errors import ConfigurationError

T = TypeVar("T")
StoreKind: TypeAlias = Literal["memory", "file", "sqlite"]
Strategy: TypeAlias = Literal["preload", "rag"]
Mode: TypeAlias = Literal["knn", "hybrid"]
DEFAULT_ORIGIN: Final = "default"
_DATABASE_SUFFIXES: Final = frozenset({".db", ".sqlite", ".sqlite3"})


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """A value and its origin: `default`, `FILE:LINE`, or `variable NAME`."""

    value: T
    origin: str = DEFAULT_ORIGIN


@dataclass(frozen=True, slots=True)
class RagSettings:
    """The settings of the block `rag`.

    Attributes:
        path: where indexes are stored: a folder; for the sqlite store, a database file or a folder
            that contains rag.db.
        chunk_size: maximum characters of a passage.
        chunk_overlap: maximum characters that a passage repeats of the previous passage.
        model: the folder of an embedding model; None for the shipped model.
        allow: paths outside the project that a project's file may name. Only the user's own file
            can set this.
    """

    store: Setting[StoreKind] = Setting("memory")
    path: Setting[Path] = Setting(Path(".swebash/rag"))
    chunk_size: Setting[int] = Setting(2000)
    chunk_overlap: Setting[int] = Setting(200)
    model: Setting[Path | None] = Setting(None)
    allow: Setting[tuple[Path, ...]] = Setting(())

    @property
    def database(self) -> Path:
        """Return the path of the SQLite database: `path` itself, or rag.db in that folder."""
        path = self.path.value
        is_file = path.suffix in _DATABASE_SUFFIXES or path.is_file()
        return path if is_file and not path.is_dir() else path / "rag.db"


@dataclass(frozen=True, slots=True)
class DocsSettings:
    """The settings of an agent's block `docs`.

    Attributes:
        strategy: whether documentation is put into the prompt or searched by a tool.
        mode: whether passages are ranked by vectors, or by vectors and words.
        budget: maximum cl100k_base tokens of documentation in a prompt.
        min_score: minimum cosine of a passage; None for no threshold.
        description: the subject of the documentation; if empty, folders and titles describe it.
    """

    strategy: Setting[Strategy] = Setting("preload")
    mode: Setting[Mode] = Setting("knn")
    budget: Setting[int] = Setting(12_000)
    top_k: Setting[int] = Setting(5)
    sources: Setting[tuple[str, ...]] = Setting(())
    min_score: Setting[float | None] = Setting(None)
    description: Setting[str] = Setting("")


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of agents.yaml.

    Attributes:
        base: the folder of its relative glob patterns.
        origin: file and line of its declaration.
        is_user_file: whether the user's own file declares it, rather than a project's file.
    """

    id: str
    base: Path
    docs: DocsSettings
    origin: str
    name: str = ""
    description: str = ""
    prompt: str = ""
    is_user_file: bool = False


@dataclass(frozen=True, slots=True)
class Configuration:
    """The merged settings of all files and environment variables.

    Attributes:
        agents: by id, in the order of their declarations.
        tool_for_all: whether every agent with sources has the search tool.
        base: the folder of relative paths, except those in the user's own file.
        warnings: unknown settings, adjusted values, and paths that `rag.allow` permits.
        refused: agents of a project's file with sources outside its base, by id.
        has_project_model: whether a project's file names a model that `rag.allow` does not permit.
    """

    rag: RagSettings
    agents: Mapping[str, Agent]
    tool_for_all: Setting[bool]
    base: Setting[Path]
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: Mapping[str, ConfigurationError] = field(default_factory=dict)
    has_project_model: bool = False


MAX_CHUNK_SIZE: Final = 1_000_000
_MIN_CHUNK_SIZE: Final = 64
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class InvalidValue(Exception):
    """A value is invalid; the message states the valid values, and never quotes the value."""


Parser: TypeAlias = Callable[[Any], Any]
"""Converts and validates a value from YAML or from an environment variable."""


def _build_choice_parser(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise InvalidValue(f"must be one of {', '.join(choices)}")
        return str(value)

    return parse


def _build_integer_parser(minimum: int, maximum: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        text = value.strip() if isinstance(value, str) else ""
        number = int(text) if text.isascii() and text.isdigit() else value
        is_integer = isinstance(number, int) and not isinstance(number, bool)
        if not is_integer or not minimum <= number <= maximum:
            raise InvalidValue(f"must be a whole number from {minimum:,} to {maximum:,}")
        return int(number)

    return parse


def _parse_cosine(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not -1 <= value <= 1:
        raise InvalidValue("must be a number from -1 to 1")
    return float(value)


def _parse_text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidValue("must be text")
    return " ".join(value.split())


def _parse_path(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise InvalidValue("must be a path")
    return value


def _parse_patterns(value: Any) -> tuple[str, ...]:
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list) or not all(isinstance(p, str) and p for p in patterns):
        raise InvalidValue("must be a list of glob patterns")
    if any("\0" in pattern for pattern in patterns):
        raise InvalidValue("must be patterns without NUL characters")
    return tuple(map(str, patterns))


def _parse_paths(value: Any) -> tuple[str, ...]:
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list):
        raise InvalidValue("must be a list of paths")
    return tuple(map(_parse_path, paths))


def parse_flag(value: Any) -> bool:
    """Parse a boolean setting.

    Raises:
        InvalidValue: the value is neither true nor false.
    """
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word not in _TRUE | _FALSE:
        raise InvalidValue("must be true or false")
    return word in _TRUE


RAG_PARSERS: Final[Mapping[str, Parser]] = {
    "store": _build_choice_parser("memory", "file", "sqlite"),
    "path": _parse_path,
    "chunk_size": _build_integer_parser(_MIN_CHUNK_SIZE, MAX_CHUNK_SIZE),
    "chunk_overlap": _build_integer_parser(0, MAX_CHUNK_SIZE),
    "model": _parse_path,
    "allow": _parse_paths,
}
"""The settings of the block `rag`."""
RAG_VARIABLES: Final = {
    "store": "SWEBASH_AI_RAG_STORE",
    "path": "SWEBASH_AI_RAG_STORE_PATH",
    "chunk_size": "SWEBASH_AI_RAG_CHUNK_SIZE",
    "chunk_overlap": "SWEBASH_AI_RAG_CHUNK_OVERLAP",
}
"""The environment variables that override settings of the block `rag`."""
DOCS_PARSERS: Final[Mapping[str, Parser]] = {
    "strategy": _build_choice_parser("preload", "rag"),
    "mode": _build_choice_parser("knn", "hybrid"),
    "budget": _build_integer_parser(0, 10_000_000),
    "top_k": _build_integer_parser(1, 100),
    "sources": _parse_patterns,
    "min_score": _parse_cosine,
    "description": _parse_text,
}
"""The settings of an agent's block `docs`."""
TOOL_FOR_ALL: Final = "SWEBASH_AI_TOOLS_RAG"
BASE: Final = "SWEBASH_AI_DOCS_BASE_DIR"
USER_FILE: Final = "SWEBASH_AGENTS_CONFIG"
VARIABLES: Final = (*RAG_VARIABLES.values(), TOOL_FOR_ALL, BASE)
"""The environment variables that override settings in files."""
