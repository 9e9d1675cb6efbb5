"""Operations of workspaces are those that their endpoints describe."""

from __future__ import annotations

from typing import Any, cast

from pydantic import TypeAdapter

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.workspace_responses import Settings
from rag_assets.client import workspace_operations
from rag_assets.systems.workspace.setting_routes import router
from rag_assets.systems.workspace.settings import SettingsDraft


def test_settings_are_sent_and_read_as_they_are_described() -> None:
    description = build_app(cast("Backend", None), routers=[router]).openapi()
    schemas: dict[str, Any] = description["components"]["schemas"]
    draft = dict.fromkeys(SettingsDraft.model_fields)
    for call in (
        workspace_operations.workspace_settings(tenant="acme"),
        workspace_operations.change_workspace_settings(draft, tenant="acme"),
    ):
        theirs = description["paths"][call.path][call.method.lower()]
        assert {parameter["name"] for parameter in theirs["parameters"]} == set(call.parameters)
        assert set(schemas["Settings"]["properties"]) == set(
            TypeAdapter(Settings).json_schema()["properties"]
        )
    assert set(schemas["SettingsDraft"]["properties"]) == set(draft)
