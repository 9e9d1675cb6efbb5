"""Documents of a project: list, enable, retry and delete them, and report their progress."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain

from rag_assets.api.guideline_responses import (
    CAMEL_CASE,
    DeletedDocument,
    DocumentPage,
    GuidelineDocument,
    Stage,
)
from rag_assets.billing.spending import find_present_caps, find_stopping_cap
from rag_assets.common.errors import (
    CapReached,
    InvalidRequest,
    UnknownDocument,
)
from rag_assets.common.failure_kinds import WORDS, empty_note
from rag_assets.ingest.chunking.chunk_set import compute_chunk_set_key
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.parsing.registry import compute_parse_key
from rag_assets.ingest.sources.model import parse_path
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.pipeline.chunking import map_lines_by_rule
from rag_assets.pipeline.uploads import UploadService, get_uploads_source
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.uploads.table import UploadState, UploadStatus
from rag_assets.storage.lake.model import ChunkSetRow
from rag_assets.storage.lake.store import Lake, TenantLake
from rag_assets.systems.team_guidelines.errors import GuidelinesOff
from rag_assets.systems.team_guidelines.projects import GuidelineKeys, OpenProject


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
    """A passage that is withheld because it contains a credential.

    Attributes:
        rules: names of the rules that found the credential.
    """

    __pydantic_config__ = CAMEL_CASE

    chunk_index: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MaskedSecrets:
    """The masked credentials that one rule found in the current text of a document.

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
        answers: whether searches find these passages; false for a version in progress.
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
    """How far the current content of a document is processed.

    Attributes:
        parsed: whether the text of the document is stored.
        chunks: the passages; None before chunking.
        missing: text_sha256 of passages without a vector.
    """

    parsed: bool = False
    chunks: ChunkSetRow | None = None
    missing: frozenset[str] = frozenset()

    @property
    def chunk_count(self) -> int | None:
        """Return the number of passages; None before chunking."""
        return None if self.chunks is None else len(self.chunks.chunks)

    @property
    def embedded_count(self) -> int:
        """Return the number of passages with a vector."""
        if self.chunks is None:
            return 0
        return sum(chunk.text_sha256 not in self.missing for chunk in self.chunks.chunks)

    @property
    def token_count(self) -> int | None:
        """Return the number of tokens in the passages; None before chunking."""
        return None if self.chunks is None else sum(c.token_count for c in self.chunks.chunks)

    def count_waiting_tokens(self, excluded: Set[str]) -> dict[str, int]:
        """Return the number of tokens of each passage without a vector, by text_sha256.

        Args:
            excluded: text_sha256 of passages to leave out.
        """
        chunks = () if self.chunks is None else self.chunks.chunks
        return {
            chunk.text_sha256: chunk.token_count
            for chunk in chunks
            if chunk.text_sha256 in self.missing and chunk.text_sha256 not in excluded
        }


NO_PROGRESS = Progress()


def read_progress(
    project: OpenProject, lake: TenantLake, documents: Sequence[Document]
) -> dict[str, Progress]:
    """Return the progress of documents by id; four queries of the tenant's lake suffice."""
    tenant = project.tenant
    options = tenant.parser.options
    keys = {
        document.document_id: compute_parse_key(
            document.content_sha256, document.media_type, options, document.reindex_requests
        )
        for document in documents
        if document.content_sha256 is not None
    }
    heads = lake.read_parsed_heads(set(keys.values()))
    chunk_keys: dict[str, str] = {}
    for document in documents:
        head = heads.get(keys.get(document.document_id, ""))
        if head is not None:
            parameters = tenant.chunk_parameters(
                source=document.source,
                source_type=document.source_type,
                media_type=head.media_type,
                path=parse_path(document.uri),
            )
            chunk_keys[document.document_id] = compute_chunk_set_key(
                head.digest, head.media_type, parameters
            )
    sets = lake.chunk_sets(set(chunk_keys.values()))
    texts = {chunk.text_sha256 for row in sets.values() for chunk in row.chunks}
    missing = lake.find_missing_vectors(project.embedder_id, texts)
    progress: dict[str, Progress] = {}
    for document_id, key in chunk_keys.items():
        row = sets.get(key)
        own = () if row is None else (chunk.text_sha256 for chunk in row.chunks)
        progress[document_id] = Progress(True, row, frozenset(missing.intersection(own)))
    return progress


def build_document(
    project: OpenProject, state: UploadState, progress: Progress, *, is_selected: bool
) -> GuidelineDocument:
    """Return the response about a document.

    Args:
        progress: progress of the current content; NO_PROGRESS if the status is READY.
        is_selected: whether the current run works on the document.
    """
    words = None if state.error_kind is None else WORDS[state.error_kind]
    tokens = state.token_count if state.answers else progress.token_count
    price = project.price
    document = GuidelineDocument(
        id=state.id,
        organization_id=project.organization_id,
        project_id=project.project_id,
        file_name=state.file_name,
        mime_type=state.media_type,
        status=state.status,
        chunk_count=state.chunk_count if state.answers else progress.chunk_count,
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
        estimated_cost=None if tokens is None or price is None else price.compute_cost(tokens),
        dropped=_count_dropped(state, progress),
        retry_at=state.retry_at,
        enabled=state.enabled,
        answers=state.answers,
        can_retry=state.status == "FAILED" and (words is None or words.can_retry),
        note=_explain_emptiness(state),
    )
    if state.status != "PROCESSING":
        return document
    total = progress.chunk_count if state.listed else None
    return replace(
        document,
        stage=_determine_stage(state, progress, is_selected=is_selected),
        done=None if total is None else progress.embedded_count,
        total=total,
    )


