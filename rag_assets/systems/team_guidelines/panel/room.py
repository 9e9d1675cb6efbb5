"""The project of a visit, and the services that its pages call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rag_assets.panel.frame import Visit
from rag_assets.systems.team_guidelines.projects import OpenProject
from rag_assets.systems.team_guidelines.service import Guidelines

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Room:
    """What a page works with.

    Attributes:
        project: of the session, as it is now.
        guidelines: the services.
    """

    visit: Visit
    project: OpenProject
    guidelines: Guidelines

    @property
    def by(self) -> str:
        """The author of changes."""
        return self.visit.session.name

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.visit.backend.run(self.visit.tenant_id, self.by, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the project; see Backend.write."""
        return await self.visit.backend.write(self.visit.tenant_id, work)


async def room_of(visit: Visit) -> Room:
    """The project of a visit.

    Raises:
        UnknownProject, UnknownTenant: it was removed.
    """
    backend = visit.backend
    guidelines = Guidelines(backend.catalog, backend.embedders, backend.blobs, backend.uploads)

    def opened() -> OpenProject:
        return guidelines.projects.opened(backend.catalog.tenants.get(visit.tenant_id))

    project = await backend.run(visit.tenant_id, visit.session.name, opened)
    return Room(visit, project, guidelines)
