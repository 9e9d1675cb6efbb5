"""The project of a panel session, with the services that its pages call."""

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
    """Project and services of one visit.

    Attributes:
        project: project of the session, as it is now.
        guidelines: the services.
    """

    visit: Visit
    project: OpenProject
    guidelines: Guidelines

    @property
    def user(self) -> str:
        """Return the name of the session's user, the author of changes."""
        return self.visit.session.name

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.visit.backend.run(self.visit.tenant_id, self.user, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the project; see Backend.write."""
        return await self.visit.backend.write(self.visit.tenant_id, work)


async def open_room(visit: Visit) -> Room:
    """Open the project of a visit.

    Raises:
        UnknownProject, UnknownTenant: the project was removed.
    """
    backend = visit.backend
    guidelines = Guidelines(backend.catalog, backend.embedders, backend.blobs, backend.uploads)

    def open_project() -> OpenProject:
        return guidelines.projects.open_record(backend.catalog.tenants.get(visit.tenant_id))

    project = await backend.run(visit.tenant_id, visit.session.name, open_project)
    return Room(visit, project, guidelines)
