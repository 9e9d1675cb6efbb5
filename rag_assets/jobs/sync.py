"""Jobs that run the five assets for a slice of a tenant's documents.

sync_tenant runs only these assets. The refresh jobs first run the upstream assets of a team.
"""

import re
from collections.abc import Sequence

import dagster as dg

from rag_assets.checks.tenant_check import LoadedCheck, TenantCheck
from rag_assets.declarations import TENANT_TAG, AssetJob, Naming

CHAIN = ("raw_documents", "parsed_text", "chunks", "embeddings", "search_index")


def _select_chain_and_checks(names: Naming, checks: Sequence[LoadedCheck]) -> dg.AssetSelection:
    """Select the five assets, and the checks that every sync evaluates."""
    chain = dg.AssetSelection.assets(*map(names.asset_key, CHAIN))
    ours = (check for check in checks if isinstance(check, TenantCheck) and check.with_syncs)
    return chain.without_checks() | dg.AssetSelection.checks(*(check.key(names) for check in ours))


sync_job = AssetJob(
    "sync_tenant",
    (
        "Runs the five assets on one slice of a tenant's documents, and reports the documents in "
        "quarantine. A failed document does not fail the run."
    ),
    _select_chain_and_checks,
)


def refresh_job(tenant: str | None, upstream: Sequence[dg.AssetDep]) -> AssetJob:
    """Declare the job that materializes assets of a team, then the five assets that read them.

    Args:
        tenant: the only tenant that the job accepts; None accepts any tenant.
        upstream: assets of the team; assets of other code locations are left out.
    """

    def select(names: Naming, checks: Sequence[LoadedCheck]) -> dg.AssetSelection:
        first = dg.AssetSelection.assets(names.asset_key(CHAIN[0]))
        parents = first.upstream(depth=1, include_self=False)
        own = dg.AssetSelection.assets(*(dep.asset_key for dep in upstream))
        return (parents & own) | _select_chain_and_checks(names, checks)

    return AssetJob(
        "refresh" if tenant is None else f"refresh_{re.sub(r'[^A-Za-z0-9_]', '_', tenant)}",
        (
            "Materializes the upstream assets of"
            f" {'a tenant' if tenant is None else tenant}, then runs the five assets on one slice"
            " of the tenant's documents."
        ),
        select,
        tags={} if tenant is None else {TENANT_TAG: tenant},
        is_shared=True,
    )
