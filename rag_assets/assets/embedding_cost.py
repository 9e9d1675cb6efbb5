"""embedding_cost: each tenant's daily spending on embeddings.

One run a day reports the spending of all tenants.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby

import dagster as dg

from rag_assets.assets.descriptions import EMBEDDING_COST
from rag_assets.assets.metadata_values import bar_chart, series_chart, table
from rag_assets.declarations import Naming, Report
from rag_assets.storage.catalog.accounts.usage import UsageRow, UsageTable, total

_SHOWN_DAYS, _PLOTTED_DAYS = 7, 31
_MODEL_COLUMNS = {
    "provider": "string",
    "model": "string",
    "requests": "int",
    "texts": "int",
    "tokens": "int",
    "cost": "string",
}

embedding_cost = Report(
    "embedding_cost", dep="embeddings", group="cost", kind="postgres", description=EMBEDDING_COST
)


def iter_daily_costs(
    names: Naming, usage: UsageTable, today: date
) -> Iterator[dg.AssetMaterialization]:
    """Yield a report on each tenant with usage in the last 31 days; today is not plotted."""
    rows = usage.rows(today - timedelta(days=_PLOTTED_DAYS))
    for tenant_id, tenant_rows in groupby(rows, key=lambda row: row.tenant_id):
        yield _build_materialization(names, tenant_id, list(tenant_rows), today)


def _build_materialization(
    names: Naming, tenant_id: str, rows: Sequence[UsageRow], today: date
) -> dg.AssetMaterialization:
    yesterday = today - timedelta(days=1)
    of_day = total(row for row in rows if row.day == yesterday)
    of_month = total(row for row in rows if yesterday.replace(day=1) <= row.day <= yesterday)
    days = [today - timedelta(days=back) for back in reversed(range(_SHOWN_DAYS))]
    past = [today - timedelta(days=back) for back in range(_PLOTTED_DAYS, 0, -1)]
    cost = {day: total(row for row in rows if row.day == day).cost for day in (*past, today)}
    bars = [(f"{day:%d %b}", cost[day]) for day in days]
    plotted = [cost[day] for day in past]
    month = round(of_month.cost, 6)
    return embedding_cost.materialization(
        names,
        tenant_id,
        description=f"{yesterday:%Y-%m-%d}: {of_day.cost_text}",
        metadata={
            # Usage without a known price is not free, so no value is plotted for it.
            **({} if of_day.known_cost is None else {"yesterday in $": round(of_day.cost, 6)}),
            **({} if of_month.known_cost is None else {"month to yesterday in $": month}),
            "tokens of yesterday": of_day.tokens,
            "requests of yesterday": of_day.requests,
            "retries of yesterday": of_day.retries,
            "tokens without a known price": of_day.unpriced_tokens,
            "31 days": series_chart(
                f"dollars a day, {_format_short(max(plotted))} at most",
                plotted,
                f"{past[0]:%d %b}",
                f"{past[-1]:%d %b}",
            ),
            "by day": bar_chart("dollars a day", bars, _format_short),
            "by model": table(_MODEL_COLUMNS, list(_sum_by_model(rows))),
        },
    )


def _sum_by_model(rows: Sequence[UsageRow]) -> Iterator[tuple[str | int, ...]]:
    def key(row: UsageRow) -> tuple[str, str]:
        return row.provider, row.model

    for model, model_rows in groupby(sorted(rows, key=key), key=key):
        used = total(model_rows)
        yield (*model, used.requests, used.texts, used.tokens, used.cost_text)


def _format_short(amount: float) -> str:
    """Return an amount in a form that fits above a bar; empty for 0."""
    return f"{amount:.3g}" if amount else ""
