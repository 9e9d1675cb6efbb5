"""The workspace of a visit, and what its pages call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from rag_assets.common.errors import NoWorkspace
from rag_assets.panel.frame import Visit
from rag_assets.retrieval.model import Caller
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.workspace.settings import PROFILE

PAGE: Final = 50
"""Rows on a page of a list."""

_LONGEST: Final = 1_000
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Room:
    """What a page works with: the workspace of the session as it is now."""

    visit: Visit
    record: TenantRecord

    @property
    def by(self) -> str:
        """The author of changes."""
        return self.visit.session.name

    @property
    def caller(self) -> Caller:
        """In whose name documents are read: an admin reads what they are among the readers of."""
        return Caller(principals=self.visit.session.principals, name=self.by)

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.visit.backend.run(self.record.id, self.by, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the workspace; see Backend.write."""
        return await self.visit.backend.write(self.record.id, work)


async def room_of(visit: Visit) -> Room:
    """The room of a visit.

    Raises:
        UnknownTenant: the workspace was removed.
        NoWorkspace: its profile is another one by now.
    """
    get = partial(visit.backend.catalog.tenants.get, visit.tenant_id)
    record = await visit.backend.run(visit.tenant_id, visit.session.name, get)
    if record.profile != PROFILE:
        raise NoWorkspace("this is no workspace any more", hint="sign in again")
    return Room(visit, record)


def given(visit: Visit, name: str) -> str:
    """A parameter of the address, cut where it has more characters than can mean something."""
    return visit.request.query_params.get(name, "").replace("\x00", "")[:_LONGEST]
