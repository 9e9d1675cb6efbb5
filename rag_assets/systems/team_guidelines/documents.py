"""Documents as the people of a project see them, with their progress through the pipeline.

Stages do not record their progress; it is computed from the results of each stage in the lake.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from rag_assets.api.guideline_responses import CAMEL_CASE, GuidelineDocument, Stage
from rag_assets.common.failure_kinds import WORDS, empty_note
from rag_assets.ingest.chunking.chunk_set import chunk_set_key
from rag_assets.ingest.parsing.registry import parse_key
from rag_assets.ingest.sources.model import path_of
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.uploads.states import UploadState
from rag_assets.storage.lake.model import ChunkSetRow
from rag_assets.storage.lake.store import TenantLake
from rag_assets.systems.team_guidelines.projects import OpenProject


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A passage of a document, as a model gets it.

    Attributes:
        page: page of a PDF; None for other formats.
        heading_path: the headings above the passage.
        tokens: number of tokens in the text and the context.
        context: preceding lines, if the passage starts within a table, a list or code.
    """

    __pydantic_config__ = CAMEL_CASE

    chunk_index: int
    text: str
    page: int | None
    heading_path: tuple[str, ...]
    tokens: int
    context: str = ""


@dataclass(frozen=True, slots=True)
class DroppedChunk:
    """A withheld passage.

    Attributes:
        rules: names of the rules that found a credential in the passage.
    """

    __pydantic_config__ = CAMEL_CASE

    chunk_index: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MaskedSecrets:
    """The masked credentials that one rule found in the present text of a document.

    Attributes:
        lines: first line of each credential, counted from 1.
    """

    __pydantic_config__ = CAMEL_CASE

    rule: str
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DocumentChunks:
    """The passages of a document.

    Attributes:
        answers: whether the passages belong to the version that answers, not to one in progress.
        dropped: withheld passages.
        masked: masked credentials in the document.
    """

    __pydantic_config__ = CAMEL_CASE

    document_id: str
    answers: bool
    chunks: tuple[DocumentChunk, ...]
    dropped: tuple[DroppedChunk, ...]
    masked: tuple[MaskedSecrets, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of the present content of a document.

    Attributes:
        parsed: whether the text of the document is stored.
        chunks: the passages; None before chunking.
        missing: text_sha256 of passages without a vector.
    """

    parsed: bool = False
    chunks: ChunkSetRow | None = None
    missing: frozenset[str] = frozenset()

    @property
    def total(self) -> int | None:
        """Return the number of passages; None before chunking."""
        return None if self.chunks is None else len(self.chunks.chunks)

    @property
    def done(self) -> int:
        """Return the number of passages that have a vector."""
        if self.chunks is None:
            return 0
        return sum(chunk.text_sha256 not in self.missing for chunk in self.chunks.chunks)

    @property
    def tokens(self) -> int | None:
        """Return the number of tokens in the passages; None before chunking."""
        return None if self.chunks is None else sum(c.token_count for c in self.chunks.chunks)

    def waiting_tokens(self, counted: Set[str]) -> dict[str, int]:
        """Return the number of tokens of each passage without a vector, by text_sha256.

        Args:
            counted: texts to leave out.
        """
        chunks = () if self.chunks is None else self.chunks.chunks
        return {
            chunk.text_sha256: chunk.token_count
            for chunk in chunks
            if chunk.text_sha256 in self.missing and chunk.text_sha256 not in counted
        }


NO_PROGRESS = Progress()


def read_progress(
    project: OpenProject, lake: TenantLake, documents: Sequence[Document]
) -> dict[str, Progress]:
    """Return the progress of documents by id, read from their tenant's lake in a few queries."""
    tenant = project.tenant
    options = tenant.parser.options
    keys = {
        document.document_id: parse_key(
            document.content_sha256, document.media_type, options, document.reindex_requests
        )
        for document in documents
        if document.content_sha256 is not None
    }
    heads = lake.parsed_heads(set(keys.values()))
    chunk_keys: dict[str, str] = {}
    for document in documents:
        head = heads.get(keys.get(document.document_id, ""))
        if head is not None:
            parameters = tenant.chunk_parameters(
                source=document.source,
                source_type=document.source_type,
                media_type=head.media_type,
                path=path_of(document.uri),
            )
            chunk_keys[document.document_id] = chunk_set_key(
                head.digest, head.media_type, parameters
            )
    sets = lake.chunk_sets(set(chunk_keys.values()))
    texts = {chunk.text_sha256 for row in sets.values() for chunk in row.chunks}
    missing = lake.missing_vectors(project.embedder_id, texts)
    progress: dict[str, Progress] = {}
    for document_id, key in chunk_keys.items():
        row = sets.get(key)
        own = () if row is None else (chunk.text_sha256 for chunk in row.chunks)
        progress[document_id] = Progress(True, row, frozenset(missing.intersection(own)))
    return progress


def build_document(
    project: OpenProject, state: UploadState, progress: Progress, *, is_selected: bool
) -> GuidelineDocument:
    """Build the response about a document.

    Args:
        state: state of the document in the catalog.
        progress: progress of the present content, unless the status is READY.
        is_selected: whether the current run works on the document.
    """
    words = None if state.error_kind is None else WORDS[state.error_kind]
    tokens = state.token_count if state.answers else progress.tokens
    price = project.price
    document = GuidelineDocument(
        id=state.id,
        organization_id=project.organization_id,
        project_id=project.project_id,
        file_name=state.file_name,
        mime_type=state.media_type,
        status=state.status,
        chunk_count=state.chunk_count if state.answers else progress.total,
        error_message=None if words is None else words.text,
        error_kind=state.error_kind,
        uploaded_by=state.uploaded_by,
        created_at=state.created_at,
        updated_at=state.updated_at,
        size=state.size,
        stage=None,
        done=None,
        total=None,
        token_count=tokens,
        estimated_cost=None if tokens is None or price is None else price.of(tokens),
        dropped=_count_dropped(state, progress),
        retry_at=state.retry_at,
        enabled=state.enabled,
        answers=state.answers,
        can_retry=state.status == "FAILED" and (words is None or words.can_retry),
        note=_explain_emptiness(state),
    )
    if state.status != "PROCESSING":
        return document
    total = progress.total if state.listed else None
    return replace(
        document,
        stage=_determine_stage(state, progress, is_selected=is_selected),
        done=None if total is None else progress.done,
        total=total,
    )


def _explain_emptiness(state: UploadState) -> str | None:
    """Return why no passage of a READY and enabled document can be found; None if some can."""
    is_ready = state.status == "READY" and state.enabled
    return empty_note(state.chunk_count, state.dropped_count) if is_ready else None


def _count_dropped(state: UploadState, progress: Progress) -> int:
    if state.answers or progress.chunks is None:
        return state.dropped_count
    return len(progress.chunks.dropped)


def _determine_stage(state: UploadState, progress: Progress, *, is_selected: bool) -> Stage:
    if not state.listed or not (is_selected or state.retry_at):
        return "queued"
    if not progress.parsed:
        return "parsing"
    if progress.chunks is None:
        return "chunking"
    return "embedding" if progress.missing else "indexing"
