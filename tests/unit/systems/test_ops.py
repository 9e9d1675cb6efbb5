"""Ops of all systems have the resource that marks their runs as ours."""

import dagster as dg

from rag_assets.definitions import build_defs


def test_every_op_but_one_that_marks_its_run_has_the_workbench() -> None:
    jobs = build_defs().get_repository_def().get_all_jobs()
    ops = {node.name: node.required_resource_keys for job in jobs for node in ops_of(job)}
    assert len(ops) > 20
    without = {name for name, keys in ops.items() if "rag_assets_workbench" not in keys}
    assert without == {"pull_tenants"}, "it marks its run itself"


def ops_of(job: dg.JobDefinition) -> list[dg.OpDefinition]:
    return [node for node in job.all_node_defs if isinstance(node, dg.OpDefinition)]
