"""Declared functions need only annotations of their resources and of `names`."""

import dagster as dg
import pytest

from rag_assets.declarations import Naming, asset, job, sensor

KB = Naming.in_project("kb")


class Clock(dg.ConfigurableResource):  # type: ignore[type-arg]
    hour: int = 3


RESOURCES = {"kb_clock": Clock()}


@pytest.fixture
def hours() -> list[object]:
    """Return what the declared functions recorded: the naming, and the hour of the clock."""
    return []


def test_asset_without_annotation_of_context_and_result_is_materialized(
    hours: list[object],
) -> None:
    @asset(kinds=set(), description="An asset.")
    def page(context, names: Naming, clock: Clock):  # type: ignore[no-untyped-def]
        assert context.partition_key == "acme"
        hours.append((names, clock.hour))

    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(KB.partitions_name, ["acme"])
        result = dg.materialize(
            [page.build(KB)], resources=RESOURCES, partition_key="acme", instance=instance
        )
    assert result.success
    assert hours == [(KB, 3)]


def test_job_without_annotation_of_context_and_result_runs(hours: list[object]) -> None:
    @job("tell", "A job.")
    def tell(context, names: Naming, clock: Clock):  # type: ignore[no-untyped-def]
        hours.append((names, clock.hour, context.run.job_name))

    assert tell.build(KB).execute_in_process(resources=RESOURCES).success
    assert hours == [(KB, 3, "kb_tell")]


def test_sensor_without_annotation_of_context_and_result_is_evaluated(
    hours: list[object],
) -> None:
    @sensor("look", "A sensor.", seconds=30, job="tell")
    def look(context, names: Naming, clock: Clock):  # type: ignore[no-untyped-def]
        hours.append((names, clock.hour))
        return dg.SkipReason(context.cursor or "new")

    context = dg.build_sensor_context(resources=RESOURCES)
    assert look.build(KB).evaluate_tick(context).skip_message == "new"
    assert hours == [(KB, 3)]
