"""The two panels: the plain text on the left, the knowledge base on the right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from starlette.responses import JSONResponse, Response

from rag_assets.common.formatting import counted
from rag_assets.ingest.sources.file_names import shown_name
from rag_assets.panel.frame import Visit
from rag_assets.storage.catalog.upload_states import UploadStatus
from rag_assets.systems.team_guidelines.documents import DocumentPage, GuidelineDocument
from rag_assets.systems.team_guidelines.panel.plain_text import shown_text
from rag_assets.systems.team_guidelines.panel.room import Room, room_of

MOST_DOCUMENTS = 1_000
"""That a project has: all are read, so that names can be searched and states counted."""

_PAGE = 50
_LONGEST_NUMBER = 4
ID = re.compile(r"[0-9a-f]{32}")
_DONE: Mapping[str, str] = {
    "uploaded": "The file was uploaded. It answers when it is READY.",
    "duplicate": "This very file is there already: nothing was changed.",
    "deleted": "Deleted.",
    "retried": "It is tried again.",
    "enabled": "It answers again from now on.",
    "disabled": "It is taken out of answers from now on.",
    "saved": "The text is saved.",
}
"""What is said after something was done, by what the address names."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the list, filtered.

    Attributes:
        documents: of the page.
        found: how many match, on all pages.
        names: of all documents, by id.
        number, pages: of the page.
        status, query: the filter.
        whole: what the service says of the project.
    """

    documents: Sequence[GuidelineDocument]
    found: int
    names: Mapping[str, str]
    number: int
    pages: int
    status: str
    query: str
    whole: DocumentPage

    @property
    def watched(self) -> list[str]:
        """Ids of those on the page that are processing."""
        return [one.id for one in self.documents if one.status == "PROCESSING"]

    @property
    def summary(self) -> str:
        """All documents in a line."""
        return _summary(self.whole)


async def overview(visit: Visit) -> Response:
    """Both panels."""
    room = await room_of(visit)
    listing = await _listing(room)
    done = _DONE.get(visit.request.query_params.get("done", ""), "")
    text = await shown_text(room)
    return visit.html("overview.html", listing=listing, done=done, **text)


async def part(visit: Visit) -> Response:
    """The list alone, for the script."""
    room = await room_of(visit)
    return visit.html("list.html", listing=await _listing(room))


async def watch(visit: Visit) -> Response:
    """What became of documents that the page shows as processing."""
    room = await room_of(visit)
    wanted = [id_ for id_ in visit.request.query_params.get("ids", "").split(",") if id_]
    shown = {id_ for id_ in wanted[:_PAGE] if ID.fullmatch(id_)}
    whole = await _all(room)
    present = {one.id: one for one in whole.documents if one.id in shown}
    watched = [id_ for id_, one in present.items() if one.status == "PROCESSING"]
    settled = [one for one in present.values() if one.status != "PROCESSING"]
    return visit.html(
        "watch.html",
        documents=list(present.values()),
        gone=sorted(shown - present.keys()),
        watched=watched,
        said=" ".join(map(_told, settled)),
        summary=_summary(whole),
    )


async def same_name(visit: Visit) -> Response:
    """The id of the document of a name, so that the script can ask what is meant."""
    room = await room_of(visit)
    name = shown_name(visit.request.query_params.get("name", ""))
    whole = await _all(room)
    found = next((one.id for one in whole.documents if one.file_name == name), None)
    return JSONResponse({"id": found})


async def delete(visit: Visit) -> Response:
    """Delete documents; what was not confirmed is asked first."""
    room = await room_of(visit)
    wanted = [id_ for id_ in visit.form.get("document", ()) if ID.fullmatch(id_)]
    whole = await _all(room)
    chosen = [one for one in whole.documents if one.id in set(wanted)]
    if not visit.field("confirmed"):
        return visit.html("delete.html", documents=chosen)
    for one in chosen:
        await room.write(partial(room.guidelines.library.delete, room.project, one.id, room.by))
    return visit.redirect("?done=deleted")


def _summary(whole: DocumentPage) -> str:
    states = Counter(one.status for one in whole.documents)
    counts = {"processing": states["PROCESSING"], "failed": states["FAILED"]}
    parts = [f"{count} {state}" for state, count in counts.items() if count]
    return ", ".join([counted(states.total(), "document"), *parts])


def _told(document: GuidelineDocument) -> str:
    if document.status == "FAILED":
        return f"{document.file_name} failed: {document.error_message or ''}"
    if document.note is not None:
        return f"{document.file_name} is ready. {document.note}"
    return f"{document.file_name} is ready: {counted(document.chunk_count or 0, 'passage')}."


async def _all(room: Room) -> DocumentPage:
    library = room.guidelines.library
    return await room.read(partial(library.page, room.project, limit=MOST_DOCUMENTS))


async def _listing(room: Room) -> Listing:
    query: Mapping[str, Any] = room.visit.request.query_params
    status = query.get("status", "")
    status = status if status in get_args(UploadStatus) else ""
    words = shown_name(query.get("q", "").strip())
    whole = await _all(room)
    matching = [
        one
        for one in whole.documents
        if (not status or one.status == status) and words.casefold() in one.file_name.casefold()
    ]
    pages = max(1, -(-len(matching) // _PAGE))
    number = min(_number(query.get("page", "")), pages)
    return Listing(
        documents=matching[(number - 1) * _PAGE : number * _PAGE],
        found=len(matching),
        names={one.id: one.file_name for one in whole.documents},
        number=number,
        pages=pages,
        status=status,
        query=words,
        whole=whole,
    )


def _number(text: str) -> int:
    usable = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    return max(1, int(text)) if usable else 1
