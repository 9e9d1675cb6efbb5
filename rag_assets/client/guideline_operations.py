"""The operations on a project's guidelines.

Every operation takes `project`, the application's id, which may be left out if the client was
given one.
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
"""Until a large file is written and examined."""
_CONTEXT_SECONDS = 15.0
"""Twice what the service waits for passages, and more."""


def upload_guideline(
    file_name: str, content: bytes, *, replaces: str | None = None, project: str | None = None
) -> Call[UploadedDocument]:
    """Upload a document (PDF, Markdown, DOCX), or the new version of one. For admins.

    The same bytes are not stored twice, so it may be sent again.

    Args:
        file_name: as it is shown.
        content: of the file.
        replaces: id of the document that it is the new version of.
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
    """One page of a project's documents, the newest first, with what became of them. For admins.

    Args:
        status: only these; by default all.
        after: the `next` of the page before.
        limit: documents at most.
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
    """Every document of a project, the newest first. For admins.

    Args:
        status: only these; by default all.
        page: how many are fetched at a time, when they are needed.
    """
    first = guidelines(status=status, limit=page, project=project)
    return Pages(first, lambda found: found.documents, lambda found: found.next)


def guideline(document_id: str, *, project: str | None = None) -> Call[GuidelineDocument]:
    """One document of a project, with what became of it. For admins."""
    return Call(
        "GET",
        f"{_ADDRESS}/{{document}}",
        GuidelineDocument,
        named={**_named(project), "document": document_id},
        of_project=True,
    )


def delete_guideline(document_id: str, *, project: str | None = None) -> Call[DeletedDocument]:
    """Delete a document; no context holds a passage of it from now on. For admins."""
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
    """Make the section of a prompt: passages of documents, else the plain text, else nothing.

    Args:
        task: what the prompt is about, in words.
        top_k: passages at most, up to 5.
        token_budget: tokens of the section at most, up to 2,000, where it is of passages.
        explain: also tell near misses, and how long each step took. For admins.
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
    """Read the plain text. For admins."""
    return Call("GET", f"{_ADDRESS}/text", GuidelinesText, named=_named(project), of_project=True)


def put_guideline_text(
    text: str, *, etag: str | None = None, project: str | None = None
) -> Call[GuidelinesText]:
    """Set the plain text. For admins.

    Args:
        text: empty for none.
        etag: of the text that it replaces; None: there must be none.
    """
    return Call(
        "PUT",
        f"{_ADDRESS}/text",
        GuidelinesText,
        named=_named(project),
        body={"text": text},
        headers={} if etag is None else {"If-Match": etag},
        of_project=True,
        # Sent again, it would be refused for the version that it has made itself.
        repeatable=False,
    )


def with_section(system_prompt: str, context: GuidelinesContext) -> str:
    """A system prompt with the section of a context at its end; as it was, if there is none."""
    if not context.section:
        return system_prompt
    return f"{system_prompt.rstrip()}\n\n{context.section}" if system_prompt else context.section


def _named(project: str | None) -> Mapping[str, str]:
    return {} if project is None else {"id": project}
