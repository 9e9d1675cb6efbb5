"""A model that changed under the same name is found daily and by a check; a rebuild accepts it."""

from __future__ import annotations

import dagster as dg
import numpy as np
import pytest
from sqlalchemy import select, update

from rag_assets.cli.session import Session
from rag_assets.definitions import build_defs
from rag_assets.models.embedding.vectors import PROBES
from rag_assets.storage.catalog.accounts.tables import embedder_probes
from rag_assets.storage.catalog.accounts.usage import today
from tests.integration.checks.conftest import MakeTenant
from tests.integration.checks.faults import CheckedTenant

CANARY = dg.AssetCheckKey(dg.AssetKey("embeddings"), "canary")
MODEL = "deterministic/hash@384"


@pytest.fixture
def watched(make_tenant: MakeTenant, request: pytest.FixtureRequest) -> CheckedTenant:
    return make_tenant(request.node.name.removeprefix("test_").replace("_", "-")[:60].strip("-"))


def swap_model(tenant: CheckedTenant) -> None:
    """Negate the stored vector of a probe, as if another model had made it."""
    with tenant.ctx.catalog.database.begin() as connection:
        packed = connection.scalar(select(embedder_probes.c.vectors).where(_of(tenant)))
        vectors = np.frombuffer(packed, "<f4").reshape(-1, 384).copy()
        vectors[1] = -vectors[1]
        connection.execute(
            update(embedder_probes).where(_of(tenant)).values(vectors=vectors.tobytes())
        )


def age(tenant: CheckedTenant) -> None:
    """Date the last measurement to an earlier day."""
    with tenant.ctx.catalog.database.begin() as connection:
        connection.execute(
            update(embedder_probes).where(_of(tenant)).values(measured_at="2026-01-01T00:00Z")
        )


def _of(tenant: CheckedTenant):  # type: ignore[no-untyped-def]
    return embedder_probes.c.tenant == tenant.name


def run_daily(session: Session) -> None:
    job = build_defs().get_repository_def().get_job("canary")
    assert job.execute_in_process(instance=session.instance).success


def recorded(session: Session, tenant: CheckedTenant) -> list[bool]:
    """Return the results of a tenant's canary in Dagster's history, oldest first."""
    history = session.instance.event_log_storage.get_asset_check_execution_history(
        CANARY, limit=10, partition_filter=_partition(tenant.name)
    )
    events = [record.event for record in reversed(history) if record.event is not None]
    return [
        event.dagster_event.asset_check_evaluation_data.passed
        for event in events
        if event.dagster_event is not None
    ]


def _partition(name: str):  # type: ignore[no-untyped-def]
    from dagster._core.storage.event_log.base import PartitionKeyFilter

    return PartitionKeyFilter(key=name)


def test_the_daily_run_records_what_is_new_or_wrong_and_nothing_else(
    watched: CheckedTenant,
) -> None:
    with Session() as session:
        run_daily(session)
        assert recorded(session, watched) == [True]
        run_daily(session)
        assert recorded(session, watched) == [True]
        swap_model(watched)
        run_daily(session)
        run_daily(session)
        assert recorded(session, watched) == [True, False, False]
    events = watched.ctx.catalog.events.latest(watched.name, kind="model_changed")
    assert [event.payload["embedder"] for event in events] == [MODEL]


def test_a_check_probes_again_only_on_another_day(watched: CheckedTenant) -> None:
    usage = watched.ctx.catalog.usage
    [before] = usage.rows(today(), watched.name)
    first = watched.check(tables=False).checks["embeddings.canary"]
    assert first.passed
    swap_model(watched)
    assert watched.check(tables=False).checks["embeddings.canary"].passed
    [after] = usage.rows(today(), watched.name)
    assert after.used.texts - before.used.texts == len(PROBES)
    age(watched)
    outcome = watched.check(tables=False)
    assert outcome.failing == {"embeddings.canary"}
    found = outcome.checks["embeddings.canary"]
    assert found.severity == "ERROR"
    assert outcome.offenders("embeddings.canary") == [
        {"probe": "How do we restore the database from yest…", "cosine distance": "2.0"}
    ]


@pytest.mark.long
def test_a_revision_is_a_new_generation_with_probes_of_its_own(watched: CheckedTenant) -> None:
    watched.check(tables=False)
    swap_model(watched)
    age(watched)
    assert watched.check(tables=False).failing == {"embeddings.canary"}
    installation = watched.installation
    installation.configure(
        watched.name, embedder={"provider": "deterministic", "revision": "2026-11-21"}
    )
    assert installation.synced(watched.name)["embeddings"]["embedded"] > 0
    assert (
        installation.context(watched.name).catalog.generations.serving(watched.name).embedder_id
        == f"{MODEL}~2026-11-21"
    )  # type: ignore[union-attr]
    assert watched.check(tables=False).checks["embeddings.canary"].passed


def test_a_higher_limit_is_followed_without_asking(watched: CheckedTenant) -> None:
    watched.check(tables=False)
    swap_model(watched)
    age(watched)
    assert not watched.check(tables=False).checks["embeddings.canary"].passed
    watched.installation.configure(watched.name, canary_distance=2.0)
    watched.installation.session().catalog  # noqa: B018 - reads tenants.yaml again
    assert watched.check(tables=False).checks["embeddings.canary"].passed
