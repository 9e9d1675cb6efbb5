"""The definitions of the team's code location."""

import dagster as dg

REGIONS = dg.StaticPartitionsDefinition(["eu", "us"])
DAYS = dg.DailyPartitionsDefinition(start_date="2026-01-01")
RESOURCES = {"postgres": "the team's database", "lake": "the team's lake"}


@dg.asset(partitions_def=REGIONS)
def sales(postgres: dg.ResourceParam[str]) -> dg.MaterializeResult[None]:
    """Sales of a region."""
    return dg.MaterializeResult(metadata={"stored in": postgres})


@dg.asset(partitions_def=REGIONS)
def embeddings() -> None:
    """Embeddings of a region's products: an asset with the same key as one of ours."""


@dg.asset(partitions_def=DAYS)
def visits() -> None:
    """Visits of a day."""


@dg.asset_check(asset=visits, partitions_def=DAYS)
def visits_are_plausible(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """Pass for partitions that are days, and fail for others."""
    return dg.AssetCheckResult(passed=context.partition_key.startswith("2026-"))


@dg.op
def probe(lake: dg.ResourceParam[str]) -> str:
    """Probe the lake."""
    return lake


@dg.job
def canary() -> None:
    """Probe the team's lake."""
    probe()


def team_definitions(*, with_our_names: bool = True) -> dg.Definitions:
    """Build the team's definitions.

    Args:
        with_our_names: whether to include the job and the asset whose names we also use. A code
            location can contain each name only once.
    """
    return dg.Definitions(
        assets=[sales, visits, *([embeddings] if with_our_names else [])],
        asset_checks=[visits_are_plausible],
        jobs=[canary] if with_our_names else [],
        resources={
            name: dg.ResourceDefinition.hardcoded_resource(value)
            for name, value in RESOURCES.items()
        },
    )
