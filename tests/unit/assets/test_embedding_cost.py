from collections.abc import Sequence
from datetime import date, timedelta

from rag_assets.assets.metadata_values import INLINE
from rag_assets.assets.reports import iter_daily_costs
from rag_assets.declarations import PLAIN
from rag_assets.storage.catalog.accounts.usage import Usage, UsageRow, UsageTable

TODAY = date(2026, 12, 1)
YESTERDAY = TODAY - timedelta(days=1)


class Rows(UsageTable):
    """Usage in memory instead of a database."""

    def __init__(self, rows: Sequence[UsageRow]) -> None:
        self._rows = rows

    def rows(self, since: date, tenant_id: str | None = None) -> list[UsageRow]:
        return [row for row in self._rows if row.day >= since]


def row(tenant: str, day: date, cost: float, unpriced: int = 0) -> UsageRow:
    return UsageRow(tenant, day, "openai", "small", Usage(1, 0, 1, 100, 0, unpriced, cost))


def test_yesterday_is_plotted_and_its_month_reported() -> None:
    rows = [
        row("acme", TODAY, 9.0),
        row("acme", YESTERDAY, 0.25),
        row("acme", YESTERDAY, 0.25),
        row("acme", date(2026, 11, 1), 1.0),
        row("acme", date(2026, 10, 31), 8.0),
        row("beta", date(2026, 11, 20), 2.0),
        row("gone", date(2026, 10, 1), 2.0),
    ]
    acme, beta = iter_daily_costs(PLAIN, Rows(rows), TODAY)
    assert (acme.partition, acme.metadata["yesterday in $"].value) == ("acme", 0.5)
    assert acme.metadata["month to yesterday in $"].value == 1.5
    assert (beta.partition, beta.metadata["yesterday in $"].value) == ("beta", 0.0)
    assert beta.description == "2026-11-30: $0"


def test_usage_without_a_known_price_is_not_plotted_as_free() -> None:
    [told] = iter_daily_costs(PLAIN, Rows([row("acme", YESTERDAY, 0.0, unpriced=100)]), TODAY)
    assert "yesterday in $" not in told.metadata
    assert told.description == "2026-11-30: no price known"


def test_a_week_and_a_month_of_bars_are_shown_in_place() -> None:
    rows = [row("acme", TODAY - timedelta(days=back), 0.001234 * back) for back in range(32)]
    [told] = iter_daily_costs(PLAIN, Rows(rows), TODAY)
    for name in ("by day", "31 days"):
        chart = str(told.metadata[name].value)
        assert "image/svg" in chart
        assert len(chart) < INLINE
