"""catalog: compares the catalog's mark with the one that is kept beside the lake."""

from checks.tenant_check import CheckContext, tenant_check
from checks.verdict import Compared, Verdict
from rag_assets.storage.lake.model import LakeMark


def verdict_of(tenant_id: str, mark: int, kept: LakeMark | None) -> Verdict:
    """Require that the catalog knows all versions that were committed.

    Args:
        tenant_id: the tenant.
        mark: how many commits the catalog has counted.
        kept: the mark beside the lake; None if there is none.
    """
    highest = 0 if kept is None else kept.mark
    set_back = kept is not None and (kept.set_back or kept.mark > mark)
    return Verdict(
        passed=not set_back,
        description=_description(tenant_id, mark, highest, set_back=set_back),
        compared=(
            Compared("commits of versions that the catalog knows, at least", highest, mark),
            Compared("catalog was set back", expected=False, actual=set_back),
        ),
        columns=("fault", "which"),
        offenders=(("catalog was set back", tenant_id),) if set_back else (),
    )


@tenant_check(
    "raw_documents",
    "catalog",
    (
        "The catalog is not an earlier one than the lake was written with. After a dump of "
        "Postgres was put back, nothing is deleted, swept or pruned until "
        "`rag-assets sync TENANT --accept-catalog`."
    ),
    nightly=True,
)
def catalog_check(context: CheckContext) -> Verdict:
    """Compare the catalog with the mark beside the lake."""
    ctx = context.tenant
    # The file first: in between, the catalog's mark can only grow.
    kept = ctx.lake.mark.read()
    return verdict_of(ctx.ref.id, ctx.catalog.marks.of(ctx.ref.id), kept)


def _description(tenant_id: str, mark: int, highest: int, *, set_back: bool) -> str:
    if not set_back:
        return "the catalog knows every commit of versions"
    return (
        f"the catalog was set back to an earlier state ({mark:,} commits of versions, at least"
        f" {highest:,} were made): nothing is deleted, swept or pruned;"
        f" `rag-assets sync {tenant_id} --accept-catalog` goes on with it"
    )
