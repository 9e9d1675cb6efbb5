from datetime import UTC, date, datetime, timedelta

import pytest

from rag_assets.billing.spending import Cap, build_caps, find_holding_caps
from rag_assets.checks.spending import build_verdict
from rag_assets.storage.catalog.accounts.usage import SpendingTotals, today
from rag_assets.storage.catalog.journal.events import Event
from rag_assets.tenants.model import CapsConfig


def caps(day: date | None = None, **config: float) -> list[Cap]:
    spent = SpendingTotals(run=0.5, day=0.85, month=0.9)
    return build_caps(CapsConfig(**config), spent, day or today())


def event(cap: str, dollars: float, at: datetime) -> Event:
    return Event(1, "cap_reached", at, {"cap": cap, "dollars": dollars, "spent": dollars})


def test_a_cap_that_keeps_documents_waiting_is_a_warning_with_the_remedy() -> None:
    verdict = build_verdict(SpendingTotals(), caps(per_run=1, per_day=1), {"per_day"}, 12)
    assert not verdict.passed
    assert verdict.severity == "WARN"
    assert "12 documents wait; wait until" in verdict.description
    assert "raise caps.per_day" in verdict.description
    assert verdict.offenders == (("per_day", "$0.85", "$1.00"),)


def test_four_fifths_of_a_cap_are_noted() -> None:
    verdict = build_verdict(SpendingTotals(), caps(per_day=1), set(), 0)
    assert verdict.passed
    said = "85% of the spending cap of $1.00 a day is used: $0.85 spent today"
    assert verdict.description == said


def test_the_amount_spent_of_every_cap_is_reported() -> None:
    limits = caps(per_run=2, per_day=2, per_month=4)
    verdict = build_verdict(SpendingTotals(day=0.2, month=3), limits, set(), 0)
    assert verdict.description == "$0.20 spent today, $3.00 this month"
    rows = [("at most $4.00", "$0.90"), ("at most $2.00", "$0.85"), ("at most $2.00", "$0.50")]
    assert [(c.expected, c.actual) for c in verdict.compared] == rows


@pytest.mark.parametrize(
    ("cap", "dollars", "days_ago", "holds"),
    [
        ("per_day", 1.0, 0, True),
        ("per_run", 1.0, 9, True),
        ("per_day", 1.0, 1, False),
        ("per_month", 1.0, 31, False),
        ("per_day", 0.5, 0, False),
        ("other", 1.0, 0, False),
    ],
    ids=["today", "until a sync", "yesterday", "a month ago", "raised since", "another"],
)
def test_a_cap_holds_until_it_ends(cap: str, dollars: float, days_ago: int, holds: bool) -> None:
    noon = datetime(2026, 11, 28, 12, tzinfo=UTC)
    limits = caps(noon.date(), per_run=1, per_day=1, per_month=1)
    reached = event(cap, dollars, at=noon - timedelta(days=days_ago))
    assert bool(find_holding_caps(limits, [reached], noon.date())) == holds
