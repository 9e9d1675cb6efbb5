"""Statements that change a document's status follow the table of transitions."""

import pytest
from sqlalchemy.dialects import postgresql

from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.status import (
    NO_FAILURE,
    TRANSITIONS,
    Cause,
    build_deletion_update,
    build_put_off_update,
    build_reindex_update,
    change_status,
)

REF = TenantRef("acme", 1)


@pytest.mark.parametrize("cause", sorted(TRANSITIONS))
def test_change_status_of_a_cause_sets_its_status_and_skips_deleted_documents(cause: Cause) -> None:
    compiled = change_status(cause, REF).compile(dialect=postgresql.dialect())
    assert compiled.params["status"] == TRANSITIONS[cause].to
    assert "documents.status != " in str(compiled)
    is_cleared = NO_FAILURE.keys() <= compiled.params.keys()
    assert is_cleared == TRANSITIONS[cause].clears_failure


def test_statements_of_a_cause_set_its_status() -> None:
    statements = {
        "failed": build_put_off_update("failed", REF, "config"),
        "deferred": build_put_off_update("deferred", REF, "config"),
        "reindexed": build_reindex_update(REF, 0),
        "removed": build_deletion_update(REF, ["id"]),
    }
    for cause, statement in statements.items():
        params = statement.compile(dialect=postgresql.dialect()).params
        assert params["status"] == TRANSITIONS[cause].to, cause


def test_put_off_statement_of_a_failure_counts_an_attempt_and_of_a_deferral_does_not() -> None:
    failed = str(build_put_off_update("failed", REF, "config"))
    assert "attempts" in failed
    assert "attempts" not in str(build_put_off_update("deferred", REF, "config"))
