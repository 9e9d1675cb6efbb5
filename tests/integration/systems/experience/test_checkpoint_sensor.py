"""The sensor of checkpoints requests one run for those that no run has processed."""

from __future__ import annotations

import dagster as dg

from rag_assets.declarations import PLAIN
from rag_assets.resources.tenant_lock import REASON_TAG
from rag_assets.systems.experience.definitions import checkpoints_sensor
from tests.integration.systems.experience.conftest import Learning
from tests.sensor_resources import sensor_resources


def tick(learning: Learning) -> list[dg.RunRequest]:
    """Evaluate the sensor; return the runs that it requests for the tenant."""
    with dg.build_sensor_context(
        instance=learning.driver.session.instance, resources=sensor_resources()
    ) as context:
        result = checkpoints_sensor.build(PLAIN)(context)
    assert isinstance(result, dg.SensorResult)
    return [
        run_request
        for run_request in result.run_requests or ()
        if run_request.partition_key == learning.tenant
    ]


def test_a_waiting_checkpoint_requests_one_run(learning: Learning) -> None:
    instance = learning.driver.session.instance
    instance.add_dynamic_partitions(PLAIN.partitions_name, [learning.tenant])
    project = learning.project()
    learning.failure(project, "cosine 0.90 of the lock", "Its steps.")
    assert tick(learning) == []
    learning.checkpoint(project)
    [request] = tick(learning)
    assert request.tags[REASON_TAG] == "a checkpoint is waiting"
    [again] = tick(learning)
    assert again.run_key == request.run_key, "Dagster makes no second run of it"
    learning.failure(project, "cosine 0.10 of the quay", "Other steps.")
    learning.checkpoint(project, "manual")
    [another] = tick(learning)
    assert another.run_key != request.run_key
    learning.driver.sync(learning.tenant)
    assert tick(learning) == []
