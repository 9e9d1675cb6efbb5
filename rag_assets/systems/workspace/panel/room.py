"""The workspace of a panel visit, with the calls that its pages need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from rag_assets.panel.frame import Visit
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.workspace.errors import PROFILE, NoWorkspace

PAGE: Final = 50
"""Number of rows on a page of a list."""

_LONGEST: Final = 1_000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Room:
    """The session's workspace as it is now, with the services that a page needs."""

    visit: Visit
    record: TenantRecord

    @property
    def by(self) -> str:
        """Return the author of changes."""
        return self.visit.session.name

    @property
    def caller(self) -> Caller:
        """Return the caller who reads documents: admins read only what is granted to them."""
        return Caller(principals=self.visit.session.principals, name=self.by)

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.visit.backend.run(self.record.id, self.by, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the workspace; see Backend.write."""
        return await self.visit.backend.write(self.record.id, work)


async def open_room(visit: Visit) -> Room:
    """Return the room of a visit.

    Raises:
        UnknownTenant: the workspace was removed.
        NoWorkspace: the tenant's profile has changed.
    """
    get = partial(visit.backend.catalog.tenants.get, visit.tenant_id)
    record = await visit.backend.run(visit.tenant_id, visit.session.name, get)
    if record.profile != PROFILE:
        raise NoWorkspace("this tenant is no longer a workspace", hint="sign in again")
    return Room(visit, record)


def query_text(visit: Visit, name: str) -> str:
    """Return a query parameter, cut to a sensible length and without null characters."""
    return visit.request.query_params.get(name, "").replace("\x00", "")[:_LONGEST]
