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
"""Why a prompt gets no passages from documents."""
RuleKind: TypeAlias = Literal["always", "path"]
DocumentStatus: TypeAlias = Literal["PROCESSING", "READY", "FAILED"]
Stage: TypeAlias = Literal["queued", "parsing", "chunking", "embedding", "indexing"]


def camel(name: str) -> str:
    """Return a field's name in JSON, in camelCase; `_id` for an id."""
    if name == "id":
        return "_id"
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _camel_of_key(name: str) -> str:
    return "from" if name == "source" else camel(name)


CAMEL_CASE: Mapping[str, Any] = {"alias_generator": camel, "populate_by_name": True}
"""Pydantic's configuration of these classes, which need no Pydantic themselves."""
KEY_CAMEL_CASE: Mapping[str, Any] = {**CAMEL_CASE, "alias_generator": _camel_of_key}
"""The same for keys, whose `source` is `from` in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinePlace:
    """A passage of a document.

    Attributes:
        chunk_index: its position among the passages of its document, from 0.
        chunk_indexes: positions of all passages in its text, if adjoining ones were merged.
        score: cosine of task and passage; null for a passage that a rule adds.
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
        number: in the section.
        trimmed: whether it was cut after a sentence, to keep within the budget.
        rule: why a rule added it: its document applies always, or to the path of one of the task's
            files; null for a passage that was found.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    number: int
    trimmed: bool
    rule: RuleKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss(GuidelinePlace):
    """A passage below the threshold.

    Attributes:
        excerpt: the part with the most words of the task.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinesContext:
    """The guidelines for a prompt.

    Attributes:
        source: of the section: passages of documents, the plain text, or none.
        section: to be added to a system prompt; empty without any guidelines.
        tokens: cl100k_base tokens of the section.
        chunks: the passages in it, best first.
        omitted: passages that did not fit into the budget.
        threshold: cosine below which passages are left out; null if no search was made.
        nearest: highest cosine of a passage, left out or not; null if no search was made.
        embedder: of the vectors: provider, model and more; null if no search was made.
        generation: of the index that answered; null if no search was made.
        reason: why no passage of documents was found; null if one was.
        detail: the reason as a sentence, with a remedy.
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
        updated_by, updated_at: author and time of the last change; null if it was never set.
        etag: of the text, for If-Match; null if it was never set.
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
    """The key with which a project's documents are embedded.

    Attributes:
        provider: of models.
        state: whether it can be used; "not-needed": the embedder needs no key.
        source: its owner; the operator's is in the installation's configuration.
        address: path of the endpoint that sets it.
        worked: whether the provider accepted it at its last use.
    """

    __pydantic_config__: ClassVar[Any] = KEY_CAMEL_CASE

    provider: str
    state: KeyUse
    source: KeySource | None
    address: str
    worked: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelineDocument:
    """An uploaded file of a project, with its status.

    Attributes:
        id: stays when the file is replaced.
        file_name: for display; credentials in it are masked.
        mime_type: detected from its content.
        status: of its present content: PROCESSING, READY, or FAILED. A disabled one is READY.
        chunk_count: passages of the version that answers, or else of the present one; None before
            chunking.
        error_message: why it failed or waits, with a remedy.
        error_kind: stable name of that reason.
        size: bytes.
        stage: current stage, while it is PROCESSING.
        done, total: passages that have a vector, and all; None before chunking.
        token_count: of these passages; None before they are counted.
        estimated_cost: of embedding them, in dollars; None if unknown.
        dropped: passages that were withheld because they hold only a credential.
        retry_at: time of the next automatic retry.
        enabled: whether it may answer.
        answers: whether a version of it answers: the present one, or a former one.
        can_retry: whether it failed for a reason that a retry may not meet again.
        note: why no passage of it can be found although it is READY.
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
        next: the `after` of the next page; None on the last page.
        rag_guidelines: whether the organization has its guidelines switched on.
        key: with which the documents are embedded.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    documents: tuple[GuidelineDocument, ...]
    next: str | None
    rag_guidelines: bool
    key: KeyState


@dataclass(frozen=True, slots=True)
class UploadedDocument:
    """The outcome of an upload.

    Attributes:
        duplicate: whether the same bytes were stored already.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    document: GuidelineDocument
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class DeletedDocument:
    """The outcome of a request to delete a document."""

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    id: str
    outcome: Literal["removed", "unchanged"]
