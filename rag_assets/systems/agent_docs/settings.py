"""Settings of agents, each with the place that it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, Literal, TypeAlias, TypeVar

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
