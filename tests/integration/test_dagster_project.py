"""An installation in a team's Dagster project, as the team's own tests run it."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from rag_assets.cli.runs import STAGES
from rag_assets.resources.installation import InstallationResource
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.workbench import SKIPPED
from rag_assets.testing import KnowledgeBase


def made_events(instance: dg.DagsterInstance, run_id: str) -> list[tuple[str, str | None]]:
    """Return the assets that a run materialized, in their order."""
    events = (record.dagster_event for record in instance.all_logs(run_id))
    return [
        (event.asset_key.to_user_string(), event.partition)
        for event in events
        if event is not None
        and event.event_type_value == "ASSET_MATERIALIZATION"
        and event.asset_key is not None
    ]


def test_what_is_upstream_is_materialized_first(
    knowledge_base: KnowledgeBase, tmp_path: Path
) -> None:
    folder = tmp_path / "wiki"
    knowledge_base.add_tenant("eu", folder)

    @dg.asset
    def wiki_export() -> None:
        (folder / "page.md").write_text("# Opening hours\n\nThe depot opens at six.\n")

    defs = knowledge_base.build_defs(name="kb", key_prefix="kb", upstream=[wiki_export])
    done = dg.materialize(
        [*knowledge_base.get_assets(defs), wiki_export],
        partition_key="eu",
        instance=knowledge_base.instance,
        resources=defs.resources,
    )
    assert done.success
    made = [key for key, _ in made_events(knowledge_base.instance, done.run_id)]
    assert made[0] == "wiki_export"
    assert made.index("kb/raw_documents") > 0
    [index] = done.asset_materializations_for_node("kb__search_index")
    assert index.metadata["published documents"].value == 1, "the page that was just written"
    run = knowledge_base.instance.get_run_by_id(done.run_id)
    assert run is not None
    assert run.tags["rag_assets/naming"] == "kb:kb"
    assert run.tags["rag_assets/installation"]


def test_a_job_of_one_tenant_refuses_another(knowledge_base: KnowledgeBase, tmp_path: Path) -> None:
    for tenant in ("eu", "us"):
        knowledge_base.add_tenant(tenant, tmp_path / tenant)

    @dg.asset
    def wiki_of_eu() -> None:
        (tmp_path / "eu" / "page.md").write_text("# Eu\n\nA page.\n")

    merged = dg.Definitions.merge(
        dg.Definitions(assets=[wiki_of_eu]),
        knowledge_base.build_defs(name="kb", upstream={"eu": [wiki_of_eu]}),
    )
    job = merged.get_repository_def().get_job("kb_refresh_eu")
    refused = job.execute_in_process(
        partition_key="us", instance=knowledge_base.instance, raise_on_error=False
    )
    assert not refused.success
    [failure] = [event for event in refused.all_events if event.is_step_failure]
    data = failure.step_failure_data.user_failure_data
    assert data is not None
    expected = "this job is only for tenant 'eu': choose the partition 'eu' instead of 'us'"
    assert data.description == expected
    done = job.execute_in_process(partition_key="eu", instance=knowledge_base.instance)
    assert done.success
    kept = knowledge_base.instance.get_run_by_id(done.run_id)
    assert kept is not None
    assert "rag_assets/job" not in kept.tags, "a run of the team's asset as well"


def test_runs_of_disabled_and_removed_tenants_succeed_without_work(
    knowledge_base: KnowledgeBase, tmp_path: Path
) -> None:
    for tenant in ("eu", "us", "ca"):
        knowledge_base.add_tenant(tenant, tmp_path / tenant)
        (tmp_path / tenant / "page.md").write_text("# Page\n\nA page.\n")
    carried = InstallationResource.from_installation(knowledge_base.installation)
    catalog = PostgresResource(installation=carried).catalog()
    catalog.tenants.set_state("us", "DISABLED")
    catalog.tenants.set_state("ca", "REMOVING")
    knowledge_base.instance.add_dynamic_partitions("kb_tenants", ["gone"])
    repository = knowledge_base.build_defs(name="kb").get_repository_def()

    def run(job: str, tenant: str) -> dg.ExecuteInProcessResult:
        return repository.get_job(job).execute_in_process(
            partition_key=tenant, instance=knowledge_base.instance, raise_on_error=False
        )

    done = run("kb_sync_tenant", "eu")
    assert done.success
    [index] = done.asset_materializations_for_node("search_index")
    assert index.metadata["published documents"].value == 1

    for tenant, reason in (("us", "disabled"), ("ca", "removed"), ("gone", "removed")):
        skipped = run("kb_sync_tenant", tenant)
        assert skipped.success
        for stage in STAGES:
            [event] = skipped.asset_materializations_for_node(stage)
            assert {key: value.value for key, value in event.metadata.items()} == {SKIPPED: reason}
        checks = skipped.get_asset_check_evaluations()
        assert {check.description for check in checks} == {f"skipped: the tenant is {reason}"}
        assert all(check.passed for check in checks)
        assert catalog.documents.count_by_status(tenant) == {}
        assert catalog.syncs.find_slice(tenant, skipped.run_id) is None

        assert run("kb_check_tenant", tenant).success
        assert run("kb_repair_index", tenant).success
        ordered = run("kb_publish_generation", tenant)
        assert not ordered.success, "the person who ordered it learns that nothing was published"