def _explain_emptiness(state: UploadState) -> str | None:
    """Return why searches find no passage of a READY, enabled document; None if they find some."""
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


CURSOR_PATTERN = "^([0-9]{1,17})-([0-9a-f]{32})$"
"""Pattern of a page's `next`: the time of upload in microseconds, and a document id."""

_CURSOR = re.compile(CURSOR_PATTERN)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """An uploaded file in its original form.

    Attributes:
        blocks: blocks of the content; the first has already been read.
    """

    file_name: str
    mime_type: str
    size: int
    blocks: Iterator[bytes]


class GuidelineLibrary:
    """Reads and changes the documents of projects."""

    def __init__(
        self,
        catalog: Catalog,
        blobs: BlobStore,
        lake: Lake,
        uploads: UploadService,
        keys: GuidelineKeys,
    ) -> None:
        self._catalog = catalog
        self._blobs = blobs
        self._lake = lake
        self._keys = keys
        self.uploads = uploads

    def list_page(
        self,
        project: OpenProject,
        *,
        status: UploadStatus | None = None,
        after: str | None = None,
        limit: int,
    ) -> DocumentPage:
        """Return a page of a project's documents, newest first.

        Raises:
            InvalidRequest: `after` is malformed.
        """
        states = self._catalog.upload_states.page(
            project.record.id,
            status=status,
            after=None if after is None else _parse_cursor(after),
            limit=limit + 1,
        )
        has_more, states = len(states) > limit, states[:limit]
        return DocumentPage(
            documents=tuple(self._build_documents(project, states)),
            next=_format_cursor(states[-1]) if has_more else None,
            rag_guidelines=project.record.has_opted_in,
            key=self._keys.get_state(project),
        )

    def find(self, project: OpenProject, document_id: str) -> GuidelineDocument:
        """Return one document.

        Raises:
            UnknownDocument: it does not exist in the project.
        """
        [document] = self._build_documents(project, [self._find_state(project, document_id)])
        return document

    def require_uploads(self, project: OpenProject) -> UploadsConfig:
        """Return the source for a project's uploads; require that files can be processed now.

        Raises:
            GuidelinesOff: guidelines are switched off for the organization.
            NoProviderKey: the embedder's provider lacks a usable key.
            CapReached: a cap on spending is reached.
            NoUploadsSource: the project has no source for uploads, or several.
        """
        if not project.record.has_opted_in:
            raise GuidelinesOff.from_organization(project.organization_id)
        self._keys.require_key(project)
        self._require_budget(project)
        return get_uploads_source(project.configured_tenant)

    def delete(self, project: OpenProject, document_id: str, by: str) -> DeletedDocument:
        """Delete a document and its file; searches stop finding it immediately."""
        is_removed = self.uploads.remove(project.ref, document_id, by)
        return DeletedDocument(document_id, "removed" if is_removed else "unchanged")

    def set_enabled(
        self, project: OpenProject, document_id: str, by: str, *, enabled: bool
    ) -> GuidelineDocument:
        """Enable or disable a document immediately, without embedding it again.

        Raises:
            UnknownDocument: it does not exist in the project.
        """
        self._catalog.uploads.set_enabled(project.ref, document_id, by, enabled=enabled)
        return self.find(project, document_id)

    def retry(
        self, project: OpenProject, document_id: str, by: str
    ) -> tuple[GuidelineDocument, bool]:
        """Retry a failed document; return the document and whether it had failed.

        Raises:
            UnknownDocument: it does not exist in the project.
            GuidelinesOff, NoProviderKey, CapReached: a retry would fail; see require_uploads().
        """
        state = self._find_state(project, document_id)
        is_retried = state.status == "FAILED"
        if is_retried:
            self.require_uploads(project)
            self._catalog.reindex_requests.request_document(project.ref, document_id, by)
        return self.find(project, document_id), is_retried

    def read_chunks(self, project: OpenProject, document_id: str) -> DocumentChunks:
        """Return the passages that searches find; if none yet, the passages in progress.

        Raises:
            UnknownDocument: it does not exist in the project.
        """
        state = self._find_state(project, document_id)
        if state.chunk_set_key is not None:
            row = (
                self._open_lake(project).chunk_sets([state.chunk_set_key]).get(state.chunk_set_key)
            )
        else:
            row = self._read_progress(project, [state]).get(document_id, NO_PROGRESS).chunks
        chunks = _build_chunks(document_id, row, is_answering=state.answers)
        return replace(chunks, masked=self._find_masked_secrets(project, document_id))

    def _find_masked_secrets(
        self, project: OpenProject, document_id: str
    ) -> tuple[MaskedSecrets, ...]:
        """Return the masked credentials in the current text of a document."""
        lake, options = self._open_lake(project), project.tenant.parser.options
        keys = [
            compute_parse_key(
                document.content_sha256, document.media_type, options, document.reindex_requests
            )
            for document in self._catalog.documents.find(project.record.id, [document_id])
            if document.content_sha256 is not None
        ]
        return tuple(
            MaskedSecrets(rule, tuple(lines))
            for row in lake.parsed(keys).values()
            for rule, lines in sorted(map_lines_by_rule(row.parsed).items())
        )

    def open_file(self, project: OpenProject, document_id: str) -> OriginalFile:
        """Open the file of a document as it was last uploaded.

        Raises:
            UnknownDocument: it does not exist in the project.
            BlobMissing: the file was lost.
            ServiceUnavailable: the blob store does not respond.
        """
        state = self._find_state(project, document_id)
        ref = project.ref
        blocks = self._blobs.tenant(ref.id, ref.incarnation).stream(state.content_sha256)
        first = next(blocks, b"")
        return OriginalFile(state.file_name, state.media_type, state.size, chain([first], blocks))

    def count_waiting(self, project: OpenProject) -> tuple[int, int, int]:
        """Count the embedding work that remains for the enabled documents of a project.

        Returns:
            the number of documents with passages that lack a vector, the number of tokens in these
            passages (equal passages count once), and the number of documents that are not chunked
            yet.
        """
        states = [
            state
            for state in self._catalog.upload_states.page(project.record.id)
            if state.enabled and state.status != "READY"
        ]
        progress = self._read_progress(project, states)
        texts: dict[str, int] = {}
        documents = unmeasured = 0
        for state in states:
            document = progress.get(state.id, NO_PROGRESS)
            texts |= document.count_waiting_tokens(texts.keys())
            documents += bool(document.missing)
            unmeasured += document.chunks is None and state.status == "PROCESSING"
        return documents, sum(texts.values()), unmeasured

    def _find_state(self, project: OpenProject, document_id: str) -> UploadState:
        state = self._catalog.upload_states.find(project.record.id, document_id)
        if state is None:
            raise UnknownDocument(
                "the project has no document with this id",
                hint="use an id from the list of documents",
            )
        return state

    def _build_documents(
        self, project: OpenProject, states: Sequence[UploadState]
    ) -> Iterator[GuidelineDocument]:
        is_processing = any(s.listed and s.status == "PROCESSING" for s in states)
        unfinished = [
            state
            for state in states
            if state.status == "PROCESSING" or (state.status == "FAILED" and not state.answers)
        ]
        progress = self._read_progress(project, unfinished)
        selected = (
            self._catalog.syncs.list_slice_documents(project.record.id)
            if is_processing
            else frozenset()
        )
        for state in states:
            present = progress.get(state.id, NO_PROGRESS)
            yield build_document(project, state, present, is_selected=state.id in selected)

    def _read_progress(
        self, project: OpenProject, states: Sequence[UploadState]
    ) -> dict[str, Progress]:
        ids = [state.id for state in states if state.listed]
        if not ids:
            return {}
        documents = self._catalog.documents.find(project.record.id, ids)
        return read_progress(project, self._open_lake(project), documents)

    def _open_lake(self, project: OpenProject) -> TenantLake:
        return self._lake.tenant(project.ref.id, project.ref.incarnation)

    def _require_budget(self, project: OpenProject) -> None:
        caps = find_present_caps(self._catalog, project.ref, project.tenant, run=0.0)
        cap = find_stopping_cap(caps, project.passage_cost)
        if cap is None:
            return
        renewed = "" if cap.until is None else f"wait until {cap.until:%Y-%m-%d %H:%M} UTC, or "
        raise CapReached(
            f"the cap of {cap.limit_text} is reached: {cap.spent_text}",
            hint=f"{renewed}raise the project's cap",
            until=cap.until,
        )


def _build_chunks(
    document_id: str, row: ChunkSetRow | None, *, is_answering: bool
) -> DocumentChunks:
    if row is None:
        return DocumentChunks(document_id, is_answering, (), ())
    return DocumentChunks(
        document_id,
        is_answering,
        tuple(map(_build_chunk, row.chunks)),
        tuple(DroppedChunk(dropped.ordinal, dropped.rules) for dropped in row.dropped),
    )


def _build_chunk(chunk: Chunk) -> DocumentChunk:
    return DocumentChunk(
        chunk_index=chunk.ordinal,
        text=chunk.text,
        page=chunk.location.page,
        heading_path=chunk.heading_path,
        tokens=chunk.token_count,
        context=chunk.context,
    )


def _format_cursor(state: UploadState) -> str:
    return f"{(state.created_at - _EPOCH) // timedelta(microseconds=1)}-{state.id}"


def _parse_cursor(cursor: str) -> tuple[datetime, str]:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidRequest(
            "`after` is not a valid page cursor",
            hint="use the value of `next` from the previous page",
        )
    return _EPOCH + timedelta(microseconds=int(match[1])), match[2]
