"""Guideline documents as the people of a project see them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rag_assets.api.guideline_responses import DocumentPage, GuidelineDocument, Stage
from rag_assets.common.failure_kinds import WORDS, empty_note
from rag_assets.storage.catalog.upload_states import UploadState
from rag_assets.systems.team_guidelines.camel import CAMEL
from rag_assets.systems.team_guidelines.progress import Progress
from rag_assets.systems.team_guidelines.projects import OpenProject

__all__ = [
    "DocumentChunk",
    "DocumentChunks",
    "DocumentPage",
    "DroppedChunk",
    "GuidelineDocument",
    "MaskedSecrets",
    "shown_document",
]


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A passage of a document, as a model gets it.

    Attributes:
        page: of a PDF; None elsewhere.
        heading_path: the headings that it stands under.
        tokens: of its text and its context.
        context: lines from above it, where it begins within a table, a list or code.
    """

    __pydantic_config__ = CAMEL

    chunk_index: int
    text: str
    page: int | None
    heading_path: tuple[str, ...]
    tokens: int
    context: str = ""


@dataclass(frozen=True, slots=True)
class DroppedChunk:
    """A passage that was withheld.

    Attributes:
        rules: for credentials, which found one that it touches.
    """

    __pydantic_config__ = CAMEL

    chunk_index: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MaskedSecrets:
    """The credentials that one rule found in the present text of a document, which are masked.

    Attributes:
        lines: of the text on which they begin, from 1.
    """

    __pydantic_config__ = CAMEL

    rule: str
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DocumentChunks:
    """The passages of a document.

    Attributes:
        answers: whether they are those of the version that answers; else of one under way.
        dropped: the passages that were withheld.
        masked: the credentials that are masked in them.
    """

    __pydantic_config__ = CAMEL

    document_id: str
    answers: bool
    chunks: tuple[DocumentChunk, ...]
    dropped: tuple[DroppedChunk, ...]
    masked: tuple[MaskedSecrets, ...] = ()


def shown_document(
    project: OpenProject, state: UploadState, progress: Progress, *, chosen: bool
) -> GuidelineDocument:
    """A document as it is shown.

    Args:
        project: whose.
        state: what the catalog knows.
        progress: of its present content, where it is not READY.
        chosen: whether the run under way works on it.
    """
    words = None if state.error_kind is None else WORDS[state.error_kind]
    tokens = state.token_count if state.answers else progress.tokens
    price = project.price
    shown = GuidelineDocument(
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
        dropped=_dropped(state, progress),
        retry_at=state.retry_at,
        enabled=state.enabled,
        answers=state.answers,
        can_retry=state.status == "FAILED" and (words is None or words.can_retry),
        note=_note(state),
    )
    if state.status != "PROCESSING":
        return shown
    total = progress.total if state.listed else None
    return replace(
        shown,
        stage=_stage(state, progress, chosen=chosen),
        done=None if total is None else progress.done,
        total=total,
    )


def _note(state: UploadState) -> str | None:
    """Return why nothing of a document is found that is ready, and not switched off."""
    is_ready = state.status == "READY" and state.enabled
    return empty_note(state.chunk_count, state.dropped_count) if is_ready else None


def _dropped(state: UploadState, progress: Progress) -> int:
    if state.answers or progress.chunks is None:
        return state.dropped_count
    return len(progress.chunks.dropped)


def _stage(state: UploadState, progress: Progress, *, chosen: bool) -> Stage:
    if not state.listed or not (chosen or state.retry_at):
        return "queued"
    if not progress.parsed:
        return "parsing"
    if progress.chunks is None:
        return "chunking"
    return "embedding" if progress.missing else "indexing"
