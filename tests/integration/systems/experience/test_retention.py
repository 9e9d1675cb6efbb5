"""Entries past their retention are deleted and counted, unless a hold covers them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import insert, select

from rag_assets.common.clock import Clock
from rag_assets.common.errors import OnHold
from rag_assets.storage.catalog.erasure.holds import HoldScope
from rag_assets.storage.catalog.erasure.retention import Cutoffs
from rag_assets.systems.experience.administration import Administration
from rag_assets.systems.experience.model import RetractDraft
from rag_assets.systems.experience.tables import knowledge_staging
from tests.integration.systems.experience.conftest import Learning

NOW = datetime.now(UTC)
STAGED = knowledge_staging.c


def plant(learning: Learning, project: UUID | None = None) -> None:
    entry = {
        "tenant": learning.tenant,
        "entry_type": "failure_solution",
        "project_id": project,
        "agent_type": "builder",
        "failure_description": "Words of an old failure.",
    }
    with learning.driver.session.catalog.database.begin() as connection:
        for embedded_at in (NOW - timedelta(days=300), None):
            statement = insert(knowledge_staging).values(**entry, embedded_at=embedded_at)
            connection.execute(statement)


@pytest.mark.parametrize(
    ("is_held", "left"), [(False, [None]), (True, [NOW - timedelta(days=300), None])]
)
def test_prune_deletes_expired_entries_that_no_hold_covers(
    learning: Learning, is_held: bool, left: list[datetime | None]
) -> None:
    plant(learning)
    catalog = learning.driver.session.catalog
    ref = catalog.tenants.get(learning.tenant).ref
    if is_held:
        catalog.holds.set(ref, HoldScope(), reason="a lawsuit", by="counsel")
    cutoffs = Cutoffs({}, NOW - timedelta(days=200))
    begun = catalog.erasures.begin_prune(ref, cutoffs, (), rule="200 days", by="test", at=NOW)
    assert (begun is None) is is_held
    assert begun is None or begun.counts["records"] == {"records": 0, "staged": 1}
    query = select(STAGED.embedded_at).where(STAGED.tenant == ref.id).order_by(STAGED.embedded_at)
    with catalog.database.begin() as connection:
        assert list(connection.scalars(query)) == left


def test_removal_counts_the_entries_of_the_tenant(learning: Learning) -> None:
    plant(learning)
    catalog = learning.driver.session.catalog
    ref = catalog.tenants.get(learning.tenant).ref
    begun = catalog.erasures.begin_removal(ref, by="test", at=NOW)
    assert begun.counts["records"] == {"records": 0, "staged": 2}


def test_retraction_is_refused_while_all_documents_are_held(learning: Learning) -> None:
    """A hold on all documents covers entries that no checkpoint made documents yet."""
    project = UUID(str(learning.project()))
    plant(learning, project)
    catalog = learning.driver.session.catalog
    record = catalog.tenants.get(learning.tenant)
    administration = Administration(catalog, Clock())
    [*ids] = catalog.database.fetch_rows(select(STAGED.id).where(STAGED.tenant == record.id))
    catalog.holds.set(record.ref, HoldScope(), reason="a lawsuit", by="counsel")
    with pytest.raises(OnHold, match="the retraction is refused: all documents"):
        administration.delete_entry(record, ids[0].id, by="test")
    with pytest.raises(OnHold):
        administration.retract(record, RetractDraft(project_id=project), by="test")
    assert catalog.database.count(record.id, knowledge_staging) == 2
    catalog.holds.lift(record.ref, HoldScope(), reason="settled", by="counsel")
    assert administration.retract(record, RetractDraft(project_id=project), by="test") == 2
