"""Operations of workspaces match the description of their endpoints."""

from __future__ import annotations

from typing import Any, cast

from pydantic import TypeAdapter

from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.workspace_responses import (
    PageAccess,
    Settings,
    TreeChange,
    TreeLines,
    TreePage,
    TreePages,
    TreeReconciled,
)
from rag_assets.client import workspace_operations
from rag_assets.systems.workspace.routes import manifests, settings_router, tree_lines, tree_router
from rag_assets.systems.workspace.settings import SettingsDraft


def test_the_tree_is_changed_as_it_is_described() -> None:
    routers = [tree_router, tree_lines, manifests]
    described = build_app(cast("Backend", None), routers=routers).openapi()
    schemas: dict[str, Any] = described["components"]["schemas"]
    for call, answer in (
        (workspace_operations.put_page("a", tenant="acme"), TreeChange),
        (workspace_operations.delete_page("a", tenant="acme"), TreeChange),
        (workspace_operations.change_page("a", {"parent": "b"}, tenant="acme"), TreeChange),
        (workspace_operations.page("a", tenant="acme"), TreePage),
        (workspace_operations.pages(limit=1, tenant="acme"), TreePages),
        (workspace_operations.write_tree([{"uuid": "a"}], tenant="acme"), TreeLines),
        (workspace_operations.reconcile_tree([], apply=True, tenant="acme"), TreeReconciled),
        (workspace_operations.page_access("a", ["ada"], tenant="acme"), PageAccess),
    ):
        theirs = described["paths"][call.path][call.method.lower()]
        named = {one["name"] for one in theirs["parameters"] if one["in"] == "query"}
        assert named == set(call.parameters)
        ours = TypeAdapter(answer).json_schema()["properties"]
        assert set(schemas[answer.__name__]["properties"]) == set(ours)
    put = workspace_operations.put_page("a")
    assert set(schemas["PageDraft"]["properties"]) == set(cast("dict[str, Any]", put.body))


def test_settings_are_sent_and_read_as_they_are_described() -> None:
    description = build_app(cast("Backend", None), routers=[settings_router]).openapi()
    schemas: dict[str, Any] = description["components"]["schemas"]
    draft = dict.fromkeys(SettingsDraft.model_fields)
    for call in (
        workspace_operations.workspace_settings(tenant="acme"),
        workspace_operations.change_workspace_settings(draft, tenant="acme"),
    ):
        theirs = description["paths"][call.path][call.method.lower()]
        assert {parameter["name"] for parameter in theirs["parameters"]} == set(call.parameters)
        ours = TypeAdapter(Settings).json_schema()["properties"]
        assert set(schemas["Settings"]["properties"]) == set(ours)
    assert set(schemas["SettingsDraft"]["properties"]) == set(draft)
