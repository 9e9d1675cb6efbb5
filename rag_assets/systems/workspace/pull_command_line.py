"""Implementation of `rag-assets workspace pull` and `pulls`."""

from __future__ import annotations

from rag_assets.cli.commands.output import print_json, print_table, say, warn
from rag_assets.cli.commands.session import Session, with_reading_session, with_session
from rag_assets.privacy.masker import masker_of
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.systems.workspace.pulling.pull import Puller
from rag_assets.systems.workspace.pulling.states import PullStates
from rag_assets.systems.workspace.pulling.tenants import pulled_sources
from rag_assets.tenants.model import Tenant

_SHOWN = 20


@with_session
def pull(
    session: Session,
    tenant: str,
    *,
    source: str | None,
    keys: bool,
    allow_deletes: bool,
    as_json: bool,
) -> None:
    """Pull the sources of a tenant now."""
    record = session.active(tenant)
    of_tenant = Tenant.from_config(record.config)
    puller = Puller(
        session.catalog,
        open_blobs(session.settings),
        masker_of(session.settings.local),
        record.ref,
        of_tenant,
    )
    scan = keys or allow_deletes
    reports = [
        puller.pull(one, scan=scan, allow_deletes=allow_deletes)
        for one in pulled_sources(of_tenant, source)
    ]
    if as_json:
        print_json({"tenant": tenant, "sources": reports})
        return
    for report in reports:
        say(report.line())
        if report.held:
            warn(
                f"{report.held:,} records of {report.source} are gone from its database and are"
                " kept: give --allow-deletes if that is right"
            )


@with_reading_session
def pulls(session: Session, tenant: str, *, as_json: bool) -> None:
    """Print the results of pulls, and rows that were set aside."""
    record = session.catalog.tenants.get(tenant)
    states = PullStates(session.catalog.database)
    known = states.of(tenant)
    sources = pulled_sources(Tenant.from_config(record.config))
    counts = states.counts(tenant)
    rows = states.rows(tenant, _SHOWN)
    if as_json:
        found = [known[one.name] for one in sources if one.name in known]
        set_aside = {f"{name}.{type_}": count for (name, type_), count in counts.items()}
        print_json({"tenant": tenant, "sources": found, "set_aside": set_aside, "rows": rows})
        return
    table = []
    for one in sources:
        state = known.get(one.name)
        bad = sum(count for (name, _), count in counts.items() if name == one.name)
        at = state.pulled_at if state else None
        shown = at.strftime("%Y-%m-%d %H:%M:%S") if at else "never"
        held = state.held_deletions if state else 0
        table.append([one.name, shown, f"{bad:,}", f"{held:,}", (state and state.error) or ""])
    print_table(["source", "pulled", "set aside", "held", "last failure"], table)
    for row in rows:
        say(f"{row.source}: {row.source_type} {row.shown}: {row.field}: {row.problem}")
