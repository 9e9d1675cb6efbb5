"""Panel pages for a project's documents and its plain text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args
from urllib.parse import quote

from starlette.concurrency import iterate_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

from rag_assets.api.guideline_responses import DocumentPage, GuidelineDocument
from rag_assets.api.problems import HttpRefusal
from rag_assets.common.errors import VersionChanged
from rag_assets.common.formatting import format_count
from rag_assets.common.tokens import count_text
from rag_assets.ingest.sources.uploads import clean_file_name
from rag_assets.panel.frame import Visit
from rag_assets.panel.guarding import SignedForm
from rag_assets.storage.catalog.uploads.table import UploadStatus
from rag_assets.systems.team_guidelines.errors import TextRefused, VersionMissing
from rag_assets.systems.team_guidelines.projects import OpenProject
from rag_assets.systems.team_guidelines.service import Guidelines
from rag_assets.systems.team_guidelines.texts import (
    MAX_CHARACTERS,
    GuidelineTexts,
    require_usable,
)

MAX_DOCUMENTS = 1_000
"""Maximum number of documents that a page reads, to filter by name and to count by status."""
DOCUMENTS_PER_PAGE = 50
PASSAGES_PER_PAGE = 25

_MAX_DIGITS = 6
"""Maximum number of digits of a page number in a URL."""
_ID = re.compile(r"[0-9a-f]{32}")
_OK = 200
_ACCEPTED = 202
_MESSAGES: Mapping[str, str] = {
    "uploaded": "The file was uploaded. It is included in answers when it is READY.",
    "duplicate": "This file is already stored. Nothing was changed.",
    "deleted": "The selected documents were deleted.",
    "retried": "The document will be processed again.",
    "enabled": "The document is included in answers again.",
    "disabled": "The document is excluded from answers.",
    "saved": "The text is saved.",
}
"""The message after an action, by value of the query parameter `done`."""


@dataclass(frozen=True, slots=True)
class DocumentListing:
    """One page of the filtered list of documents.

    Attributes:
        names: names of all documents, by id.
        number, pages: number of this page, and number of all pages.
        status, query: the values of the filter.
    """

    documents: Sequence[GuidelineDocument]
    match_count: int
    names: Mapping[str, str]
    number: int
    pages: int
    status: str
    query: str
    whole: DocumentPage

    @property
    def watched(self) -> list[str]:
        """Return the ids of documents on this page that are processing."""
        return [document.id for document in self.documents if document.status == "PROCESSING"]

    @property
    def summary(self) -> str:
        """Return the counts of all documents as one line."""
        return _format_status_counts(self.whole)


async def show_overview(visit: Visit) -> Response:
    """Show the plain text on the left, and the documents on the right."""
    services = await open_services(visit)
    listing = await _list_matching_documents(services)
    done = _MESSAGES.get(visit.request.query_params.get("done", ""), "")
    text = await build_text_form(services)
    return visit.html("overview.html", listing=listing, done=done, **text)


async def show_list(visit: Visit) -> Response:
    """Return the HTML of the document list alone, which the script puts into the page."""
    services = await open_services(visit)
    return visit.html("list.html", listing=await _list_matching_documents(services))


async def show_progress(visit: Visit) -> Response:
    """Return the current state of documents that the page shows as processing, for the script."""
    services = await open_services(visit)
    ids = [id_ for id_ in visit.request.query_params.get("ids", "").split(",") if id_]
    shown_ids = {id_ for id_ in ids[:DOCUMENTS_PER_PAGE] if _ID.fullmatch(id_)}
    whole = await _read_all_documents(services)
    documents = {document.id: document for document in whole.documents if document.id in shown_ids}
    watched = [id_ for id_, document in documents.items() if document.status == "PROCESSING"]
    settled = [document for document in documents.values() if document.status != "PROCESSING"]
    return visit.html(
        "watch.html",
        documents=list(documents.values()),
        gone=sorted(shown_ids - documents.keys()),
        watched=watched,
        said=" ".join(map(_format_announcement, settled)),
        summary=_format_status_counts(whole),
    )


async def find_same_name(visit: Visit) -> Response:
    """Return the id of the document with this file name, or null, as JSON.

    The script offers to replace that document by an upload.
    """
    services = await open_services(visit)
    name = clean_file_name(visit.request.query_params.get("name", ""))
    whole = await _read_all_documents(services)
    ids = (document.id for document in whole.documents if document.file_name == name)
    return JSONResponse({"id": next(ids, None)})


async def upload(visit: Visit) -> Response:
    """Store a new file or a new version; report missing permissions before reading the file."""
    services = await open_services(visit)
    library, project = services.guidelines.library, services.project
    source = await visit.read(partial(library.require_uploads, project))
    content_type = visit.request.headers.get("content-type", "")
    form = SignedForm(content_type, frozenset({"replaces"}), visit.token)
    async with visit.backend.file_receiver.receive(
        visit.request,
        form,
        source,
        tenant_id=visit.tenant_id,
        caller=visit.user,
        create=partial(library.uploads.receive, project.ref),
    ) as received:
        name, replaces = form.finish(), form.values.get("replaces") or None
        if replaces is not None and not _ID.fullmatch(replaces):
            raise HttpRefusal(400, "the field `replaces` must be the id of a document")
        examine = partial(library.uploads.examine, source, received)
        new = await visit.read(partial(examine, file_name=name, by=visit.user))
        store = partial(library.uploads.store, project.ref, new, received)
        stored = await visit.write(partial(store, replaces=replaces))
    if "x-panel-upload" in visit.request.headers:
        answer = {"id": stored.upload.id, "duplicate": stored.duplicate}
        return JSONResponse(answer, _OK if stored.duplicate else _ACCEPTED)
    return visit.redirect("?done=duplicate" if stored.duplicate else "?done=uploaded")


async def delete(visit: Visit) -> Response:
    """Delete documents, after a confirmation."""
    services = await open_services(visit)
    ids = {id_ for id_ in visit.form.get("document", ()) if _ID.fullmatch(id_)}
    whole = await _read_all_documents(services)
    selected = [document for document in whole.documents if document.id in ids]
    if not visit.field("confirmed"):
        return visit.html("delete.html", documents=selected)
    delete_one = partial(services.guidelines.library.delete, services.project)
    for document in selected:
        await visit.write(partial(delete_one, document.id, visit.user))
    return visit.redirect("?done=deleted")


async def show_document(visit: Visit) -> Response:
    """Show a document, and one page of its passages."""
    services = await open_services(visit)
    library, id_ = services.guidelines.library, _parse_document_id(visit)
    document = await visit.read(partial(library.find, services.project, id_))
    chunks = await visit.read(partial(library.read_chunks, services.project, id_))
    count = max(1, -(-len(chunks.chunks) // PASSAGES_PER_PAGE))
    number = min(count, _parse_page_number(visit))
    start = (number - 1) * PASSAGES_PER_PAGE
    return visit.html(
        "document.html",
        document=document,
        chunks=replace(chunks, chunks=chunks.chunks[start : start + PASSAGES_PER_PAGE]),
        passages=len(chunks.chunks),
        number=number,
        count=count,
    )


async def download(visit: Visit) -> Response:
    """Send the original file as an attachment, so that browsers do not open it in this origin."""
    services = await open_services(visit)
    file = partial(
        services.guidelines.library.open_file, services.project, _parse_document_id(visit)
    )
    original = await visit.read(file)
    name = quote(original.file_name, safe="")
    return StreamingResponse(
        iterate_in_threadpool(original.blocks),
        media_type=original.mime_type,
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "Content-Length": str(original.size),
        },
    )


async def retry(visit: Visit) -> Response:
    """Retry a document that failed."""
    services = await open_services(visit)
    retry_one = services.guidelines.library.retry
    await visit.write(partial(retry_one, services.project, _parse_document_id(visit), visit.user))
    return visit.redirect("?done=retried")


async def set_enabled(visit: Visit) -> Response:
    """Enable or disable a document."""
    services = await open_services(visit)
    enabled = visit.field("enabled") == "yes"
    change = services.guidelines.library.set_enabled
    change = partial(change, services.project, _parse_document_id(visit), visit.user)
    await visit.write(partial(change, enabled=enabled))
    return visit.redirect(f"?done={'enabled' if enabled else 'disabled'}")


async def _read_all_documents(services: ProjectServices) -> DocumentPage:
    list_page = services.guidelines.library.list_page
    return await services.visit.read(partial(list_page, services.project, limit=MAX_DOCUMENTS))


async def _list_matching_documents(services: ProjectServices) -> DocumentListing:
    parameters = services.visit.request.query_params
    status = parameters.get("status", "")
    status = status if status in get_args(UploadStatus) else ""
    query = clean_file_name(parameters.get("q", "").strip())
    whole = await _read_all_documents(services)
    matching = [
        document
        for document in whole.documents
        if (not status or document.status == status)
        and query.casefold() in document.file_name.casefold()
    ]
    pages = max(1, -(-len(matching) // DOCUMENTS_PER_PAGE))
    number = min(_parse_page_number(services.visit), pages)
    return DocumentListing(
        documents=matching[(number - 1) * DOCUMENTS_PER_PAGE : number * DOCUMENTS_PER_PAGE],
        match_count=len(matching),
        names={document.id: document.file_name for document in whole.documents},
        number=number,
        pages=pages,
        status=status,
        query=query,
        whole=whole,
    )


def _format_status_counts(whole: DocumentPage) -> str:
    states = Counter(document.status for document in whole.documents)
    counts = {"processing": states["PROCESSING"], "failed": states["FAILED"]}
    parts = [f"{count} {state}" for state, count in counts.items() if count]
    return ", ".join([format_count(states.total(), "document"), *parts])


def _format_announcement(document: GuidelineDocument) -> str:
    if document.status == "FAILED":
        return f"{document.file_name} failed: {document.error_message or ''}"
    if document.note is not None:
        return f"{document.file_name} is ready. {document.note}"
    return f"{document.file_name} is ready: {format_count(document.chunk_count or 0, 'passage')}."


def _parse_page_number(visit: Visit) -> int:
    text = visit.request.query_params.get("page", "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    return max(1, int(text)) if is_number else 1


def _parse_document_id(visit: Visit) -> str:
    id_: str = visit.request.path_params["document"]
    return id_.replace("\0", "")


@dataclass(frozen=True, slots=True)
class ProjectServices:
    """The session's project, and the services for its pages."""

    visit: Visit
    project: OpenProject
    guidelines: Guidelines


