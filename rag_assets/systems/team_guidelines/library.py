"""The documents of a project: listed, shown, uploaded, enabled, tried again, deleted."""

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
    GuidelinesOff,
    InvalidRequest,
    UnknownDocument,
)
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.parsing.registry import parse_key
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.models.embedding.prices import FREE
from rag_assets.pipeline.chunking import lines_by_rule
from rag_assets.pipeline.uploads import Uploads, uploads_source
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.upload_states import UploadState, UploadStatus
from rag_assets.storage.lake.model import ChunkSetRow
from rag_assets.storage.lake.store import Lake, TenantLake
from rag_assets.systems.team_guidelines.documents import (
    DocumentChunk,
    DocumentChunks,
    DroppedChunk,
    MaskedSecrets,
    shown_document,
)
from rag_assets.systems.team_guidelines.keys import GuidelineKeys
from rag_assets.systems.team_guidelines.progress import NO_PROGRESS, Progress, progress_of
from rag_assets.systems.team_guidelines.projects import OpenProject

CURSOR = "^([0-9]{1,17})-([0-9a-f]{32})$"
"""What the `next` of a page is: microseconds, and an id."""

_CURSOR = re.compile(CURSOR)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """An uploaded file as it came.

    Attributes:
        pieces: of its content; the first one is there already.
    """

    file_name: str
    mime_type: str
    size: int
    pieces: Iterator[bytes]


