"""Warnings: masked credentials, and chunks that were dropped because of a credential."""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from rag_assets.panel.frame import Visit
from rag_assets.systems.workspace.panel.room import PAGE, given, room_of

_LONGEST = 18


async def warnings(visit: Visit) -> Response:
    """List all warnings, the newest first; without the URL of documents the user may not read."""
    room = await room_of(visit)
    after = given(visit, "after")
    before = (
        int(after) if after.isascii() and after.isdecimal() and len(after) <= _LONGEST else None
    )
    found = await room.read(
        partial(
            visit.backend.catalog.events.page,
            room.record.id,
            kinds={"secret_dropped", "secret_masked"},
            before=before,
            limit=PAGE + 1,
            readers=room.caller.principals,
        )
    )
    following = found[PAGE - 1].id if len(found) > PAGE else None
    return visit.html("warnings.html", warnings=found[:PAGE], following=following)
