"""usage: usage and cost of embeddings and answers by tenant, day, provider and model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from itertools import groupby
from typing import Any

from rag_assets.billing.spending import Cap, caps_of
from rag_assets.cli.commands.output import print_json, print_table, say
from rag_assets.cli.commands.session import Session, with_reading_session
from rag_assets.common.formatting import counted
from rag_assets.storage.catalog.accounts.usage import Usage, UsageRow, today, total
from rag_assets.tenants.model import Tenant

_COLUMNS = ("tenant", "day", "provider", "model", "requests", "retries", "texts", "tokens", "cost")


@with_reading_session
def usage(session: Session, tenant_id: str | None, *, days: int, as_json: bool) -> None:
    """Print the usage of one tenant, or of all tenants."""
    records = session.catalog.tenants.all()
    if tenant_id is not None:
        records = [session.catalog.tenants.get(tenant_id)]
    since = today() - timedelta(days=days - 1)
    rows = session.catalog.usage.rows(since, tenant_id)
    used = {id_: total(its) for id_, its in groupby(rows, key=lambda row: row.tenant_id)}
    caps = {
        record.id: _caps(session, Tenant.from_config(record.config))
        for record in records
        if record.id in used or record.id == tenant_id
    }
    if as_json:
        print_json(_as_json(since.isoformat(), rows, used, caps))
        return
    if not rows:
        say(f"No usage in {counted(days, 'day')}.")
    else:
        print_table(_COLUMNS, [_row(row) for row in rows])
        say()
    for id_, of_tenant in used.items():
        say(f"{id_}: {of_tenant.cost_text} in {counted(days, 'day')}")
    for id_, of_caps in caps.items():
        for cap in of_caps:
            say(f"{id_}: the cap of {cap.limit_text}: {cap.spent_text}")


def _caps(session: Session, tenant: Tenant) -> list[Cap]:
    """Return the caps per day and month; a cap per run has no meaning outside a run."""
    day = today()
    caps = tenant.caps.model_copy(update={"per_run": None})
    return caps_of(caps, session.catalog.usage.read_spending(tenant.id, day), day)


def _row(row: UsageRow) -> Sequence[str]:
    used = row.used
    counts = (used.requests, used.retries, used.texts)
    written = f" ({used.output_tokens:,} written)" if used.output_tokens else ""
    named = (row.tenant_id, str(row.day), row.provider, row.model)
    tokens = f"{used.tokens:,}{written}"
    return (*named, *(f"{n:,}" for n in counts), tokens, used.cost_text)


def _as_json(
    since: str,
    rows: Sequence[UsageRow],
    used: Mapping[str, Usage],
    caps: Mapping[str, Sequence[Cap]],
) -> dict[str, Any]:
    return {
        "since": since,
        "usage": [
            {
                "tenant": row.tenant_id,
                "day": row.day.isoformat(),
                "provider": row.provider,
                "model": row.model,
                **_counts(row.used),
            }
            for row in rows
        ],
        "totals": [
            {
                "tenant": id_,
                **_counts(used.get(id_, Usage())),
                "caps": {cap.name: {"dollars": cap.most, "spent": cap.spent} for cap in of_caps},
            }
            for id_, of_caps in caps.items()
        ],
    }


def _counts(used: Usage) -> dict[str, Any]:
    return asdict(used) | {"cost": used.known_cost}
