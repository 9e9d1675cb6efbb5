"""The operations on a project's guidelines.

Every operation takes `project`, the id of the project in the application; by default, the project
with which the client was created.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from rag_assets.api.guideline_responses import (
    DeletedDocument,
    DocumentPage,
    DocumentStatus,
    GuidelineDocument,
    GuidelinesContext,
    GuidelinesText,
    UploadedDocument,
)
from rag_assets.client.calls import FormFile, Pages, drop_empty, operation

_ADDRESS = "/api/projects/{id}/guidelines"
_PAGE_DOCUMENTS = 100
_UPLOAD_SECONDS = 120.0
"""Timeout of an upload, which the service stores and examines before it answers."""
_CONTEXT_SECONDS = 15.0
"""Timeout of a context, more than twice as long as the service waits for passages."""
_operation = partial(operation, of_project=True)


@_operation("POST", f"{_ADDRESS}/upload", UploadedDocument, seconds=_UPLOAD_SECONDS)
def upload_guideline(
    file_name: str, content: bytes, *, replaces: str | None = None, project: str | None = None
) -> dict[str, Any]:
    """Upload a document (PDF, Markdown, DOCX), or a new version of it. For admins.

    The request may be repeated, because the same bytes are stored only once.

    Args:
        file_name: name for display.
        replaces: id of the document that this file replaces.
    """
    return {"file": FormFile(file_name, content, {"replaces": replaces})}


@_operation("GET", _ADDRESS, DocumentPage)
def guidelines(
    *,
    status: DocumentStatus | None = None,
    after: str | None = None,
    limit: int = _PAGE_DOCUMENTS,
    project: str | None = None,
) -> None:
    """Return a page of a project's documents with their status, newest first. For admins.

    Args:
        status: only documents with this status.
        after: the `next` of the previous page.
    """


def all_guidelines(
    *, status: DocumentStatus | None = None, page: int = _PAGE_DOCUMENTS, project: str | None = None
) -> Pages[DocumentPage, GuidelineDocument]:
    """Iterate over a project's documents, newest first. For admins."""
    first = guidelines(status=status, limit=page, project=project)
    return Pages(first, lambda fetched: fetched.documents)


@_operation("GET", f"{_ADDRESS}/{{document}}", GuidelineDocument)
def guideline(document_id: str, *, project: str | None = None) -> None:
    """Return a document of a project with its status. For admins."""


@_operation("DELETE", f"{_ADDRESS}/{{document}}", DeletedDocument)
def delete_guideline(document_id: str, *, project: str | None = None) -> None:
    """Delete a document; contexts omit its passages immediately. For admins."""


@_operation("POST", f"{_ADDRESS}/context", GuidelinesContext, seconds=_CONTEXT_SECONDS)
def guideline_context(
    task: str,
    *,
    top_k: int | None = None,
    token_budget: int | None = None,
    explain: bool = False,
    project: str | None = None,
) -> dict[str, Any]:
    """Return a section for a prompt, from passages of documents or from the plain text.

    Args:
        task: the task of the prompt, in words.
        top_k: maximum number of passages, up to 5.
        token_budget: maximum tokens of a section of passages, up to 2,000.
        explain: whether the answer includes near misses and the latency of each step. For admins.
    """
    options = {"topK": top_k, "tokenBudget": token_budget, "explain": explain or None}
    return {"body": {"task": task, **drop_empty(options)}}


@_operation("GET", f"{_ADDRESS}/text", GuidelinesText)
def guideline_text(*, project: str | None = None) -> None:
    """Return the plain text of a project's guidelines. For admins."""


# The first request creates a new version, so a repeated request would be refused.
@_operation("PUT", f"{_ADDRESS}/text", GuidelinesText, repeatable=False)
def put_guideline_text(text: str, *, etag: str | None = None, project: str | None = None) -> None:
    """Set the plain text of a project's guidelines. For admins.

    Args:
        text: the new text; an empty text removes it.
        etag: ETag of the text to replace; None if no text was set yet.
    """


def append_section(system_prompt: str, context: GuidelinesContext) -> str:
    """Append the section of a context, if any, to a system prompt."""
    if not context.section:
        return system_prompt
    return f"{system_prompt.rstrip()}\n\n{context.section}" if system_prompt else context.section
