"""The operations on a project's guidelines.

Every operation takes `project`, the application's id of the project. It may be left out if the
client was created with a project.
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
"""Time to write and examine a large file."""
_CONTEXT_SECONDS = 15.0
"""More than twice the time that the service waits for passages."""


def upload_guideline(
    file_name: str, content: bytes, *, replaces: str | None = None, project: str | None = None
) -> Call[UploadedDocument]:
    """Upload a document (PDF, Markdown, DOCX) or a new version of a document. For admins.

    The same bytes are stored only once, so the request may be repeated.

    Args:
        file_name: the name to show.
        replaces: id of the document to replace.
    """
    return Call(
        "POST",
        f"{_ADDRESS}/upload",
        UploadedDocument,
        named=_named(project),
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
        status: only documents with this status; by default all.
        after: the `next` of the previous page.
        limit: maximum number of documents.
    """
    return Call(
        "GET",
        _ADDRESS,
        DocumentPage,
        named=_named(project),
        parameters={"status": status, "after": after, "limit": limit},
        of_project=True,
    )


def all_guidelines(
    *, status: DocumentStatus | None = None, page: int = _PAGE, project: str | None = None
) -> Pages[DocumentPage, GuidelineDocument]:
    """Iterate over all documents of a project, newest first. For admins.

    Args:
        status: only documents with this status; by default all.
        page: number of documents in each request; pages are fetched as needed.
    """
    first = guidelines(status=status, limit=page, project=project)
    return Pages(first, lambda found: found.documents, lambda found: found.next)


def guideline(document_id: str, *, project: str | None = None) -> Call[GuidelineDocument]:
    """Return a document of a project with its status. For admins."""
    return Call(
        "GET",
        f"{_ADDRESS}/{{document}}",
        GuidelineDocument,
        named={**_named(project), "document": document_id},
        of_project=True,
    )


def delete_guideline(document_id: str, *, project: str | None = None) -> Call[DeletedDocument]:
    """Delete a document; contexts omit its passages at once. For admins."""
    return Call(
        "DELETE",
        f"{_ADDRESS}/{{document}}",
        DeletedDocument,
        named={**_named(project), "document": document_id},
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
    """Build a prompt section from passages of documents, or else from the plain text.

    The section is empty if the project has neither.

    Args:
        task: description of the prompt's task.
        top_k: maximum number of passages, up to 5.
        token_budget: maximum tokens of a section of passages, up to 2,000.
        explain: also return near misses and the duration of each step. For admins.
    """
    given = {"topK": top_k, "tokenBudget": token_budget, "explain": explain or None}
    body = {name: value for name, value in given.items() if value is not None}
    return Call(
        "POST",
        f"{_ADDRESS}/context",
        GuidelinesContext,
        named=_named(project),
        body={"task": task, **body},
        of_project=True,
        seconds=_CONTEXT_SECONDS,
    )


def guideline_text(*, project: str | None = None) -> Call[GuidelinesText]:
    """Return the plain text. For admins."""
    return Call("GET", f"{_ADDRESS}/text", GuidelinesText, named=_named(project), of_project=True)


def put_guideline_text(
    text: str, *, etag: str | None = None, project: str | None = None
) -> Call[GuidelinesText]:
    """Set the plain text. For admins.

    Args:
        text: the new text; empty to clear it.
        etag: ETag of the text to replace; None requires that no text was set before.
    """
    return Call(
        "PUT",
        f"{_ADDRESS}/text",
        GuidelinesText,
        named=_named(project),
        body={"text": text},
        headers={} if etag is None else {"If-Match": etag},
        of_project=True,
        # A repeated call would be refused because of the version that the first call created.
        repeatable=False,
    )


def with_section(system_prompt: str, context: GuidelinesContext) -> str:
    """Append the section of a context to a system prompt; an empty section changes nothing."""
    if not context.section:
        return system_prompt
    return f"{system_prompt.rstrip()}\n\n{context.section}" if system_prompt else context.section


def _named(project: str | None) -> Mapping[str, str]:
    return {} if project is None else {"id": project}
