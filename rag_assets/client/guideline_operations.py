"""The operations on a project's guidelines.

Every operation takes `project`, the id of the project in the application; by default, the project
with which the client was created.
"""

from __future__ import annotations

from collections.abc import Mapping

from rag_assets.api.guideline_responses import (
    DeletedDocument,
    DocumentPage,
    DocumentStatus,
    GuidelineDocument,
    GuidelinesContext,
    GuidelinesText,
    UploadedDocument,
)
from rag_assets.client.calls import Call, FormFile, Pages

_ADDRESS = "/api/projects/{id}/guidelines"
_PAGE = 100
_UPLOAD_SECONDS = 120.0
"""Timeout of an upload, which the service stores and examines before it answers."""
_CONTEXT_SECONDS = 15.0
"""Timeout of a context, more than twice as long as the service waits for passages."""


def upload_guideline(
    file_name: str, content: bytes, *, replaces: str | None = None, project: str | None = None
) -> Call[UploadedDocument]:
    """Upload a document (PDF, Markdown, DOCX), or a new version of it. For admins.

    The request may be repeated, because the same bytes are stored only once.

    Args:
        file_name: name for display.
        content: the bytes of the file.
        replaces: id of the document that this file replaces.
    """
    return Call(
        "POST",
        f"{_ADDRESS}/upload",
        UploadedDocument,
        named=_build_path_values(project),
        file=FormFile(file_name, content, {"replaces": replaces}),
        of_project=True,
        seconds=_UPLOAD_SECONDS,
    )


def guidelines(
    *,
    status: DocumentStatus | None = None,
    after: str | None = None,
    limit: int = _PAGE,
    project: str | None = None,
) -> Call[DocumentPage]:
    """Return a page of a project's documents with their status, newest first. For admins.

    Args:
        status: only documents with this status.
        after: the `next` of the previous page.
        limit: maximum number of documents.
    """
    return Call(
        "GET",
        _ADDRESS,
        DocumentPage,
        named=_build_path_values(project),
        parameters={"status": status, "after": after, "limit": limit},
        of_project=True,
    )


def all_guidelines(
    *, status: DocumentStatus | None = None, page: int = _PAGE, project: str | None = None
) -> Pages[DocumentPage, GuidelineDocument]:
    """Iterate over a project's documents, newest first. For admins.

    Args:
        status: only documents with this status.
        page: number of documents per request.
    """
    first = guidelines(status=status, limit=page, project=project)
    return Pages(first, lambda fetched: fetched.documents, lambda fetched: fetched.next)


def guideline(document_id: str, *, project: str | None = None) -> Call[GuidelineDocument]:
    """Return a document of a project with its status. For admins."""
    return Call(
        "GET",
        f"{_ADDRESS}/{{document}}",
        GuidelineDocument,
        named={**_build_path_values(project), "document": document_id},
        of_project=True,
    )


def delete_guideline(document_id: str, *, project: str | None = None) -> Call[DeletedDocument]:
    """Delete a document; contexts omit its passages immediately. For admins."""
    return Call(
        "DELETE",
        f"{_ADDRESS}/{{document}}",
        DeletedDocument,
        named={**_build_path_values(project), "document": document_id},
        of_project=True,
    )


def guideline_context(
    task: str,
    *,
    top_k: int | None = None,
    token_budget: int | None = None,
    explain: bool = False,
    project: str | None = None,
) -> Call[GuidelinesContext]:
    """Return a section for a prompt, from passages of documents or from the plain text.

    Args:
        task: the task of the prompt, in words.
        top_k: maximum number of passages, up to 5.
        token_budget: maximum tokens of a section of passages, up to 2,000.
        explain: whether the answer includes near misses and the latency of each step. For admins.
    """
    options = {"topK": top_k, "tokenBudget": token_budget, "explain": explain or None}
    body = {name: value for name, value in options.items() if value is not None}
    return Call(
        "POST",
        f"{_ADDRESS}/context",
        GuidelinesContext,
        named=_build_path_values(project),
        body={"task": task, **body},
        of_project=True,
        seconds=_CONTEXT_SECONDS,
    )


def guideline_text(*, project: str | None = None) -> Call[GuidelinesText]:
    """Return the plain text of a project's guidelines. For admins."""
    return Call(
        "GET",
        f"{_ADDRESS}/text",
        GuidelinesText,
        named=_build_path_values(project),
        of_project=True,
    )


def put_guideline_text(
    text: str, *, etag: str | None = None, project: str | None = None
) -> Call[GuidelinesText]:
    """Set the plain text of a project's guidelines. For admins.

    Args:
        text: the new text; an empty text removes it.
        etag: ETag of the text that it replaces; None if no text was set yet.
    """
    return Call(
        "PUT",
        f"{_ADDRESS}/text",
        GuidelinesText,
        named=_build_path_values(project),
        body={"text": text},
        headers={} if etag is None else {"If-Match": etag},
        of_project=True,
        # The first request creates a new version, so a repeated request would be refused.
        repeatable=False,
    )


def with_section(system_prompt: str, context: GuidelinesContext) -> str:
    """Append the section of a context, if any, to a system prompt."""
    if not context.section:
        return system_prompt
    return f"{system_prompt.rstrip()}\n\n{context.section}" if system_prompt else context.section


def _build_path_values(project: str | None) -> Mapping[str, str]:
    return {} if project is None else {"id": project}
