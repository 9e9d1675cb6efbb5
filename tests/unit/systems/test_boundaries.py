"""The core does not name a system, except in the modules listed here with a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rag_assets

ROOT = Path(rag_assets.__file__).parent
ALLOWED = {
    "code[-_ ]memory": {
        # The client distribution has one class with all operations, and needs no system.
        *("api/run_responses.py", "client/clients.py", "client/code_operations.py"),
        # Help of options of the one search command, which says where they apply.
        "cli/arguments.py",
    },
    "experience": {
        # The client distribution, as above.
        *("api/experience_responses.py", "client/clients.py", "client/experience_operations.py"),
        # Keys of tenants.yaml are fields of one model.
        "tenants/model.py",
        # The help of an option, which names two of its values as examples.
        "cli/thresholds.py",
    },
    "guideline": {
        # The client distribution, as above.
        *("api/guideline_responses.py", "client/clients.py", "client/exchange.py"),
        "client/guideline_operations.py",
        # An option of `organizations put`, a column of its table, and a field of its JSON.
        "cli/projects.py",
        # The column behind the opt-in of organizations, which the first release of its table named.
        "storage/catalog/tables.py",
        # The sentence of one kind of failure, which every interface shows.
        "common/failure_kinds.py",
    },
    "workspace": {
        # The client distribution, as above.
        *("api/workspace_responses.py", "client/clients.py", "client/operations.py"),
        "client/workspace_operations.py",
        # `GET /rag/status` answers some tenants with such a response.
        "api/knowledge_routes.py",
        # Fields, values and descriptions of endpoints, tools and options, which users read.
        *("api/model.py", "api/record_routes.py", "api/record_streams.py", "api/responses.py"),
        *("cli/arguments.py", "ingest/parsing/detection.py", "mcp/tools.py", "search/model.py"),
        # A remedy names the command that allows the deletion.
        "storage/catalog/builds/syncs.py",
        # Keys of tenants.yaml are fields of one model.
        *("tenants/application_settings.py", "tenants/model.py"),
        # Dagster's workspace.yaml.
        *("cli/session.py", "cli/fork_server.py", "common/settings.py", "dagster_compat.py"),
        *("runtime/program_processes.py", "web/__main__.py"),
    },
}


@pytest.mark.parametrize("name", ALLOWED)
def test_the_core_names_a_system_in_the_listed_modules_only(name: str) -> None:
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if not {"systems", "migrations"} & set(path.relative_to(ROOT).parts)
        and re.search(name, path.read_text(encoding="utf-8"), re.IGNORECASE)
    }
    assert naming == ALLOWED[name]
