"""sync_tenant: runs the five assets over a slice of a tenant's work."""

from collections.abc import Sequence

import dagster as dg

from checks.tenant_check import LoadedCheck, TenantCheck
from rag_assets.declarations import AssetJob, Naming

CHAIN = ("raw_documents", "parsed_text", "chunks", "embeddings", "search_index")


def _chain_and_checks(names: Naming, checks: Sequence[LoadedCheck]) -> dg.AssetSelection:
    """Select the five assets, and the checks that every sync evaluates."""
    chain = dg.AssetSelection.assets(*map(names.asset_key, CHAIN))
    ours = (check for check in checks if isinstance(check, TenantCheck) and check.with_syncs)
    return chain.without_checks() | dg.AssetSelection.checks(*(check.key(names) for check in ours))


sync_job = AssetJob(
    "sync_tenant",
    (
        "Runs the five assets over one slice of a tenant's work, and reports the documents in "
        "quarantine. A document that fails does not fail the run."
    ),
    _chain_and_checks,
)
