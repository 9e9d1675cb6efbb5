"""Pages of the tree: a page, its readers and the grants, and the pages below it."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from rag_assets.api.workspace_responses import PageAccess
from rag_assets.panel.frame import Visit
from rag_assets.records.pages import ROOT, scope_of
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.workspace.page_lists import PageLists
from rag_assets.systems.workspace.panel.room import PAGE, Room, given, room_of
from rag_assets.systems.workspace.services import tree_service
from rag_assets.systems.workspace.tree import new_root, standing_of

_MOST_NAMES = 100
_SHOWN_READERS = 50


async def tree(visit: Visit) -> Response:
    """Show one page of the tree, and the first pages below it."""
    room = await room_of(visit)
    uuid = given(visit, "page").strip() or ROOT
    after = given(visit, "after") or None
    names = [name.strip() for name in given(visit, "who").split(",")]
    who = tuple(dict.fromkeys(name for name in names if name))[:_MOST_NAMES]
    found = await room.read(partial(_shown, room, uuid, after, who))
    return visit.html("tree.html", uuid=uuid, root=ROOT, who=", ".join(who), **found)


async def unplaced(visit: Visit) -> Response:
    """List the pages below an unknown page."""
    room = await room_of(visit)
    lists = PageLists(visit.backend.catalog.database)
    after = given(visit, "after") or None

    def read() -> tuple[list[Any], dict[str, str]]:
        found = lists.unplaced(room.record.id, after=after, limit=PAGE + 1)
        return found, _titles(room, [one.page.uuid for one in found])

    found, titles = await room.read(read)
    return visit.html(
        "unplaced.html", pages=found[:PAGE], following=_following(found), titles=titles
    )


def _shown(room: Room, uuid: str, after: str | None, who: tuple[str, ...]) -> dict[str, Any]:
    catalog, tenant_id = room.visit.backend.catalog, room.record.id
    lists = PageLists(catalog.database)
    path = lists.path(tenant_id, uuid)
    if uuid == ROOT and not path:
        path = [new_root()]
    standing = standing_of(path)
    below = lists.below(tenant_id, uuid, after=after, limit=PAGE + 1)
    uuids = [*(page.uuid for page in path), *(one.page.uuid for one in below)]
    verdict: PageAccess | None = None
    if who:
        verdict = tree_service(room.visit.backend).access(tenant_id, uuid, who)
    return {
        "path": path,
        "page": path[-1] if path else None,
        "standing": standing,
        "out": next((page for page in path if page.is_out), None),
        "readers": _readers(catalog, tenant_id, standing.scopes, is_new=path == [new_root()]),
        "below": below[:PAGE],
        "following": _following(below),
        "titles": _titles(room, uuids),
        "verdict": verdict,
        "unplaced": uuid == ROOT and bool(lists.unplaced(tenant_id, after=None, limit=1)),
        "shown_readers": _SHOWN_READERS,
    }


def _readers(
    catalog: Catalog, tenant_id: str, scopes: tuple[str, ...], *, is_new: bool
) -> list[tuple[str, list[str]]]:
    """Return the pages that decide access, the nearest first, with the principals of each."""
    grants = catalog.access.grants(tenant_id, scopes)
    if is_new and not grants:
        grants = {scope_of(ROOT): [*new_root().readers]}
    return [(scope.removeprefix(scope_of("")), grants.get(scope, [])) for scope in scopes]


def _titles(room: Room, uuids: list[str]) -> dict[str, str]:
    principals = room.visit.backend.reader.policy.principals(room.caller)
    lists = PageLists(room.visit.backend.catalog.database)
    return lists.titles(room.record.id, uuids, principals)


def _following(found: list[Any]) -> str | None:
    return found[PAGE - 1].page.uuid if len(found) > PAGE else None
