"""catalog: compares the catalog with the marks and the journal in the stores."""

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.errors import CatalogSetBack
from rag_assets.pipeline.mark_keeper import SecurityStanding, Standing

_FAULTS = {"set back": "catalog was set back", "unknown": "no mark is kept"}


def build_verdict(
    tenant_id: str, standing: Standing, security: SecurityStanding, refused: CatalogSetBack | None
) -> Verdict:
    """Pass if the catalog has all changes that the stores recorded.

    Args:
        refused: why the tenant's data must not be deleted; None if deletion is allowed.
    """
    faults = [_FAULTS[standing]] if standing in _FAULTS else []
    if security.standing != "current":
        faults.append("security changes are lost")
    description = "the catalog has every change that the stores have recorded"
    if refused is not None:
        description = f"{refused.message}: {refused.hint}"
    return Verdict(
        passed=not faults,
        description=description,
        compared=(
            Compared("changes of the tenant in the catalog", "current", standing),
            Compared("security changes in the catalog", "current", security.standing),
            Compared("security changes that the catalog lacks", 0, len(security.lost)),
        ),
        columns=("fault", "which"),
        offenders=tuple((fault, tenant_id) for fault in faults),
    )


@tenant_check(
    "raw_documents",
    "catalog",
    (
        "The catalog is at least as new as the stores. After an earlier dump of Postgres was "
        "restored, no data is deleted until a person runs "
        "`rag-assets sync TENANT --accept-catalog`."
    ),
    nightly=True,
)
def catalog_check(context: CheckContext) -> Verdict:
    """Find out whether the catalog lacks changes that the stores' marks and journal record."""
    keeper, ref = context.tenant.keeper, context.tenant.ref
    return build_verdict(
        ref.id,
        keeper.compare_marks(ref),
        keeper.compare_security_changes(),
        keeper.find_deletion_refusal(ref),
    )
