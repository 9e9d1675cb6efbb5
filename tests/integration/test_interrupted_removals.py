"""A removal of a tenant that is killed is completed by the daemon."""

from __future__ import annotations

import dagster as dg
import pytest

from rag_assets.declarations import PLAIN
from rag_assets.definitions import build_defs, build_resources
from rag_assets.jobs.run_history import delete_tenant
from rag_assets.jobs.upkeep import end_interrupted_removals
from rag_assets.pipeline.removal import purge_tenant
from rag_assets.resources.own_runs import PARTITION_TAG
from rag_assets.sensors.upkeep import removals_sensor
from rag_assets.storage.catalog.lock import Holder
from rag_assets.tenants.file import TenantsFile
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.sensor_resources import sensor_resources


class Killed(BaseException):
    """Ends a removal like a signal, which no handler can catch."""


def kill() -> None:
    raise Killed


def tick(driver: Driver) -> bool:
    """Evaluate the sensor; return whether it requests a run."""
    with dg.build_sensor_context(
        instance=driver.session.instance, resources=sensor_resources()
    ) as context:
        return isinstance(removals_sensor.build(PLAIN)(context), dg.RunRequest)


def test_a_removal_that_was_killed_is_ended(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "a.md").write_text("# Walrus\n\nThe walrus sleeps on the ice.\n")
    driver.sync(tenant)
    session, catalog = driver.session, driver.session.catalog
    session.instance.add_dynamic_partitions(PLAIN.partitions_name, [tenant])
    record = catalog.tenants.get(tenant)
    TenantsFile(session.settings.tenants_file).remove(tenant)
    assert not tick(driver)
    with (
        pytest.raises(Killed),
        catalog.lock.hold(tenant, Holder.here("removal")),
    ):
        purge_tenant(
            *(catalog, session.lake, session.store, record, session.settings),
            by="operator ann",
            delete_history=kill,
        )
    assert catalog.tenants.get(tenant).state == "REMOVING"
    with catalog.lock.hold(tenant, Holder.here("removal")):
        assert not tick(driver), "somebody continues it"
    assert tick(driver)

    done = end_interrupted_removals.build(PLAIN).execute_in_process(
        instance=session.instance,
        resources={
            name: resource
            for name, resource in build_resources().items()
            if name in {"rag_assets_workbench", "rag_assets_runs"}
        },
    )
    assert done.success
    assert catalog.tenants.find(tenant) is None
    [receipt] = catalog.receipts.all(tenant)
    assert (receipt.by, receipt.proof["complete"]) == ("operator ann", True)
    name = PLAIN.partitions_name
    assert tenant not in session.instance.get_dynamic_partitions(name)
    assert not tick(driver)


def test_a_run_that_was_requested_during_a_removal_is_deleted_with_the_others(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "a.md").write_text("# Walrus\n\nThe walrus sleeps on the ice.\n")
    driver.sync(tenant)
    session, catalog = driver.session, driver.session.catalog
    instance, own_runs = session.instance, session.own_runs
    record = catalog.tenants.get(tenant)
    TenantsFile(session.settings.tenants_file).remove(tenant)
    instance.add_dynamic_partitions(PLAIN.partitions_name, [tenant])
    job = build_defs().resolve_job_def("sync_tenant")
    deletions = []

    def delete_history() -> None:
        delete_tenant(instance, own_runs, tenant)
        deletions.append(tenant)
        if len(deletions) == 1:  # as by a sensor that began before the removal
            run = instance.create_run_for_job(job, tags={PARTITION_TAG: tenant})
            instance.report_engine_event("found files/a.md", run)

    with catalog.lock.hold(tenant, Holder.here("removal")):
        receipt = purge_tenant(
            *(catalog, session.lake, session.store, record, session.settings),
            by="operator ann",
            delete_history=delete_history,
        )
    assert receipt.proof["complete"]
    assert len(deletions) == 2
    assert not instance.get_runs(filters=dg.RunsFilter(tags={PARTITION_TAG: tenant}))
