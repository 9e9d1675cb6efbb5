"""Everything Dagster loads, put together.

`build_defs` is the seam for tests: any resource can be replaced. Nothing happens at import but
the declaration of what exists; servers are looked for when a run or a tick needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from checks import ALL_CHECKS
from checks.canary import canary_job
from rag_assets.assets.chunks import chunks
from rag_assets.assets.embedding_cost import embedding_cost
from rag_assets.assets.embeddings import embeddings
from rag_assets.assets.parsed_text import parsed_text
from rag_assets.assets.raw_documents import raw_documents
from rag_assets.assets.search_index import search_index
from rag_assets.jobs import ALL_JOBS
from resources.embedders import EmbedderResource
from resources.stores import ElasticsearchResource, LakeResource, PostgresResource
from resources.tenant_lock import TenantLockResource
from resources.workbench import Workbench
from sensors.batches import embedding_batches_sensor
from sensors.canary import daily_canary
from sensors.drift import drift_offenders_sensor, nightly_drift
from sensors.failures import run_failures_sensor
from sensors.source_files import source_files_sensor
from sensors.tenants import tenants_sensor
from sensors.upkeep import daily_pruning, weekly_compaction

ASSETS = (raw_documents, parsed_text, chunks, embeddings, search_index)


def build_resources(**overrides: Any) -> dict[str, Any]:
    """The resources of the installation, with some replaced.

    Args:
        overrides: by name: postgres, elasticsearch, lake, embedders, and whole resources
            (workbench, tenant_lock) where a test wants one of its own.
    """
    postgres = overrides.get("postgres") or PostgresResource()
    workbench = Workbench(
        postgres=postgres,
        elasticsearch=overrides.get("elasticsearch") or ElasticsearchResource(),
        lake=overrides.get("lake") or LakeResource(),
        embedders=overrides.get("embedders") or EmbedderResource(),
    )
    return {
        "postgres": postgres,
        "workbench": overrides.get("workbench") or workbench,
        "tenant_lock": overrides.get("tenant_lock")
        or TenantLockResource(postgres=postgres, workbench=overrides.get("workbench") or workbench),
    }


def build_defs(
    overrides: Mapping[str, Any] | None = None, *, loggers: Mapping[str, Any] | None = None
) -> dg.Definitions:
    """All definitions of the project.

    Args:
        overrides: see build_resources.
        loggers: where runs log to, besides the instance.
    """
    return dg.Definitions(
        assets=[*dg.with_source_code_references(list(ASSETS)), embedding_cost],
        asset_checks=list(ALL_CHECKS),
        jobs=[*ALL_JOBS, canary_job],
        sensors=[
            tenants_sensor,
            source_files_sensor,
            run_failures_sensor,
            drift_offenders_sensor,
            embedding_batches_sensor,
        ],
        schedules=[nightly_drift, daily_pruning, weekly_compaction, daily_canary],
        resources=build_resources(**dict(overrides or {})),
        # One process per run: the stages share what they opened, and the tenant's lock.
        executor=dg.in_process_executor,
        loggers=dict(loggers) if loggers else None,
    )


defs = build_defs()
