"""sync_tenant: runs the five assets over a slice of a tenant's work."""

import dagster as dg

from rag_assets.checks.registry import tenant_checks
from rag_assets.resources.own_runs import RUN_TAGS

CHAIN = dg.AssetSelection.assets(
    "raw_documents", "parsed_text", "chunks", "embeddings", "search_index"
)
_CHECKED = dg.AssetSelection.checks(*(c.key for c in tenant_checks() if c.with_syncs))

sync_job = dg.define_asset_job(
    "sync_tenant",
    selection=CHAIN.without_checks() | _CHECKED,
    tags=RUN_TAGS,
    executor_def=dg.in_process_executor,
    description=(
        "Runs the five assets over one slice of a tenant's work, and reports the documents in "
        "quarantine. A document that fails does not fail the run."
    ),
)
