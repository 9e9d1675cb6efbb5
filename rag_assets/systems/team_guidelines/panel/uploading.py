"""Files that are dropped on the panel, or sent by its form."""

from __future__ import annotations

from functools import partial

from starlette.responses import JSONResponse, Response

from rag_assets.api.problems import Refused
from rag_assets.panel.frame import Visit
from rag_assets.panel.upload_form import SignedForm
from rag_assets.systems.team_guidelines.panel.knowledge import ID
from rag_assets.systems.team_guidelines.panel.room import room_of

_FIELDS = frozenset({"replaces"})
_ACCEPTED = 202
_DONE = 200


async def upload(visit: Visit) -> Response:
    """Take a file, or the new version of one; who may not is told before it is read."""
    room = await room_of(visit)
    library, project = room.guidelines.library, room.project
    source = await room.read(partial(library.require_uploads, project))
    form = SignedForm(visit.request.headers.get("content-type", ""), _FIELDS, visit.token)
    async with visit.backend.receiving.file(
        visit.request,
        form,
        source,
        tenant_id=visit.tenant_id,
        caller=room.by,
        receive=partial(library.uploads.receive, project.ref),
    ) as received:
        name, replaces = form.finish(), form.values.get("replaces") or None
        if replaces is not None and not ID.fullmatch(replaces):
            raise Refused(400, "what is to be replaced is no document")
        examine = partial(library.uploads.examine, source, received)
        new = await room.read(partial(examine, file_name=name, by=room.by))
        store = partial(library.uploads.store, project.ref, new, received)
        stored = await room.write(partial(store, replaces=replaces))
    if "x-panel-upload" in visit.request.headers:
        answer = {"id": stored.upload.id, "duplicate": stored.duplicate}
        return JSONResponse(answer, _DONE if stored.duplicate else _ACCEPTED)
    return visit.redirect("?done=duplicate" if stored.duplicate else "?done=uploaded")
