"""Pages of the records and the tree: their status, readers and chunks."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, get_args

from starlette.responses import Response

from rag_assets.api.record_routes import listed_records, reason, whereabouts
from rag_assets.api.responses import RecordWhereabouts
from rag_assets.api.workspace_responses import PageAccess
from rag_assets.common.errors import UnknownDocument
from rag_assets.common.failure_kinds import WORDS, FailureKind
from rag_assets.ingest.sources.record_bodies import BODIES
from rag_assets.ingest.sources.records import ROOT, record_document_id, scope_of
from rag_assets.panel.frame import Visit
from rag_assets.records.text_records import records_source
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.records.states import RecordFilter, RecordState, RecordStatus
from rag_assets.systems.workspace.page_lists import PageLists
from rag_assets.systems.workspace.panel.room import PAGE, Room, open_room, query_text
from rag_assets.systems.workspace.tree import find_standing, new_root
from rag_assets.systems.workspace.tree_service import TreeService
from rag_assets.tenants.model import Tenant

_PLACE: Final = ("source", "type", "id")


async def records(visit: Visit) -> Response:
    """List the records that the user may read, page by page."""
    room = await open_room(visit)
    status, source_type = query_text(visit, "status"), query_text(visit, "type")
    after = tuple(query_text(visit, f"after_{name}") for name in _PLACE)
    chosen = RecordFilter(
        status=_parse_status(status),
        source_type=source_type if source_type in BODIES else None,
        page_uuid=query_text(visit, "page").strip() or None,
        after=after if all(after) else None,  # type: ignore[arg-type]
    )
    found = await room.read(partial(_read_page, room, chosen))
    shown = found[:PAGE]
    return visit.html(
        "records.html",
        records=shown,
        following=_build_next_parameters(chosen, shown[-1]) if len(found) > PAGE else None,
        chosen=chosen,
        statuses=get_args(RecordStatus),
        types=tuple(one for one in BODIES if one != "block"),
        reason=reason,
        remedy=_find_remedy,
    )


async def record(visit: Visit) -> Response:
    """Show one record; respond with 404 also if the user has no access to it."""
    room = await open_room(visit)
    source, source_type, source_id = (query_text(visit, name) for name in _PLACE)
    pushed = _find_source(room, source)
    scope, document_id = pushed[1], record_document_id(pushed[0], source_type, source_id)

    def read() -> tuple[RecordState | None, RecordWhereabouts]:
        backend, tenant_id = visit.backend, room.record.id
        found = whereabouts(
            backend.reader,
            tenant_id,
            room.caller,
            source_id=source_id,
            document_id=document_id,
            scope=scope,
        )
        principals = backend.reader.policy.principals(room.caller)
        states = backend.catalog.record_states
        return states.find(tenant_id, document_id, principals, scope=scope), found

    state, found = await room.read(read)
    if state is None:
        raise UnknownDocument(
            "the workspace has no record with this id",
            hint="choose a record from the list of records",
        )
    return visit.html("record.html", state=state, found=found, remedy=_find_remedy)


def _read_page(room: Room, chosen: RecordFilter) -> list[RecordState]:
    tenant = Tenant.from_config(room.record.config)
    return listed_records(room.visit.backend.reader, tenant, room.caller, chosen, limit=PAGE + 1)


def _find_source(room: Room, name: str) -> tuple[str, str]:
    """Return the named or only source of records, and the scope of its records without a page.

    Raises:
        NoRecordsSource: no source has this name, or several could be meant.
    """
    tenant = Tenant.from_config(room.record.config)
    source = records_source(tenant, name or None, pulled=True)
    return source.name, source.scope or tenant.access.scope


def _build_next_parameters(chosen: RecordFilter, last: RecordState) -> dict[str, Any]:
    named = {
        "status": chosen.status,
        "type": chosen.source_type,
        "page": chosen.page_uuid,
        "after_source": last.source,
        "after_type": last.source_type,
        "after_id": last.source_id,
    }
    return {name: value for name, value in named.items() if value}


def _parse_status(text: str) -> RecordStatus | None:
    return next((one for one in get_args(RecordStatus) if one == text), None)


def _find_remedy(kind: FailureKind | None) -> str:
    return WORDS[kind or "unreadable"].remedy


_MOST_NAMES = 100
_SHOWN_READERS = 50


async def tree(visit: Visit) -> Response:
    """Show one page of the tree, and the first pages below it."""
    room = await open_room(visit)
    uuid = query_text(visit, "page").strip() or ROOT
    after = query_text(visit, "after") or None
    names = [name.strip() for name in query_text(visit, "who").split(",")]
    who = tuple(dict.fromkeys(name for name in names if name))[:_MOST_NAMES]
    found = await room.read(partial(_build_page_view, room, uuid, after, who))
    return visit.html("tree.html", uuid=uuid, root=ROOT, who=", ".join(who), **found)


async def unplaced(visit: Visit) -> Response:
    """List the pages below an unknown page."""
    room = await open_room(visit)
    lists = PageLists(visit.backend.catalog.database)
    after = query_text(visit, "after") or None

    def read() -> tuple[list[Any], dict[str, str]]:
        found = lists.unplaced(room.record.id, after=after, limit=PAGE + 1)
        return found, _read_titles(room, [one.page.uuid for one in found])

    found, titles = await room.read(read)
    return visit.html(
        "unplaced.html", pages=found[:PAGE], following=_find_next_uuid(found), titles=titles
    )


def _build_page_view(
    room: Room, uuid: str, after: str | None, who: tuple[str, ...]
) -> dict[str, Any]:
    catalog, tenant_id = room.visit.backend.catalog, room.record.id
    lists = PageLists(catalog.database)
    path = lists.path(tenant_id, uuid)
    if uuid == ROOT and not path:
        path = [new_root()]
    standing = find_standing(path)
    below = lists.directly_below(tenant_id, uuid, after=after, limit=PAGE + 1)
    uuids = [*(page.uuid for page in path), *(one.page.uuid for one in below)]
    verdict: PageAccess | None = None
    if who:
        verdict = TreeService.from_backend(room.visit.backend).access(tenant_id, uuid, who)
    return {
        "path": path,
        "page": path[-1] if path else None,
        "standing": standing,
        "out": next((page for page in path if page.is_out), None),
        "readers": _list_readers(catalog, tenant_id, standing.scopes, is_new=path == [new_root()]),
        "below": below[:PAGE],
        "following": _find_next_uuid(below),
        "titles": _read_titles(room, uuids),
        "verdict": verdict,
        "unplaced": uuid == ROOT and bool(lists.unplaced(tenant_id, after=None, limit=1)),
        "shown_readers": _SHOWN_READERS,
    }


def _list_readers(
    catalog: Catalog, tenant_id: str, scopes: tuple[str, ...], *, is_new: bool
) -> list[tuple[str, list[str]]]:
    """Return the pages that decide access, the nearest first, with the principals of each."""
    grants = catalog.access.grants(tenant_id, scopes)
    if is_new and not grants:
        grants = {scope_of(ROOT): [*new_root().readers]}
    return [(scope.removeprefix(scope_of("")), grants.get(scope, [])) for scope in scopes]


def _read_titles(room: Room, uuids: list[str]) -> dict[str, str]:
    principals = room.visit.backend.reader.policy.principals(room.caller)
    lists = PageLists(room.visit.backend.catalog.database)
    return lists.titles(room.record.id, uuids, principals)


def _find_next_uuid(found: list[Any]) -> str | None:
    return found[PAGE - 1].page.uuid if len(found) > PAGE else None
