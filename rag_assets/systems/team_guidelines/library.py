"""The documents of a project: list, enable, retry and delete them, and read their contents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain

from rag_assets.api.guideline_responses import DeletedDocument, DocumentPage, GuidelineDocument
from rag_assets.billing.ledger import present_caps
from rag_assets.billing.spending import cap_that_stops
from rag_assets.common.errors import (
    CapReached,
    InvalidRequest,
    UnknownDocument,
)
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.parsing.registry import parse_key
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.models.prices import FREE
from rag_assets.pipeline.chunking import lines_by_rule
from rag_assets.pipeline.uploads import Uploads, uploads_source
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.uploads.states import UploadState, UploadStatus
from rag_assets.storage.lake.model import ChunkSetRow
from rag_assets.storage.lake.store import Lake, TenantLake
from rag_assets.systems.team_guidelines.documents import (
    NO_PROGRESS,
    DocumentChunk,
    DocumentChunks,
    DroppedChunk,
    MaskedSecrets,
    Progress,
    build_document,
    read_progress,
)
from rag_assets.systems.team_guidelines.errors import GuidelinesOff
from rag_assets.systems.team_guidelines.keys import GuidelineKeys
from rag_assets.systems.team_guidelines.projects import OpenProject

CURSOR = "^([0-9]{1,17})-([0-9a-f]{32})$"
"""Pattern of the value `next` of a page: microseconds and an id."""

_CURSOR = re.compile(CURSOR)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """An uploaded file in its original form.

    Attributes:
        pieces: pieces of the content; the first piece has already been read.
    """

    file_name: str
    mime_type: str
    size: int
    pieces: Iterator[bytes]


class GuidelineLibrary:
    """Reads and changes the documents of projects.

    Args:
        lake: holds texts and passages.
        uploads: accepts and removes files.
    """

    def __init__(
        self, catalog: Catalog, blobs: BlobStore, lake: Lake, uploads: Uploads, keys: GuidelineKeys
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

        Args:
            status: only documents with this status.
            after: the `next` of the previous page.
            limit: maximum number of documents.

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
            key=self._keys.state(project),
        )

    def find(self, project: OpenProject, document_id: str) -> GuidelineDocument:
        """Return one document.

        Raises:
            UnknownDocument: it does not exist in the project.
        """
        [document] = self._build_documents(project, [self._find_state(project, document_id)])
        return document

    def require_uploads(self, project: OpenProject) -> UploadsConfig:
        """Return the source for a project's uploads, if it can process files now.

        Raises:
            GuidelinesOff: guidelines are switched off for the organization.
            NoProviderKey: the embedder's provider lacks a usable key.
            CapReached: a cap on spending is reached.
            NoUploadsSource: the project has no source for uploads, or several.
        """
        if not project.record.has_opted_in:
            raise GuidelinesOff.from_organization(project.organization_id)
        self._keys.require(project)
        self._require_budget(project)
        return uploads_source(project.configured_tenant)

    def delete(self, project: OpenProject, document_id: str, by: str) -> DeletedDocument:
        """Delete a document and its file; it stops answering at once."""
        is_removed = self.uploads.remove(project.ref, document_id, by)
        return DeletedDocument(document_id, "removed" if is_removed else "unchanged")

    def set_enabled(
        self, project: OpenProject, document_id: str, by: str, *, enabled: bool
    ) -> GuidelineDocument:
        """Enable or disable a document at once, without embedding it again.

        Raises:
            UnknownDocument: it does not exist in the project.
        """
        self._catalog.uploads.set_enabled(project.ref, document_id, by, enabled=enabled)
        return self.find(project, document_id)

    def retry(
        self, project: OpenProject, document_id: str, by: str
    ) -> tuple[GuidelineDocument, bool]:
        """Retry a document that failed; return the document, and whether it is being retried.

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

    def chunks(self, project: OpenProject, document_id: str) -> DocumentChunks:
        """Return the passages of the version that answers; without one, of the one in progress.

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
        chunks = _build_chunks(document_id, row, answers=state.answers)
        return replace(chunks, masked=self._find_masked(project, document_id))

    def _find_masked(self, project: OpenProject, document_id: str) -> tuple[MaskedSecrets, ...]:
        """Return the masked credentials in the present text of a document."""
        lake, options = self._open_lake(project), project.tenant.parser.options
        keys = [
            parse_key(
                document.content_sha256, document.media_type, options, document.reindex_requests
            )
            for document in self._catalog.documents.find(project.record.id, [document_id])
            if document.content_sha256 is not None
        ]
        return tuple(
            MaskedSecrets(rule, tuple(lines))
            for row in lake.parsed(keys).values()
            for rule, lines in sorted(lines_by_rule(row.parsed).items())
        )

    def file(self, project: OpenProject, document_id: str) -> OriginalFile:
        """Return the file of a document as it was last uploaded.

        Raises:
            UnknownDocument: it does not exist in the project.
            BlobMissing: the file was lost.
            ServiceUnavailable: the store of blobs does not answer.
        """
        state = self._find_state(project, document_id)
        ref = project.ref
        pieces = self._blobs.tenant(ref.id, ref.incarnation).stream(state.content_sha256)
        first = next(pieces, b"")
        return OriginalFile(state.file_name, state.media_type, state.size, chain([first], pieces))

    def waiting(self, project: OpenProject) -> tuple[int, int, int]:
        """Return the numbers of waiting documents, of their tokens, and of uncounted documents."""
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
            texts |= document.waiting_tokens(texts.keys())
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
            self._catalog.syncs.slice_documents(project.record.id) if is_processing else frozenset()
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
        tenant = project.tenant
        caps = present_caps(self._catalog, project.ref, tenant, run=0.0)
        # If less than the price of one passage is left below a cap, the cap stops all embedding.
        passage = (project.price or FREE).of(tenant.chunker.parameters.limit)
        cap = cap_that_stops(caps, passage)
        if cap is None:
            return
        renewed = "" if cap.until is None else f"wait until {cap.until:%Y-%m-%d %H:%M} UTC, or "
        raise CapReached(
            f"the cap of {cap.limit_text} is reached: {cap.spent_text}",
            hint=f"{renewed}raise the project's cap",
            until=cap.until,
        )


def _build_chunks(document_id: str, row: ChunkSetRow | None, *, answers: bool) -> DocumentChunks:
    if row is None:
        return DocumentChunks(document_id, answers, (), ())
    return DocumentChunks(
        document_id,
        answers,
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
