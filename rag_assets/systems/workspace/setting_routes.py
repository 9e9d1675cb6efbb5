"""The endpoints of a workspace's settings, below /rag/settings. For admins."""

from __future__ import annotations

from fastapi import APIRouter

from rag_assets.api.guard import Guarded
from rag_assets.api.workspace_responses import Settings
from rag_assets.systems.workspace.administration import (
    REFUSED,
    AdministeredDependency,
)
from rag_assets.systems.workspace.services import settings_service
from rag_assets.systems.workspace.settings import SettingsDraft

router = APIRouter(
    prefix="/rag/settings", tags=["workspace"], responses=REFUSED, route_class=Guarded
)


@router.get("")
async def settings(asked: AdministeredDependency) -> Settings:
    """Return the settings of a workspace that are in force. For admins."""
    return await asked.backend.run(
        asked.tenant, asked.by, lambda: settings_service(asked.backend).get(asked.tenant)
    )


@router.patch("")
async def change_settings(draft: SettingsDraft, asked: AdministeredDependency) -> Settings:
    """Change the given settings; null stands for the operator's configuration. For admins.

    Switching a workspace on indexes it again as a whole. Another model waits, as `pending_model`,
    until the whole workspace is indexed again; the present model answers until that is complete.
    """
    return await asked.backend.write(
        asked.tenant, lambda: settings_service(asked.backend).change(asked.tenant, draft, asked.by)
    )
