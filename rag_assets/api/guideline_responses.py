"""Responses about guidelines, as the service writes them and its client reads them.

Their fields are in camelCase, as in the rest of `/api`. As in `responses`, nothing but the standard
library is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias

Source: TypeAlias = Literal["documents", "text", "none"]
Reason: TypeAlias = Literal[
    "feature-off",
    "no-documents",
    "documents-processing",
    "documents-failed",
    "nothing-above-threshold",
    "no-key",
    "embedder-unavailable",
    "index-unavailable",
]
"""Why a prompt gets no passages of documents."""
RuleKind: TypeAlias = Literal["always", "path"]
DocumentStatus: TypeAlias = Literal["PROCESSING", "READY", "FAILED"]
Stage: TypeAlias = Literal["queued", "parsing", "chunking", "embedding", "indexing"]


_GIVEN: Mapping[str, str] = {"id": "_id"}
_OF_KEYS: Mapping[str, str] = {"source": "from"}


def camel(name: str) -> str:
    """A field's name in JSON."""
    if name in _GIVEN:
        return _GIVEN[name]
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _camel_of_key(name: str) -> str:
    return _OF_KEYS.get(name) or camel(name)


CAMEL_CASE: Mapping[str, Any] = {"alias_generator": camel, "populate_by_name": True}
"""What Pydantic is told of such a class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinePlace:
    """A passage of a document of the team's.

    Attributes:
        chunk_index: its place among the passages of its document, from 0.
        chunk_indexes: the places of all passages in its text, where some that adjoin were found.
        score: cosine of task and passage; null of a rule's, which is not found by its words.
        tokens: of its text.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    document_id: str
    file_name: str
    chunk_index: int
    score: float | None
    page: int | None
    heading_path: tuple[str, ...]
    tokens: int
    chunk_indexes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelineChunk(GuidelinePlace):
    """A passage in a section.

    Attributes:
        number: that it has there.
        trimmed: whether it ends at an earlier sentence, to keep within the budget.
        rule: why it is there without being found: its document applies always, or to the path of
            one of the task's files; null for a passage that was found.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    number: int
    trimmed: bool
    rule: RuleKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss(GuidelinePlace):
    """A passage that is below the threshold.

    Attributes:
        excerpt: the part of it that has most of the task's words.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinesContext:
    """What a prompt gets of a team's guidelines.

    Attributes:
        source: of the section: passages of documents, the plain text, or none.
        section: to be added to a system prompt; empty where there is none.
        tokens: cl100k_base tokens of the section.
        chunks: the passages in it, best first.
        omitted: passages that did not fit into the budget.
        threshold: cosine below which passages are left out; null if no search was made.
        nearest: highest cosine of a passage, left out or not; likewise.
        embedder: that made the vectors: provider, model and more; likewise.
        generation: of the index that answered; likewise.
        reason: why no passage of documents was found; null if one was.
        detail: the same as a sentence with a remedy.
        near_misses: passages below the threshold, if an explanation was asked for.
        latency_ms: by step, if an explanation was asked for.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    source: Source
    section: str
    tokens: int
    chunks: tuple[GuidelineChunk, ...] = ()
    omitted: int = 0
    threshold: float | None = None
    nearest: float | None = None
    embedder: str | None = None
    generation: int | None = None
    reason: Reason | None = None
    detail: str | None = None
    near_misses: tuple[NearMiss, ...] | None = None
    latency_ms: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinesText:
    """The plain text of a project.

    Attributes:
        text: empty if none is set.
        updated_by, updated_at: who set it when; null if nobody did.
        etag: of the text, for If-Match; null if nobody set it.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    text: str
    updated_by: str | None
    updated_at: datetime | None
    etag: str | None = None


KeySource: TypeAlias = Literal["project", "organization", "operator"]
KeyUse: TypeAlias = Literal["usable", "missing", "unreadable", "not-needed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """The key that a project's documents are embedded with.

    Attributes:
        provider: whose key it is.
        state: whether it can be used; "not-needed": the embedder needs none.
        source: whose it is; the operator's is in the installation's configuration.
        address: where it is set, on this service.
        worked: whether the provider accepted it when it was last used.
    """

    __pydantic_config__: ClassVar[Any] = {**CAMEL_CASE, "alias_generator": _camel_of_key}

    provider: str
    state: KeyUse
    source: KeySource | None
    address: str
    worked: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelineDocument:
    """An uploaded file of a project, and what became of it.

    Attributes:
        id: stays when the file is replaced.
        file_name: as it is shown; credentials in it are masked.
        mime_type: what it is, by its content.
        status: of its present content: PROCESSING, READY, or FAILED. A disabled one is READY.
        chunk_count: passages of the version that answers, or else of the present one; None before
            it is cut.
        error_message: why it failed or waits, and what can be done about it.
        error_kind: the kind of that reason, which stays whatever the words are.
        size: bytes.
        stage: where it is while it is PROCESSING.
        done, total: passages that have a vector, and all; None before it is cut.
        token_count: of these passages; None before they are counted.
        estimated_cost: of embedding them, in dollars; None where it is not known.
        dropped: passages that were withheld because nothing but a credential is in them.
        retry_at: when it is tried again by itself.
        enabled: whether it may answer.
        answers: whether a version of it answers: the present one, or a former one.
        can_retry: whether it failed for a reason that may be gone when it is tried again.
        note: why nothing of it is found although it is READY.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    id: str
    organization_id: str
    project_id: str
    file_name: str
    mime_type: str
    status: DocumentStatus
    chunk_count: int | None
    error_message: str | None
    error_kind: str | None
    uploaded_by: str
    created_at: datetime
    updated_at: datetime
    size: int
    stage: Stage | None
    done: int | None
    total: int | None
    token_count: int | None
    estimated_cost: float | None
    dropped: int
    retry_at: datetime | None
    enabled: bool
    answers: bool
    can_retry: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page of a project's documents, the newest first.

    Attributes:
        next: the `after` of the next page; None on the last.
        rag_guidelines: whether the organization has guidelines switched on.
        key: that the documents are embedded with.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    documents: tuple[GuidelineDocument, ...]
    next: str | None
    rag_guidelines: bool
    key: KeyState


@dataclass(frozen=True, slots=True)
class UploadedDocument:
    """What became of a file that was sent.

    Attributes:
        duplicate: whether its bytes were there already, so that nothing is to be done.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    document: GuidelineDocument
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class DeletedDocument:
    """What became of a request to delete a document."""

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    id: str
    outcome: Literal["removed", "unchanged"]