class GuidelineLibrary:
    """The documents of projects.

    Args:
        catalog, blobs: of the installation.
        lake: has texts and passages.
        uploads: accepts and removes files.
        keys: of projects.
    """

    def __init__(
        self, catalog: Catalog, blobs: BlobStore, lake: Lake, uploads: Uploads, keys: GuidelineKeys
    ) -> None:
        self._catalog = catalog
        self._blobs = blobs
        self._lake = lake
        self._keys = keys
        self.uploads = uploads

    def page(
        self,
        project: OpenProject,
        *,
        status: UploadStatus | None = None,
        after: str | None = None,
        limit: int,
    ) -> DocumentPage:
        """A page of a project's documents, the newest first.

        Args:
            project: whose.
            status: only these; by default all.
            after: the `next` of the page before.
            limit: documents at most.

        Raises:
            InvalidRequest: `after` is no `next`.
        """
        found = self._catalog.upload_states.page(
            project.record.id,
            status=status,
            after=None if after is None else _place(after),
            limit=limit + 1,
        )
        more, found = len(found) > limit, found[:limit]
        return DocumentPage(
            documents=tuple(self._shown(project, found)),
            next=_cursor(found[-1]) if more else None,
            rag_guidelines=project.record.rag_guidelines,
            key=self._keys.state(project),
        )

    def document(self, project: OpenProject, document_id: str) -> GuidelineDocument:
        """One document.

        Raises:
            UnknownDocument: the project has no such document.
        """
        [shown] = self._shown(project, [self._state(project, document_id)])
        return shown

    def require_uploads(self, project: OpenProject) -> UploadsConfig:
        """The source that takes a project's files, if it may be given any now.

        Raises:
            GuidelinesOff: the organization has its guidelines switched off.
            NoProviderKey: there is no usable key for the provider that embeds.
            CapReached: a cap on spending is reached.
            NoUploadsSource: it is not clear where they go.
        """
        if not project.record.rag_guidelines:
            raise GuidelinesOff(
                "the organization has its guidelines switched off",
                hint="an admin of the organization switches them on",
            )
        self._keys.require(project)
        self._require_budget(project)
        return uploads_source(project.configured)

    def delete(self, project: OpenProject, document_id: str, by: str) -> DeletedDocument:
        """Delete a document: it answers no more, and its file is gone."""
        gone = self.uploads.remove(project.ref, document_id, by)
        return DeletedDocument(document_id, "removed" if gone else "unchanged")

    def set_enabled(
        self, project: OpenProject, document_id: str, by: str, *, enabled: bool
    ) -> GuidelineDocument:
        """Have a document answer no more from now on, or again; nothing is embedded for it.

        Raises:
            UnknownDocument: the project has no such document.
        """
        self._catalog.uploads.set_enabled(project.ref, document_id, by, enabled=enabled)
        return self.document(project, document_id)

    def retry(
        self, project: OpenProject, document_id: str, by: str
    ) -> tuple[GuidelineDocument, bool]:
        """Try a document again that failed; returns it, and whether it did.

        Raises:
            UnknownDocument: the project has no such document.
            GuidelinesOff, NoProviderKey, CapReached: it would fail again; see require_uploads().
        """
        state = self._state(project, document_id)
        tried = state.status == "FAILED"
        if tried:
            self.require_uploads(project)
            self._catalog.reindex_requests.request_document(project.ref, document_id, by)
        return self.document(project, document_id), tried

    def chunks(self, project: OpenProject, document_id: str) -> DocumentChunks:
        """The passages of a document: of the version that answers, or else of the one under way.

        Raises:
            UnknownDocument: the project has no such document.
        """
        state = self._state(project, document_id)
        if state.chunk_set_key is not None:
            row = self._lake_of(project).chunk_sets([state.chunk_set_key]).get(state.chunk_set_key)
        else:
            row = self._progress(project, [state]).get(document_id, NO_PROGRESS).chunks
        shown = _shown_chunks(document_id, row, answers=state.answers)
        return replace(shown, masked=self._masked(project, document_id))

    def _masked(self, project: OpenProject, document_id: str) -> tuple[MaskedSecrets, ...]:
        """Return the credentials that are masked in the present text of a document."""
        lake, options = self._lake_of(project), project.tenant.parser.options
        keys = [
            parse_key(one.content_sha256, one.media_type, options, one.reindex_requests)
            for one in self._catalog.documents.find(project.record.id, [document_id])
            if one.content_sha256 is not None
        ]
        return tuple(
            MaskedSecrets(rule, tuple(lines))
            for row in lake.parsed(keys).values()
            for rule, lines in sorted(lines_by_rule(row.parsed).items())
        )

    def file(self, project: OpenProject, document_id: str) -> OriginalFile:
        """The file of a document as it was uploaded last.

        Raises:
            UnknownDocument: the project has no such document.
            BlobMissing: its file was lost.
            ServiceUnavailable: the store of blobs does not answer.
        """
        state = self._state(project, document_id)
        ref = project.ref
        pieces = self._blobs.tenant(ref.id, ref.incarnation).stream(state.content_sha256)
        first = next(pieces, b"")
        return OriginalFile(state.file_name, state.media_type, state.size, chain([first], pieces))

    def waiting(self, project: OpenProject) -> tuple[int, int, int]:
        """What is not embedded yet: documents, their tokens, and documents not measured yet."""
        states = [
            state
            for state in self._catalog.upload_states.page(project.record.id)
            if state.enabled and state.status != "READY"
        ]
        progress = self._progress(project, states)
        texts: dict[str, int] = {}
        documents = unmeasured = 0
        for state in states:
            found = progress.get(state.id, NO_PROGRESS)
            lacking = found.waiting_tokens(texts.keys())
            texts |= lacking
            documents += bool(found.missing)
            unmeasured += found.chunks is None and state.status == "PROCESSING"
        return documents, sum(texts.values()), unmeasured

    def _state(self, project: OpenProject, document_id: str) -> UploadState:
        state = self._catalog.upload_states.find(project.record.id, document_id)
        if state is None:
            raise UnknownDocument(
                "the project has no such document", hint="take an id from the list of documents"
            )
        return state

    def _shown(
        self, project: OpenProject, states: Sequence[UploadState]
    ) -> Iterator[GuidelineDocument]:
        lacking = [s for s in states if s.listed and s.status != "READY" and not s.answers]
        under_way = [s for s in states if s.listed and s.status == "PROCESSING"]
        progress = self._progress(project, list({s.id: s for s in lacking + under_way}.values()))
        chosen = (
            self._catalog.syncs.slice_documents(project.record.id) if under_way else frozenset()
        )
        for state in states:
            found = progress.get(state.id, NO_PROGRESS)
            yield shown_document(project, state, found, chosen=state.id in chosen)

    def _progress(self, project: OpenProject, states: Sequence[UploadState]) -> dict[str, Progress]:
        ids = [state.id for state in states if state.listed]
        if not ids:
            return {}
        documents = self._catalog.documents.find(project.record.id, ids)
        return progress_of(project, self._lake_of(project), documents)

    def _lake_of(self, project: OpenProject) -> TenantLake:
        return self._lake.tenant(project.ref.id, project.ref.incarnation)

    def _require_budget(self, project: OpenProject) -> None:
        tenant = project.tenant
        caps = present_caps(self._catalog, project.ref, tenant, run=0.0)
        # What one passage costs: a cap that has less left lets nothing be embedded.
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


def _shown_chunks(document_id: str, row: ChunkSetRow | None, *, answers: bool) -> DocumentChunks:
    if row is None:
        return DocumentChunks(document_id, answers, (), ())
    return DocumentChunks(
        document_id,
        answers,
        tuple(map(_shown_chunk, row.chunks)),
        tuple(DroppedChunk(dropped.ordinal, dropped.rules) for dropped in row.dropped),
    )


def _shown_chunk(chunk: Chunk) -> DocumentChunk:
    return DocumentChunk(
        chunk_index=chunk.ordinal,
        text=chunk.text,
        page=chunk.location.page,
        heading_path=chunk.heading_path,
        tokens=chunk.token_count,
        context=chunk.context,
    )


def _cursor(state: UploadState) -> str:
    return f"{(state.created_at - _EPOCH) // timedelta(microseconds=1)}-{state.id}"


def _place(cursor: str) -> tuple[datetime, str]:
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidRequest("`after` is not a `next`", hint="take it from the page before")
    return _EPOCH + timedelta(microseconds=int(found[1])), found[2]
