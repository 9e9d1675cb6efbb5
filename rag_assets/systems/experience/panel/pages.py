"""Pages: patterns, one pattern with what it is counted from, checkpoints, and their forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from uuid import UUID

from starlette.responses import Response

from rag_assets.common.errors import InvalidRequest
from rag_assets.panel.frame import PanelPage, SystemPanel, Visit
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.systems.experience.service import Experience

_PAGE = 50
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Room:
    """What a page works with: the tenant of the session as it is now, and the services."""

    visit: Visit
    record: TenantRecord
    experience: Experience

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.visit.backend.run(self.record.id, self.visit.session.name, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the tenant; see Backend.write."""
        return await self.visit.backend.write(self.record.id, work)


async def room_of(visit: Visit) -> Room:
    """The room of a visit.

    Raises:
        UnknownTenant: the tenant was removed.
        NoExperience: its profile is another one by now.
    """
    backend = visit.backend
    experience = Experience(backend.catalog, backend.retriever.masker)
    record = await backend.run(
        visit.tenant_id, visit.session.name, partial(experience.record, visit.tenant_id)
    )
    return Room(visit, record, experience)


async def patterns(visit: Visit) -> Response:
    """The patterns, by id, with what the tenant holds in all."""
    room = await room_of(visit)
    administration, record = room.experience.administration, room.record
    given = visit.request.query_params.get("after", "")
    after = _id(given) if given else None
    found = await room.read(partial(administration.page, record, after=after, limit=_PAGE + 1))
    report = await room.read(partial(administration.report, record))
    following = found[_PAGE - 1].id if len(found) > _PAGE else None
    return visit.html("patterns.html", patterns=found[:_PAGE], following=following, report=report)


async def pattern(visit: Visit) -> Response:
    """One pattern with its entries and merges."""
    room = await room_of(visit)
    id_ = _id(visit.request.path_params["pattern"])
    details = await room.read(partial(room.experience.administration.details, room.record, id_))
    projects = await room.read(partial(room.experience.checkpoints.projects, room.record.id))
    return visit.html(
        "pattern.html", details=details, projects={one.id: one.name for one in projects}
    )


async def checkpoints(visit: Visit) -> Response:
    """The last checkpoints, and what waits for the next ones."""
    room = await room_of(visit)
    found = await room.read(partial(room.experience.checkpoints.latest, room.record.id, _PAGE))
    projects = await room.read(partial(room.experience.checkpoints.projects, room.record.id))
    report = await room.read(partial(room.experience.administration.report, room.record))
    names = {one.id: one.name for one in projects}
    return visit.html("checkpoints.html", checkpoints=found, projects=names, report=report)


async def split(visit: Visit) -> Response:
    """Take an entry out of its pattern, and show the pattern that it is of then."""
    room = await room_of(visit)
    apart = await room.write(
        partial(
            room.experience.administration.split,
            room.record,
            _id(visit.request.path_params["pattern"]),
            _id(visit.field("entry")),
            by=visit.session.name,
        )
    )
    return visit.redirect(f"/patterns/{apart.id}")


async def merge(visit: Visit) -> Response:
    """Make a pattern a part of another one, and show that."""
    room = await room_of(visit)
    made = await room.write(
        partial(
            room.experience.administration.merge,
            room.record,
            _id(visit.request.path_params["pattern"]),
            _id(visit.field("into").strip()),
            by=visit.session.name,
        )
    )
    return visit.redirect(f"/patterns/{made.pattern.id}")


async def take_back(visit: Visit) -> Response:
    """Take back an entry: it answers no more."""
    room = await room_of(visit)
    await room.write(
        partial(
            room.experience.administration.delete_entry,
            room.record,
            _id(visit.field("entry")),
            by=visit.session.name,
        )
    )
    return visit.redirect("")


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidRequest("this is not an id", hint="copy the id of a pattern") from None


_PATTERN = "/patterns/{pattern:str}"

PANEL = SystemPanel(
    name="experience",
    path="experience",
    package="rag_assets.systems.experience.panel",
    tabs={"": "Patterns", "/checkpoints": "Checkpoints"},
    pages=(
        PanelPage("", patterns),
        PanelPage("/checkpoints", checkpoints),
        PanelPage(_PATTERN, pattern),
        PanelPage(f"{_PATTERN}/split", split, "POST"),
        PanelPage(f"{_PATTERN}/merge", merge, "POST"),
        PanelPage("/take-back", take_back, "POST"),
    ),
)
