"""Responses about guidelines, as the service writes them and its client reads them.

Their fields are in camelCase, as in the rest of `/api`. Like `responses`, this module imports only
the standard library.
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
"""Reasons why a prompt gets no passages of documents."""
RuleKind: TypeAlias = Literal["always", "path"]
DocumentStatus: TypeAlias = Literal["PROCESSING", "READY", "FAILED"]
Stage: TypeAlias = Literal["queued", "parsing", "chunking", "embedding", "indexing"]


_GIVEN: Mapping[str, str] = {"id": "_id"}
_OF_KEYS: Mapping[str, str] = {"source": "from"}


def camel(name: str) -> str:
    """Return a field's name in JSON."""
    if name in _GIVEN:
        return _GIVEN[name]
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _camel_of_key(name: str) -> str:
    return _OF_KEYS.get(name) or camel(name)


CAMEL_CASE: Mapping[str, Any] = {"alias_generator": camel, "populate_by_name": True}
"""The Pydantic configuration of these classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinePlace:
    """A passage of a team's document.

    Attributes:
        chunk_index: position among the passages of its document, from 0.
        chunk_indexes: positions of all passages in the text, if adjoining passages were merged.
        score: cosine of task and passage; null for a rule's passage, which no search finds.
        tokens: number of tokens of the text.
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
        number: number of the passage in the section.
        trimmed: whether it was cut at the end of a sentence, to keep within the budget.
        rule: why it is included without a search: its document applies always, or to the path of a
            file of the task; null for a passage that was found.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    number: int
    trimmed: bool
    rule: RuleKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss(GuidelinePlace):
    """A passage below the threshold.

    Attributes:
        excerpt: the part of the passage with the most words of the task.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinesContext:
    """A team's guidelines for a prompt.

    Attributes:
        source: source of the section: passages of documents, the plain text, or none.
        section: text to add to a system prompt; may be empty.
        tokens: number of cl100k_base tokens of the section.
        chunks: the passages in the section, best first.
        omitted: number of passages that did not fit into the budget.
        threshold: cosine below which passages are left out; null if no search was made.
        nearest: highest cosine of a passage, left out or not; null if no search was made.
        embedder: embedder of the vectors: provider, model and more; null if no search was made.
        generation: generation of the index that answered; null if no search was made.
        reason: why no passage of documents was found; null if a passage was found.
        detail: the reason as a sentence with a remedy.
        near_misses: passages below the threshold, if an explanation was requested.
        latency_ms: duration of each step, if an explanation was requested.
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
        text: the text; empty if none is set.
        updated_by, updated_at: who set it and when; null if it was never set.
        etag: ETag of the text, for If-Match; null if it was never set.
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
    """The provider key with which a project's documents are embedded.

    Attributes:
        provider: provider of the key.
        state: whether the key can be used; "not-needed": the embedder needs no key.
        source: owner of the key; an operator's key is in the installation's configuration.
        address: address where the key is set, on this service.
        worked: whether the provider accepted the key when it was last used.
    """

    __pydantic_config__: ClassVar[Any] = {**CAMEL_CASE, "alias_generator": _camel_of_key}

    provider: str
    state: KeyUse
    source: KeySource | None
    address: str
    worked: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelineDocument:
    """An uploaded file of a project and its status.

    Attributes:
        id: id of the document; it stays when the file is replaced.
        file_name: name for display; credentials in it are masked.
        mime_type: type of the file, detected from its content.
        status: status of the current content: PROCESSING, READY, or FAILED. A disabled document is
            READY.
        chunk_count: number of passages of the version that answers, or else of the current version;
            None before it is split into passages.
        error_message: why it failed or waits, and what can be done about it.
        error_kind: kind of that reason, stable even if its wording changes.
        size: size in bytes.
        stage: current stage while the status is PROCESSING.
        done, total: number of passages with a vector, and of all passages; None before it is split
            into passages.
        token_count: number of tokens of these passages; None before they are counted.
        estimated_cost: estimated cost of embedding them, in dollars; None if it is not known.
        dropped: number of passages that were withheld because they contain only a credential.
        retry_at: time of the next automatic attempt.
        enabled: whether the document may answer.
        answers: whether a version of it answers, the current or an earlier one.
        can_retry: whether it failed for a reason that may no longer apply at another attempt.
        note: why no passage of it is searchable although it is READY.
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
    """A page of a project's documents, newest first.

    Attributes:
        next: the `after` of the next page; None on the last page.
        rag_guidelines: whether the organization has guidelines switched on.
        key: key with which the documents are embedded.
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
        duplicate: whether the same bytes were already stored, so that no work is needed.
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
