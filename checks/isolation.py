"""isolation: verifies the tenant and the access scope of every entry."""

from collections.abc import Mapping, Sequence

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.index.model import Owner, ScannedEntry, TenantView, entry_id


def find_fault(
    entry: ScannedEntry, tenant: str, incarnation: int, scopes: Mapping[str, str]
) -> str | None:
    """Return how an entry violates the isolation of a tenant; None for a correct entry.

    Args:
        tenant, incarnation: the tenant whose searches reach the entry.
        scopes: access scope of every document in the catalog, by document_id.
    """
    owner = Owner(tenant, incarnation, entry.generation)
    scope = scopes.get(entry.document_id)
    faults = (
        (entry.tenant != tenant, f"has the id of tenant {entry.tenant!r}"),
        (not entry.correctly_routed, "is routed to another tenant"),
        (entry.incarnation != incarnation, "belongs to an earlier tenant of this id"),
        (scope is None, f"belongs to no document of the tenant ({entry.document_id})"),
        (
            entry.access_scope != scope,
            f"has the access scope {entry.access_scope!r} instead of {scope!r}",
        ),
        (
            entry.id != entry_id(owner, entry.document_id, entry.index_key, entry.ordinal),
            "was not written for this tenant: its id does not match its fields",
        ),
    )
    return next((fault for is_fault, fault in faults if is_fault), None)


def build_verdict(
    tenant: str, violations: Sequence[tuple[str, str, str]], scanned: int, alias: TenantView | None
) -> Verdict:
    """Pass if no entry violates isolation, and the alias finds only this tenant's entries.

    Args:
        violations: index, id and fault of each entry that violates isolation.
    """
    offenders = [*violations]
    compared = [Compared("entries that violate isolation", 0, len(violations))]
    if alias is not None:
        strangers = [name for name in alias.tenants if name != tenant]
        compared += [
            Compared("alias is filtered by tenant", expected=True, actual=alias.restricted),
            Compared("other tenants seen through the alias", 0, len(strangers)),
        ]
        if not alias.restricted:
            offenders.append((alias.name, "", "does not filter by tenant"))
        offenders += [(alias.name, "", f"shows the tenant {name!r}") for name in strangers]
    return Verdict(
        passed=not offenders,
        description=_describe(offenders, scanned),
        compared=tuple(compared),
        columns=("where", "entry", "fault"),
        offenders=tuple(offenders),
        notes={"entries": scanned},
        mend="run `rag-assets sync TENANT --repair` to delete entries that are not the tenant's,"
        " and to restore the tenant's own",
    )


@tenant_check(
    "search_index",
    "isolation",
    (
        "No entry has the id of another tenant, is routed to another tenant, belongs to a document "
        "of another tenant, or has a different access scope than in the catalog. The tenant's "
        "alias shows only this tenant."
    ),
    judges_builds=True,
    against_catalog=True,
)
def isolation_check(context: CheckContext) -> Verdict:
    """Scan every index that contains the tenant's entries."""
    ctx = context.tenant
    suspects: list[tuple[str, ScannedEntry]] = []
    scanned = 0
    scopes = _read_scopes(ctx)
    live = [context.build] if context.build else ctx.catalog.generations.live(ctx.ref.id)
    for name in sorted({build.index_name for build in live}):
        for entry in ctx.store.entries.scan(name, ctx.ref.id):
            scanned += 1
            if find_fault(entry, ctx.ref.id, ctx.ref.incarnation, scopes):
                suspects.append((name, entry))
    violations, view = _list_violations(ctx, suspects), ctx.store.indexes.view(ctx.ref.id)
    return build_verdict(ctx.ref.id, violations, scanned, view)


def _list_violations(
    ctx: TenantContext, suspects: Sequence[tuple[str, ScannedEntry]]
) -> list[tuple[str, str, str]]:
    # A document is in the catalog before its entries are written, so a second query finds the
    # documents that were added during the scan.
    scopes = _read_scopes(ctx) if suspects else {}
    return [
        (name, entry.id, fault)
        for name, entry in suspects
        if (fault := find_fault(entry, ctx.ref.id, ctx.ref.incarnation, scopes)) is not None
    ]


def _read_scopes(ctx: TenantContext) -> dict[str, str]:
    documents = ctx.catalog.documents.all(ctx.ref.id, deleted=True)
    return {document.document_id: document.access_scope for document in documents}


def _describe(offenders: Sequence[tuple[str, str, str]], scanned: int) -> str:
    if not offenders:
        return (
            f"{format_count(scanned, 'entry', 'entries')}, all with this tenant and its"
            " access scopes"
        )
    where, entry, fault = offenders[0]
    more = f", and {len(offenders) - 1:,} more" if len(offenders) > 1 else ""
    return f"{entry or where} {fault}{more}"
