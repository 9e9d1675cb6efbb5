"""Responses about guidelines, which the service writes and its client reads.

Their JSON fields are in camelCase, as in the rest of `/api`. Like `responses`, this module imports
only the standard library.
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


def to_camel_case(name: str) -> str:
    """Return the JSON name of a field, in camelCase; the field `id` becomes `_id`."""
    if name == "id":
        return "_id"
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


CAMEL_CASE: Mapping[str, Any] = {"alias_generator": to_camel_case, "populate_by_name": True}
"""Pydantic's configuration of these classes, which do not import Pydantic themselves."""
KEY_CAMEL_CASE: Mapping[str, Any] = {
    **CAMEL_CASE,
    "alias_generator": lambda name: "from" if name == "source" else to_camel_case(name),
}
"""The same for the class KeyState, whose field `source` is `from` in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinePlace:
    """A passage of a document.

    Attributes:
        chunk_index: position of the passage among the passages of its document, from 0.
        chunk_indexes: positions of all passages in the text, if adjoining passages were merged.
        score: cosine of task and passage; null for a passage that a rule adds.
        tokens: number of tokens in the text.
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
        trimmed: whether the passage was cut after a sentence, to stay within the token budget.
        rule: why a rule added the passage: its document always applies, or applies to the path of
            one of the task's files; null for a passage that the search found.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    number: int
    trimmed: bool
    rule: RuleKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss(GuidelinePlace):
    """A passage below the threshold.

    Attributes:
        excerpt: the part of the passage that contains the most words of the task.
    """

    __pydantic_config__: ClassVar[Any] = CAMEL_CASE

    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidelinesContext:
    """The guidelines for a prompt.

    Attributes:
        source: where the section comes from: passages of documents, the plain text, or none.
        section: text to add to a system prompt; empty without any guidelines.
        tokens: number of cl100k_base tokens in the section.
        chunks: the passages in the section, best first.
        omitted: number of passages that did not fit into the token budget.
        threshold: cosine below which passages are left out; null if no search was made.
        nearest: highest cosine of any passage, including passages that were left out; null if no
            search was made.
        embedder: embedder of the vectors: provider, model and more; null if no search was made.
        generation: generation of the index that answered; null if no search was made.
        reason: why no passage of documents was found; null if a passage was found.
        detail: the reason as a sentence, with a remedy.
        near_misses: passages below the threshold, if an explanation was requested.
        latency_ms: milliseconds of each step, if an explanation was requested.
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
        text: the plain text; empty if none is set.
        updated_by, updated_at: author and time of the last change; null if it was never set.
        etag: ETag of the text, for If-Match; null if the text was never set.
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
        provider: the model provider.
        state: whether the key can be used; "not-needed": the embedder needs no key.
        source: owner of the key; an operator's key is in the installation's configuration.
        address: path of the endpoint that sets the key.
        worked: whether the provider accepted the key when it was last used.
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
        id: id of the document; it stays the same when the file is replaced.
        file_name: name for display; credentials in it are masked.
        mime_type: type of the file, detected from its content.
        status: status of the current content: PROCESSING, READY, or FAILED. A disabled document is
            READY.
        chunk_count: number of passages of the version that answers, or of the current version if
            none answers; None before chunking.
        error_message: why the document failed or waits, with a remedy.
        error_kind: stable name of that reason.
        size: size of the file in bytes.
        stage: current stage while the status is PROCESSING.
        done, total: number of passages that have a vector, and number of all passages; None before
            chunking.
        token_count: number of tokens of all passages; None before they are counted.
        estimated_cost: cost of embedding the passages, in dollars; None if unknown.
        dropped: number of passages that were withheld because they contain only a credential.
        retry_at: time of the next automatic retry.
        enabled: whether the document may answer.
        answers: whether a version of the document answers: the current one or an earlier one.
        can_retry: whether the document failed for a reason that may have gone when it is retried.
        note: why no passage of the document can be found although its status is READY.
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
        rag_guidelines: whether guidelines are switched on for the organization.
        key: state of the key with which the documents are embedded.
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
        duplicate: whether the same bytes were already stored.
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