async def open_services(visit: Visit) -> ProjectServices:
    """Open the session's project.

    Raises:
        UnknownProject, UnknownTenant: the project was removed.
    """
    backend = visit.backend
    guidelines = Guidelines(backend.catalog, backend.embedders, backend.blobs, backend.uploads)

    def open_project() -> OpenProject:
        return guidelines.projects.open_record(backend.catalog.tenants.get(visit.tenant_id))

    return ProjectServices(visit, await visit.read(open_project), guidelines)


MAX_FORM_BYTES = 16 * MAX_CHARACTERS
"""Maximum bytes of the form; a character takes up to twelve bytes in it."""

_CONFLICT = 412
_UNPROCESSABLE = 422


async def build_text_form(services: ProjectServices) -> dict[str, Any]:
    """Return the template variables of the form that edits the plain text."""

    def read() -> dict[str, Any]:
        stored = _create_texts(services).get(services.visit.tenant_id)
        text = stored.text if stored else ""
        return {
            "stored": stored,
            "text": text,
            "version": stored.version if stored else "",
            "tokens": count_text(text),
            "most": MAX_CHARACTERS,
            "problems": (),
            "conflict": False,
        }

    return await services.visit.read(read)


async def save(visit: Visit) -> Response:
    """Save the plain text; if it was changed meanwhile, show the saved and the unsaved text."""
    services = await open_services(visit)
    text, version = _read_submitted_text(visit), visit.field("version")
    texts = _create_texts(services)
    try:
        await visit.read(partial(require_usable, text, visit.backend.retriever.masker))
        replaces = {version} if version else None
        put = partial(texts.put, services.project.ref, text, by=visit.user, replaces=replaces)
        await visit.write(put)
    except TextRefused as error:
        return await _show_unsaved_text(
            services, text, version, _UNPROCESSABLE, problems=error.problems
        )
    except (VersionChanged, VersionMissing):
        return await _show_unsaved_text(services, text, None, _CONFLICT, has_conflict=True)
    if _is_from_script(visit):
        return visit.html("text.html", done=True, **await build_text_form(services))
    return visit.redirect("?done=saved")


