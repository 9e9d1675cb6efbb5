"""isolation: nothing of another tenant, and nothing under another scope, is within reach."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from checks.tenant_check import CheckContext, tenant_check
from checks.verdict import Compared, Verdict
from rag_assets.common.formatting import counted
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.index.model import Owner, ScannedEntry, TenantView, entry_id


@dataclass(frozen=True, slots=True)
class Trespass:
    """An entry in a place, or under an access scope, that is not its own."""

    index_name: str
    entry_id: str
    fault: str


def fault_of(
    entry: ScannedEntry, tenant: str, incarnation: int, scopes: Mapping[str, str]
) -> str | None:
    """Why an entry breaks the isolation of the tenant in whose reach it was found, if it does.

    Args:
        entry: as a scan found it.
        tenant, incarnation: whose reach.
        scopes: access scope of every document that the catalog has, by document_id.
    """
    owner = Owner(tenant, incarnation, entry.generation)
    scope = scopes.get(entry.document_id)
    faults = (
        (entry.tenant != tenant, f"carries the tenant {entry.tenant!r}"),
        (not entry.correctly_routed, "is routed to another tenant"),
        (entry.incarnation != incarnation, "is of another life of this tenant's id"),
        (scope is None, f"its document is not the tenant's ({entry.document_id})"),
        (
            entry.access_scope != scope,
            f"carries the scope {entry.access_scope!r} instead of {scope!r}",
        ),
        (
            entry.id != entry_id(owner, entry.document_id, entry.index_key, entry.ordinal),
            "was not written for this tenant: its id is not made of what it carries",
        ),
    )
    return next((what for is_fault, what in faults if is_fault), None)


def judge(
    tenant: str, trespasses: Sequence[Trespass], looked_at: int, alias: TenantView | None
) -> Verdict:
    """No entry may trespass, and the alias must show this tenant alone.

    Args:
        tenant: whose index.
        trespasses: what was found.
        looked_at: how many entries were.
        alias: how the tenant's alias looks; None when there is none.
    """
    offenders = [(t.index_name, t.entry_id, t.fault) for t in trespasses]
    compared = [Compared("entries that trespass", 0, len(trespasses))]
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
        description=_description(offenders, looked_at),
        compared=tuple(compared),
        columns=("where", "entry", "fault"),
        offenders=tuple(offenders),
        notes={"entries": looked_at},
    )


@tenant_check(
    "search_index",
    "isolation",
    (
        "No entry carries another tenant's id, lies where another tenant's searches look, belongs "
        "to a document that is not the tenant's, or carries another access scope than the "
        "catalog's; and the tenant's alias shows this tenant alone."
    ),
)
def isolation_check(context: CheckContext) -> Verdict:
    """Scan every index in which the tenant lives."""
    ctx = context.tenant
    suspects: list[tuple[str, ScannedEntry]] = []
    looked_at = 0
    scopes = _scopes(ctx)
    for name in _index_names(ctx):
        for entry in ctx.store.entries.scan(name, ctx.ref.id):
            looked_at += 1
            if fault_of(entry, ctx.ref.id, ctx.ref.incarnation, scopes):
                suspects.append((name, entry))
    trespasses, view = _trespasses(ctx, suspects), ctx.store.indexes.view(ctx.ref.id)
    return judge(ctx.ref.id, trespasses, looked_at, view)


def _trespasses(ctx: TenantContext, suspects: Sequence[tuple[str, ScannedEntry]]) -> list[Trespass]:
    # Documents are known to the catalog before their entries are written: those that came in
    # during the scan are found by asking again.
    scopes = _scopes(ctx) if suspects else {}
    return [
        Trespass(name, entry.id, fault)
        for name, entry in suspects
        if (fault := fault_of(entry, ctx.ref.id, ctx.ref.incarnation, scopes)) is not None
    ]


def _scopes(ctx: TenantContext) -> dict[str, str]:
    documents = ctx.catalog.documents.all(ctx.ref.id, deleted=True)
    return {document.document_id: document.access_scope for document in documents}


def _index_names(ctx: TenantContext) -> list[str]:
    return sorted({g.index_name for g in ctx.catalog.generations.live(ctx.ref.id)})


def _description(offenders: Sequence[tuple[str, str, str]], looked_at: int) -> str:
    if not offenders:
        return f"{counted(looked_at, 'entry', 'entries')}, all of this tenant and its scopes"
    where, entry, fault = offenders[0]
    more = f", and {len(offenders) - 1:,} more" if len(offenders) > 1 else ""
    return f"{entry or where} {fault}{more}"
