"""Settings of agents.yaml: their names, defaults, limits and origins."""

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
DEFAULT: str = "default"
_DATABASE_ENDS: Final = frozenset({".db", ".sqlite", ".sqlite3"})


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """A value and its origin: `default`, `FILE:LINE`, or `variable NAME`."""

    value: T
    origin: str = DEFAULT


@dataclass(frozen=True, slots=True)
class RagSettings:
    """The block `rag`.

    Attributes:
        store: where indexes are kept.
        path: a folder; for sqlite a file, or rag.db in a folder.
        chunk_size: the most characters of a passage.
        chunk_overlap: the most that one repeats of the one before it.
        model: the folder of an embedding model; None for the shipped one.
        allow: folders and files beyond its base that a project's file may name; counts in the
            user's own file alone.
    """

    store: Setting[StoreKind] = Setting("memory")
    path: Setting[Path] = Setting(Path(".swebash/rag"))
    chunk_size: Setting[int] = Setting(2000)
    chunk_overlap: Setting[int] = Setting(200)
    model: Setting[Path | None] = Setting(None)
    allow: Setting[tuple[Path, ...]] = Setting(())

    @property
    def database(self) -> Path:
        """The database at the path: a file, or rag.db in a folder."""
        path = self.path.value
        is_file = path.suffix in _DATABASE_ENDS or path.is_file()
        return path if is_file and not path.is_dir() else path / "rag.db"


@dataclass(frozen=True, slots=True)
class DocsSettings:
    """The block `docs` of an agent.

    Attributes:
        strategy: documentation in the prompt, or a tool that searches it.
        mode: passages by their vectors, or by vectors and words.
        budget: cl100k_base tokens of documentation in a prompt.
        top_k: passages of an answer.
        sources: globs.
        min_score: cosine below which a passage is left out; None: no threshold.
        description: of the documentation, for prompts; "" describes it by its folders and titles.
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
        id: its id.
        base: of its relative globs.
        docs: its documentation.
        origin: where it is declared.
        name, description, prompt: as its entry says.
        is_users: whether the user's own file declares it, rather than a project's.
    """

    id: str
    base: Path
    docs: DocsSettings
    origin: str
    name: str = ""
    description: str = ""
    prompt: str = ""
    is_users: bool = False


@dataclass(frozen=True, slots=True)
class Configuration:
    """What all layers and variables say together.

    Attributes:
        rag: the block of that name.
        agents: by id, in the order of their declarations.
        tool_for_all: whether every agent with sources has the tool that searches.
        base: the base of relative paths that no file of the user declares.
        files: that were read, in order.
        warnings: of unknown settings, of values that were brought within their limits, and of
            paths beyond a project's base that the user allows.
        refused: agents of a project's file whose sources lead out of its base, by id.
        has_projects_model: whether a project's file names the model, beyond what the user allows.
    """

    rag: RagSettings
    agents: Mapping[str, Agent]
    tool_for_all: Setting[bool]
    base: Setting[Path]
    files: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    refused: Mapping[str, ConfigurationError] = field(default_factory=dict)
    has_projects_model: bool = False


MAX_CHUNK: Final = 1_000_000
_SMALLEST_CHUNK: Final = 64
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class WrongValue(Exception):
    """A value that cannot be used; the message says what would do, and does not quote it."""


@dataclass(frozen=True, slots=True)
class Field:
    """A setting of a block.

    Attributes:
        read: its value from what YAML gives, or a variable.
        variable: that overrides it.
    """

    read: Callable[[Any], Any]
    variable: str = ""


def _choice(*choices: str) -> Callable[[Any], str]:
    def read(given: Any) -> str:
        if given not in choices:
            raise WrongValue(f"must be one of {', '.join(choices)}")
        return str(given)

    return read


def _number(least: int, most: int) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        text = given.strip() if isinstance(given, str) else ""
        value = int(text) if text.isascii() and text.isdigit() else given
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise WrongValue(f"must be a whole number from {least:,} to {most:,}")
        return int(value)

    return read


def _cosine(given: Any) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not -1 <= given <= 1:
        raise WrongValue("must be a number from -1 to 1")
    return float(given)


def _words(given: Any) -> str:
    if not isinstance(given, str):
        raise WrongValue("must be a text")
    return " ".join(given.split())


def _text(given: Any) -> str:
    if not isinstance(given, str) or not given.strip() or "\0" in given:
        raise WrongValue("must be a path")
    return given


def _sources(given: Any) -> tuple[str, ...]:
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        raise WrongValue("must be a list of glob patterns")
    if any("\0" in one for one in listed):
        raise WrongValue("must be patterns without a NUL character")
    return tuple(str(one) for one in listed)


def _paths(given: Any) -> tuple[str, ...]:
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, list):
        raise WrongValue("must be a list of paths")
    return tuple(_text(one) for one in listed)


def read_flag(given: Any) -> bool:
    """A switch.

    Raises:
        WrongValue: it is neither on nor off.
    """
    if isinstance(given, bool):
        return given
    word = str(given).strip().lower()
    if word not in _TRUE | _FALSE:
        raise WrongValue("must be true or false")
    return word in _TRUE


RAG: Final[Mapping[str, Field]] = {
    "store": Field(_choice("memory", "file", "sqlite"), "SWEBASH_AI_RAG_STORE"),
    "path": Field(_text, "SWEBASH_AI_RAG_STORE_PATH"),
    "chunk_size": Field(_number(_SMALLEST_CHUNK, MAX_CHUNK), "SWEBASH_AI_RAG_CHUNK_SIZE"),
    "chunk_overlap": Field(_number(0, MAX_CHUNK), "SWEBASH_AI_RAG_CHUNK_OVERLAP"),
    "model": Field(_text),
    "allow": Field(_paths),
}
"""The settings of the block `rag`."""
DOCS: Final[Mapping[str, Field]] = {
    "strategy": Field(_choice("preload", "rag")),
    "mode": Field(_choice("knn", "hybrid")),
    "budget": Field(_number(0, 10_000_000)),
    "top_k": Field(_number(1, 100)),
    "sources": Field(_sources),
    "min_score": Field(_cosine),
    "description": Field(_words),
}
"""The settings of an agent's block `docs`."""
TOOL_FOR_ALL: Final = "SWEBASH_AI_TOOLS_RAG"
BASE: Final = "SWEBASH_AI_DOCS_BASE_DIR"
USER_FILE: Final = "SWEBASH_AGENTS_CONFIG"
VARIABLES: Final = (
    *(one.variable for one in RAG.values() if one.variable),
    TOOL_FOR_ALL,
    BASE,
)
"""The variables that override what files say."""