async def count_tokens(visit: Visit) -> Response:
    """Return the number of tokens of the text in the form."""
    await open_services(visit)
    count = await visit.read(partial(count_text, _read_submitted_text(visit)[: MAX_CHARACTERS + 1]))
    return HTMLResponse(f"{count:,} tokens")


async def _show_unsaved_text(
    services: ProjectServices,
    text: str,
    version: str | None,
    status: int,
    *,
    problems: tuple[str, ...] = (),
    has_conflict: bool = False,
) -> Response:
    """Show the form with the unsaved text.

    Args:
        version: the version that was edited; None for the stored version.
        has_conflict: whether a different text was saved meanwhile.
    """
    form_values = await build_text_form(services)
    count = await services.visit.read(partial(count_text, text[: MAX_CHARACTERS + 1]))
    form_values |= {"text": text, "tokens": count, "problems": problems, "conflict": has_conflict}
    form_values |= {} if version is None else {"version": version}
    if _is_from_script(services.visit):
        return services.visit.html("text.html", done=False, **form_values)
    return services.visit.html("text_page.html", status, done=False, **form_values)


def _read_submitted_text(visit: Visit) -> str:
    # Browsers send each line end as two characters.
    return visit.field("text").replace("\r\n", "\n")


def _create_texts(services: ProjectServices) -> GuidelineTexts:
    return GuidelineTexts(services.visit.backend.catalog.database)


def _is_from_script(visit: Visit) -> bool:
    return "hx-request" in visit.request.headers
