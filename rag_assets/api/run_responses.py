"""Responses of the code memory endpoints for runs of agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

RetrievalOutcome: TypeAlias = Literal["found", "clarify", "off", "disabled"]


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """Metadata that an application sets for a run.

    Attributes:
        rag_enabled: whether the run gets passages.
    """

    rag_enabled: bool = True


@dataclass(frozen=True, slots=True)
class CodeRun:
    """A run of an agent in the repositories of a project.

    Attributes:
        run: id of the run.
        model: language model that the run prompts; None if it is unknown.
    """

    project: str
    run: str
    metadata_json: RunMetadata
    model: str | None


@dataclass(frozen=True, slots=True)
class ReceivedEvents:
    """The outcome of a request with events.

    Attributes:
        accepted: number of new events.
        known: number of ignored events, with ids that were sent before.
    """

    accepted: int
    known: int


@dataclass(frozen=True, slots=True)
class IndexedProject:
    """The documents that are read and indexed again.

    Attributes:
        tenant: tenant of the project.
        commit: current commit of the repository; None without a commit or with several
            repositories.
        commits: current commits by source; None for a repository without a commit.
        documents: number of documents.
    """

    tenant: str
    commit: str | None
    commits: Mapping[str, str | None]
    documents: int


@dataclass(frozen=True, slots=True)
class InvalidatedFiles:
    """Files that were removed from the index.

    Attributes:
        tenant: tenant of the project.
        documents: number of documents.
    """

    tenant: str
    documents: int


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """Metadata of a passage; names are written as in relations.

    Names that the caller may not read are left out.

    Attributes:
        framework: framework of the file's language that the repository's manifests name, or None.
        file_path: path of the document within its repository.
        line_range: first and last line, counted from 1; None if the passage has no lines.
        language: language of the file; None if it is not certain.
        related_symbols: definitions to which a relation links the passage, at most 20.
        related_routes: routes to which a relation links the passage, such as `route:POST
            /invoices`.
        related_tables: tables to which a relation links the passage, such as `table:invoices`.
        paths: paths of this document and of all others with the same text.
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
        path: path of the document, as relations name it.
        repository: source of the document.
        commit: current commit of the repository; None for other sources.
        differs: whether the file differs from the commit; None without a worktree.
        line_start, line_end: lines in the file, counted from 1; None if the passage has no lines.
        symbol: qualified name of the definition in the passage.
        source_type: type of the passage: route, controller_method, table.
        score: score by which chunks are ordered, never higher than the score of the previous chunk.
        score_kind: kind of score: cosine, words, fused, reranker.
        cosine: cosine of question and passage; None if the question was not embedded.
        also: other documents with the same text.
        stale: whether the file has changed since it was indexed.
        trimmed: whether the end of the text was left out.
        context: preceding lines, if the passage starts within a table, a list or code.
        metadata_json: relations and origin of the passage.
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
    score_kind: str = "cosine"
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class RetrievalDebug:
    """How the passages were found.

    Attributes:
        strategy: how candidates were found: walk, knn, text, hybrid, walk+hybrid and similar.
        latency_ms: duration of the whole search.
        steps_ms: duration of each step.
        total_candidates: number of readable passages that were considered.
        scores: scores of the chunks, by chunk id.
        threshold: cosine below which passages were left out; None if no threshold applies.
        nearest: highest cosine of any passage that the caller may read, including passages that
            were left out.
        paths: chains of names along which relations were followed.
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
        rag: whether the run gets passages at all.
        chunks: passages, best first.
        debug: details of the search; None if no search was made.
        outcome: found; clarify: no passage was near enough, and the user should be asked; off:
            passages are switched off for the run; disabled: the project's tenant is switched off.
        notice: text for the prompt of a run without passages.
        question: question for the user, if no passage was near enough.
        names: names that the question may refer to.
    """

    rag: bool
    chunks: tuple[CodeChunk, ...] = ()
    debug: RetrievalDebug | None = None
    outcome: RetrievalOutcome = "found"
    notice: str | None = None
    question: str | None = None
    names: tuple[str, ...] = ()
