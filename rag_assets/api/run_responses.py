"""What the endpoints of code memory answer to runs of agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

RetrievalOutcome: TypeAlias = Literal["found", "clarify", "off", "disabled"]


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """What an application says of a run.

    Attributes:
        rag_enabled: whether it is given passages.
    """

    rag_enabled: bool = True


@dataclass(frozen=True, slots=True)
class CodeRun:
    """A run of an agent in the repositories of a project.

    Attributes:
        run: its id.
        model: the language model that it prompts; None where it was not told.
    """

    project: str
    run: str
    metadata_json: RunMetadata
    model: str | None


@dataclass(frozen=True, slots=True)
class ReceivedEvents:
    """What became of the events of a request.

    Attributes:
        accepted: how many were new.
        known: how many were not: their ids came before.
    """

    accepted: int
    known: int


@dataclass(frozen=True, slots=True)
class IndexedProject:
    """What is read and indexed again.

    Attributes:
        tenant: of the project.
        commit: that its repository is at; None without one, or of several repositories.
        commits: by source; None where a repository has no commit yet.
        documents: how many.
    """

    tenant: str
    commit: str | None
    commits: Mapping[str, str | None]
    documents: int


@dataclass(frozen=True, slots=True)
class InvalidatedFiles:
    """Files that were taken out of the index.

    Attributes:
        tenant: of the project.
        documents: how many there were.
    """

    tenant: str
    documents: int


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """What a passage is told with; names are those of relations, and readable by the caller.

    Attributes:
        framework: that its repository's manifests name, of the file's language; None for none.
        file_path: of its document, within its repository.
        line_range: first and last line, counted from 1; None where it has no lines.
        language: of the file; None where that is not sure.
        related_symbols: definitions that one relation leads to or comes from, at most 20.
        related_routes: routes, likewise: `route:POST /invoices`.
        related_tables: tables, likewise: `table:invoices`.
        paths: its own path, and those of all other documents that hold the same text.
    """

    framework: str | None
    file_path: str
    line_range: tuple[int, int] | None
    language: str | None
    related_symbols: tuple[str, ...] = ()
    related_routes: tuple[str, ...] = ()
    related_tables: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeChunk:
    """A passage for the prompt of a run.

    Attributes:
        id: `{tenant}:{source path}:{byte offset}`, as events name it.
        path: of its document, as relations name it.
        repository: the source that it is in.
        commit: that the repository is at; None of other sources.
        differs: whether the file is not as the commit has it; None where there is no worktree.
        line_start, line_end: in the file, counted from 1; None where it has no lines.
        symbol: the qualified name of what it defines.
        source_type: what it is: route, controller_method, table.
        score: cosine of question and passage; None where the question was not embedded.
        also: other documents that hold the same text.
        stale: whether the file changed since.
        trimmed: whether the end of its text was left out.
        context: lines from above it, where it begins within a table, a list or code.
        metadata_json: what it is related to, and where it is from.
    """

    id: str
    path: str
    repository: str
    line_start: int | None
    line_end: int | None
    symbol: str | None
    source_type: str
    text: str
    score: float | None
    metadata_json: ChunkMetadata
    title: str | None = None
    commit: str | None = None
    differs: bool | None = None
    also: tuple[str, ...] = ()
    stale: bool = False
    trimmed: bool = False
    context: str = ""


@dataclass(frozen=True, slots=True)
class RetrievalDebug:
    """How the passages were found.

    Attributes:
        strategy: how candidates were found: walk, knn, text, hybrid, walk+hybrid and the like.
        latency_ms: of the whole search.
        steps_ms: of each of its steps.
        total_candidates: passages considered, of those that the caller may read.
        scores: of the chunks, by their ids.
        threshold: cosine below which passages were left out; None without one.
        nearest: highest cosine of a passage that the caller may read, left out or not.
        paths: names along which relations were followed.
    """

    strategy: str
    latency_ms: float
    steps_ms: Mapping[str, float]
    total_candidates: int
    scores: Mapping[str, float | None]
    threshold: float | None
    nearest: float | None
    paths: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievedChunks:
    """Passages for the prompt of a run.

    Attributes:
        rag: whether the run is given passages at all.
        chunks: best first.
        debug: None where nothing was searched.
        outcome: found; clarify: nothing was near enough, and the user is to be asked; off: the
            run is given none; disabled: the project's tenant is switched off.
        notice: for the prompt of a run that is given none.
        question: for the user, where nothing was near enough.
        names: what the question may mean.
    """

    rag: bool
    chunks: tuple[CodeChunk, ...] = ()
    debug: RetrievalDebug | None = None
    outcome: RetrievalOutcome = "found"
    notice: str | None = None
    question: str | None = None
    names: tuple[str, ...] = ()
