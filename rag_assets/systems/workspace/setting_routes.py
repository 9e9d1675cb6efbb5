"""The endpoints of a workspace's settings, below /rag/settings. For admins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from rag_assets.api.backend import Backend
from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded
from rag_assets.api.model import TenantQuery
from rag_assets.api.problems import documented
from rag_assets.api.workspace_responses import Settings
from rag_assets.systems.workspace.settings import SettingsDraft, SettingsService

_REFUSED = documented(400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503)

router = APIRouter(
    prefix="/rag/settings", tags=["workspace"], responses=_REFUSED, route_class=Guarded
)


@dataclass(frozen=True, slots=True)
class _Administered:
    """The workspace that an admin addresses."""

    tenant: str
    by: str
    backend: Backend

    @property
    def service(self) -> SettingsService:
        backend = self.backend
        allowed, masker = backend.embedders.settings.private_endpoints, backend.retriever.masker
        return SettingsService(backend.catalog, allowed, masker, backend.vectors)


async def _administered(
    request: Request,
    parameters: Annotated[TenantQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> _Administered:
    tenant = request.state.tenant = identity.administered(parameters.tenant)
    return _Administered(tenant, identity.name, backend)


AdministeredDependency = Annotated[_Administered, Depends(_administered)]


@router.get("")
async def settings(asked: AdministeredDependency) -> Settings:
    """The settings of a workspace, as they are in force. For admins."""
    return await asked.backend.run(asked.tenant, asked.by, lambda: asked.service.get(asked.tenant))


@router.patch("")
async def change_settings(draft: SettingsDraft, asked: AdministeredDependency) -> Settings:
    """Set what is given; null stands for what the operator has configured. For admins.

    Switching a workspace on indexes it again as a whole. Another model waits, as `pending_model`,
    until the whole workspace is indexed again; the present one answers until that is complete.
    """
    return await asked.backend.write(
        asked.tenant, lambda: asked.service.change(asked.tenant, draft, asked.by)
    )
