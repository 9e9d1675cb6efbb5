"""`rag-assets up`: the started processes, and their order."""

from __future__ import annotations

import psycopg
import pytest

from rag_assets.runtime.stack import LocalStack
from tests.installation import FAST, Installation


@pytest.mark.long
def test_nothing_acts_by_itself_on_a_catalog_that_is_refused(installation: Installation) -> None:
    installation.add_tenant("acme", **FAST)
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        connection.execute("UPDATE rag_catalog.alembic_version SET version_num = 'of-later'")
    stack = LocalStack(installation.session().settings)
    try:
        refused = installation.cli("up", "--json")
        assert refused.code == 1, refused.out
        states = {status.name: status.state for status in stack.status()}
        assert states["Fork server"] == "running"
        acting = ("Dagster webserver", "Dagster daemon", "Change watcher")
        assert {states[name] for name in acting} == {"stopped"}
    finally:
        stack.down()
