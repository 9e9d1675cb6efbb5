from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rag_assets.billing.ledger import caps_that_hold
from rag_assets.billing.spending import Cap, caps_of
from rag_assets.checks.spending import verdict_of
from rag_assets.storage.catalog.events import Event
from rag_assets.storage.catalog.usage import SpendingTotals, today
from rag_assets.tenants.model import CapsConfig


def caps(**config: float) -> list[Cap]:
    return caps_of(CapsConfig(**config), SpendingTotals(run=0.5, day=0.85, month=0.9), today())


def event(cap: str, dollars: float = 1.0, **ago: Any) -> Event:
    payload = {"cap": cap, "dollars": dollars, "spent": dollars}
    return Event(1, "cap_reached", datetime.now(UTC) - timedelta(**ago), payload)


def test_a_cap_that_keeps_documents_waiting_is_a_warning_with_the_remedy() -> None:
    verdict = verdict_of(SpendingTotals(), caps(per_run=1, per_day=1), {"per_day"}, 12)
    assert not verdict.passed
    assert verdict.severity == "WARN"
    assert "12 documents wait; wait until" in verdict.description
    assert "raise caps.per_day" in verdict.description
    assert verdict.offenders == (("per_day", "$0.85", "$1.00"),)


def test_four_fifths_of_a_cap_are_noted() -> None:
    verdict = verdict_of(SpendingTotals(), caps(per_day=1), set(), 0)
    assert verdict.passed
    assert verdict.description == "85% of the cap of $1.00 a day: $0.85 spent today"


def test_the_amount_spent_of_every_cap_is_reported() -> None:
    verdict = verdict_of(
        SpendingTotals(day=0.2, month=3), caps(per_run=2, per_day=2, per_month=4), set(), 0
    )
    assert verdict.description == "$0.20 spent today, $3.00 this month"
    assert [(c.expected, c.actual) for c in verdict.compared] == [
        ("at most $4.00", "$0.90"),
        ("at most $2.00", "$0.85"),
        ("at most $2.00", "$0.50"),
    ]


@pytest.mark.parametrize(
    ("found", "holds"),
    [
        (event("per_day"), True),
        (event("per_run", days=9), True),
        (event("per_day", days=1), False),
        (event("per_month", days=31), False),
        (event("per_day", dollars=0.5), False),
        (event("other"), False),
    ],
    ids=["today", "until a sync", "yesterday", "a month ago", "raised since", "another"],
)
def test_a_cap_holds_until_its_time_is_over_or_it_is_raised(found: Event, holds: bool) -> None:
    assert bool(caps_that_hold(caps(per_run=1, per_day=1, per_month=1), [found])) == holds
