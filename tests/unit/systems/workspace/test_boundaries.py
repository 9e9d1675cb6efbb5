"""The core does not name the workspace, except in the places listed with a reason."""

from __future__ import annotations

from pathlib import Path

import rag_assets

ROOT = Path(rag_assets.__file__).parent
ALLOWED = {
    # The client distribution has one class with all operations, and is installed without systems.
    "api/workspace_responses.py",
    "client/clients.py",
    "client/operations.py",
    "client/workspace_operations.py",
    # `GET /rag/status` answers some tenants with such a response.
    "api/knowledge_routes.py",
    # Fields, values and descriptions of endpoints, tools and options, which users read.
    "api/model.py",
    "api/record_routes.py",
    "api/record_streams.py",
    "api/responses.py",
    "cli/arguments.py",
    "ingest/parsing/detection.py",
    "mcp/tools.py",
    "search/model.py",
    # A remedy names the command that allows the deletion.
    "storage/catalog/builds/syncs.py",
    # Keys of tenants.yaml are fields of one model.
    "tenants/application_settings.py",
    "tenants/model.py",
}
OTHER_WORKSPACES = {
    # Dagster's workspace.yaml.
    "cli/session.py",
    "cli/fork_server.py",
    "common/settings.py",
    "dagster_compat.py",
    "runtime/program_processes.py",
    "web/__main__.py",
}


def test_the_core_names_the_workspace_in_the_listed_modules_only() -> None:
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if not {"systems", "migrations"} & set(path.relative_to(ROOT).parts)
        and "workspace" in path.read_text(encoding="utf-8").lower()
    }
    assert naming == ALLOWED | OTHER_WORKSPACES
