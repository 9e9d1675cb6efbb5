"""One document: its passages as a model gets them, what was withheld, and what can be done."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from urllib.parse import quote

from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from rag_assets.panel.frame import Visit
from rag_assets.systems.team_guidelines.panel.room import room_of

_DIGITS = 7
PASSAGES = 25
"""Passages on one page of a document."""


async def document(visit: Visit) -> Response:
    """Show a document, and one page of its passages."""
    room = await room_of(visit)
    library, id_ = room.guidelines.library, _id(visit)
    found = await room.read(partial(library.document, room.project, id_))
    chunks = await room.read(partial(library.chunks, room.project, id_))
    count = max(1, -(-len(chunks.chunks) // PASSAGES))
    number = min(count, _page_number(visit))
    first = (number - 1) * PASSAGES
    shown = replace(chunks, chunks=chunks.chunks[first : first + PASSAGES])
    return visit.html(
        "document.html",
        document=found,
        chunks=shown,
        passages=len(chunks.chunks),
        number=number,
        count=count,
    )


async def file(visit: Visit) -> Response:
    """The file as it was uploaded, to be kept and never opened as a page of ours."""
    room = await room_of(visit)
    found = await room.read(partial(room.guidelines.library.file, room.project, _id(visit)))
    name = quote(found.file_name, safe="")
    return StreamingResponse(
        iterate_in_threadpool(found.pieces),
        media_type=found.mime_type,
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "Content-Length": str(found.size),
        },
    )


async def retry(visit: Visit) -> Response:
    """Try a document again that failed."""
    room = await room_of(visit)
    await room.write(partial(room.guidelines.library.retry, room.project, _id(visit), room.by))
    return visit.redirect("?done=retried")


async def set_enabled(visit: Visit) -> Response:
    """Take a document out of answers, or have it answer again."""
    room = await room_of(visit)
    enabled = visit.field("enabled") == "yes"
    change = partial(room.guidelines.library.set_enabled, room.project, _id(visit), room.by)
    await room.write(partial(change, enabled=enabled))
    return visit.redirect(f"?done={'enabled' if enabled else 'disabled'}")


def _page_number(visit: Visit) -> int:
    text = visit.request.query_params.get("page", "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 1


def _id(visit: Visit) -> str:
    found: str = visit.request.path_params["document"]
    return found.replace("\0", "")
