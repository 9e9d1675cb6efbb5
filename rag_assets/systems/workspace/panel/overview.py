"""The first page: a switch, the queue, and forms to index documents again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from rag_assets.api.reindexing import reindexed
from rag_assets.api.status import status_of_records
from rag_assets.api.workspace_responses import Settings
from rag_assets.api.write_model import Reindex
from rag_assets.common.errors import ConfiguredByOperator, InvalidRequest, UnknownDocument
from rag_assets.common.formatting import counted, duration
from rag_assets.panel.frame import Visit
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.systems.workspace.panel.room import Room, room_of
from rag_assets.systems.workspace.services import settings_service
from rag_assets.systems.workspace.settings import SettingsDraft

_REINDEX: Final[TypeAdapter[Reindex]] = TypeAdapter(Reindex)
_UNDER_WAY: Final = frozenset({"BUILDING", "COMPLETE", "HELD"})
_LATEST: Final = 5
_DONE: Final = {
    "on": "It is on. The whole workspace is indexed again.",
    "off": "It is off. Questions are answered with that, and nothing is indexed.",
}
_UNPROCESSABLE: Final = 422


@dataclass(frozen=True, slots=True)
class Replacement:
    """A build that will replace the serving build.

    Attributes:
        embedder: its embedder.
        former: the embedder of the serving build; None if no build serves.
        documents, of_documents: documents in the build, and in total.
    """

    embedder: str
    former: str | None
    documents: int
    of_documents: int


async def overview(visit: Visit) -> Response:
    """Show switch, status, warnings, and forms to index documents again."""
    done = _DONE.get(visit.request.query_params.get("done", ""), "")
    count = visit.request.query_params.get("again", "")
    if count.isascii() and count.isdecimal() and len(count) <= len("1000000"):
        done = f"{counted(int(count), 'document')} will be indexed again."
    return await _page(await room_of(visit), done=done)


async def status(visit: Visit) -> Response:
    """Return only the status, for the script."""
    room = await room_of(visit)
    return visit.html("status.html", **await room.read(lambda: _status(room)))


async def switch(visit: Visit) -> Response:
    """Switch the workspace on or off; ask for confirmation before switching off."""
    room = await room_of(visit)
    on = visit.field("enabled") == "yes"
    if not on and not visit.field("confirmed"):
        return visit.html("switch_off.html")
    service = settings_service(visit.backend)
    draft = SettingsDraft(enabled=on)
    try:
        await room.write(lambda: service.change(room.record.id, draft, room.by))
    except ConfiguredByOperator:
        said = "The operator has switched this workspace off. Ask them to switch it on."
        return await _page(room, problem=said, code=409)
    return visit.redirect(f"?done={'on' if on else 'off'}")


async def reindex(visit: Visit) -> Response:
    """Request that documents are indexed again; if a model waits, show its cost first."""
    room = await room_of(visit)
    scope, id_ = visit.field("scope"), visit.field("id").strip()
    body: dict[str, Any] = {"scope": scope} if scope == "workspace" else {"scope": scope, "id": id_}
    try:
        wanted = _REINDEX.validate_python(body)
    except ValidationError:
        return await _page(
            room, problem="There is no page or database of that id.", code=_UNPROCESSABLE
        )
    if scope == "workspace" and not visit.field("confirmed"):
        found = await room.read(lambda: _status(room))
        if found["told"].pending_model is not None:
            return visit.html("new_model.html", **found)
    catalog = visit.backend.catalog
    try:
        done = await room.write(lambda: reindexed(catalog, room.record.id, wanted, room.by))
    except (UnknownDocument, InvalidRequest) as error:
        return await _page(room, problem=f"{error.advice}.", code=404)
    return visit.redirect(f"?again={done.documents}")


async def _page(room: Room, *, done: str = "", problem: str = "", code: int = 200) -> Response:
    def read() -> dict[str, Any]:
        warnings = room.visit.backend.catalog.events.page(
            room.record.id,
            kinds={"secret_dropped", "secret_masked"},
            limit=_LATEST,
            readers=room.caller.principals,
        )
        return {**_status(room), "warnings": warnings}

    return room.visit.html(
        "overview.html", code, **await room.read(read), done=done, problem=problem
    )


def _status(room: Room) -> dict[str, Any]:
    catalog, record = room.visit.backend.catalog, room.record
    found = status_of_records(catalog, record, readers=None)
    settings: Settings = settings_service(room.visit.backend).shown(record)
    build = _replacement(catalog, record)
    filling = found.backfilled is False and not found.disabled
    return {
        "told": found,
        "settings": settings,
        "build": build,
        "filling": filling,
        "moves": not found.disabled and bool(found.queue_depth or build or filling),
        "duration": duration,
    }


def _replacement(catalog: Catalog, record: TenantRecord) -> Replacement | None:
    builds = catalog.generations.live(record.id)
    made = [build for build in builds if build.state in _UNDER_WAY]
    if not made:
        return None
    newest = made[-1]
    answering = next((build for build in builds if build.state == "SERVING"), None)
    progress = catalog.build_progress.of(record.id, {newest.number: None})[newest.number]
    return Replacement(
        newest.embedder_id,
        None if answering is None else answering.embedder_id,
        progress.documents,
        progress.of_documents,
    )
