import threading
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.billing.spending import (
    Meter,
    Spending,
    build_caps,
    build_usage,
    find_stopping_cap,
    require_price,
)
from rag_assets.common.errors import CapReached, ConfigurationError
from rag_assets.models.embedding.protocol import Charge
from rag_assets.models.prices import FREE, Price
from rag_assets.storage.catalog.accounts.usage import SpendingTotals, Usage
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.tenants.model import CapsConfig, Tenant

A_DOLLAR_A_TOKEN = Price(per_million=1_000, batch_per_million=500)
"""A thousandth of it, rather: prices are bounded."""
TODAY = date(2026, 12, 31)


def spending(caps: CapsConfig, spent: SpendingTotals | None = None) -> Spending:
    return Spending("acme", A_DOLLAR_A_TOKEN, build_caps(caps, spent or SpendingTotals(), TODAY))


def reached(purse: Spending, tokens: int) -> CapReached:
    with pytest.raises(CapReached) as raised:
        purse.reserve(tokens)
    return raised.value


@pytest.mark.slow
@given(
    calls=st.lists(st.tuples(st.integers(1, 500), st.booleans()), max_size=40),
    most=st.integers(0, 3_000),
    before=st.integers(0, 1_000),
)
def test_calls_never_exceed_a_cap(calls: list[tuple[int, bool]], most: int, before: int) -> None:
    purse = spending(CapsConfig(per_day=most / 1_000), SpendingTotals(day=before / 1_000))
    under_way: list[int] = []
    for tokens, ends in calls:
        try:
            purse.reserve(tokens)
        except CapReached:
            # It was right: with this call, and those under way, it would have been too much.
            spent = before + purse.total.tokens + sum(under_way)
            assert spent + tokens > most
        else:
            under_way.append(tokens)
        if ends and under_way:
            charged = under_way.pop()
            purse.settle(charged, Charge(charged, 1, 1))
    for charged in under_way:
        purse.settle(charged, Charge(charged, 1, 1))
    assert before + purse.total.tokens <= max(most, before)


def test_the_reservation_of_a_failed_call_may_be_spent_again() -> None:
    purse = spending(CapsConfig(per_run=0.1))
    purse.reserve(100)
    reached(purse, 1)
    purse.settle(100, Charge(requests=3))
    purse.reserve(100)
    assert purse.total == Usage(requests=3, retries=2)


def test_usage_is_taken_once() -> None:
    purse = spending(CapsConfig())
    purse.reserve(10)
    purse.settle(10, Charge(12, 1, 4))
    assert purse.take() == Usage(requests=1, texts=4, tokens=12, cost=0.012)
    assert not purse.take()
    assert purse.total.tokens == 12


def test_earlier_spending_counts() -> None:
    caps = CapsConfig(per_run=1, per_day=1, per_month=1)
    spent = SpendingTotals(run=0.2, day=0.5, month=0.9)
    assert [cap.spent for cap in build_caps(caps, spent, TODAY)] == [0.9, 0.5, 0.2]
    assert reached(spending(caps, spent), 101).until is not None
    spending(caps, spent).reserve(99)


@pytest.mark.parametrize(
    ("caps", "until", "words"),
    [
        ({"per_run": 0.01}, None, "`rag-assets sync acme` continues and can spend $0.010 more"),
        ({"per_day": 0.01}, datetime(2027, 1, 1, tzinfo=UTC), "after 2027-01-01 00:00 UTC"),
        ({"per_month": 0.01}, datetime(2027, 1, 1, tzinfo=UTC), "raise caps.per_month"),
    ],
)
def test_a_cap_names_a_remedy(caps: dict[str, float], until: datetime | None, words: str) -> None:
    purse = spending(CapsConfig(**caps), SpendingTotals(run=0.005, day=0.005, month=0.005))
    error = reached(purse, 6)
    assert error.until == until
    assert words in (error.hint or "")
    assert "$0.0050 spent" in error.message
    assert purse.stopped_by is not None


def test_a_month_ends_with_its_last_day() -> None:
    for day in (date(2028, 2, 1), date(2028, 2, 29)):
        [cap] = build_caps(CapsConfig(per_month=1), SpendingTotals(), day)
        assert cap.until == datetime(2028, 3, 1, tzinfo=UTC)


def test_of_several_caps_the_one_that_lasts_longest_is_reported() -> None:
    caps = build_caps(CapsConfig(per_run=1, per_day=1, per_month=1), SpendingTotals(1, 1, 1), TODAY)
    stopping = find_stopping_cap(caps, 0.5)
    assert stopping is not None
    assert stopping.name == "per_month"


def test_a_cap_below_a_single_request_has_its_own_remedy() -> None:
    error = reached(spending(CapsConfig(per_run=0.001)), 5)
    assert "a single request costs more" in (error.hint or "")


def test_under_a_cap_of_zero_only_free_requests_are_sent() -> None:
    caps = build_caps(CapsConfig(per_run=0), SpendingTotals(), TODAY)
    Spending("acme", Price(per_million=0), caps).reserve(10**9)
    with pytest.raises(CapReached):
        Spending("acme", A_DOLLAR_A_TOKEN, caps).reserve(1)


def test_without_a_price_tokens_are_counted_apart_and_not_as_free() -> None:
    used = build_usage(Charge(10, 1, 1), None)
    assert (used.unpriced_tokens, used.known_cost) == (10, None)
    more = used + build_usage(Charge(10, 1, 1), A_DOLLAR_A_TOKEN)
    assert more.known_cost == pytest.approx(0.01)
    assert more.unpriced_tokens == 10


def test_a_batch_has_its_own_price() -> None:
    used = build_usage(Charge(1_000, 1, 5), A_DOLLAR_A_TOKEN, is_batch=True)
    assert (used.cost, used.batch_tokens) == (0.5, 1_000)


def tenant(**config: Any) -> Tenant:
    return Tenant.from_config({"id": "acme", **config})


def test_caps_need_a_price() -> None:
    assert require_price(tenant(caps={"per_day": 1})) == Price(per_million=0)
    compatible = {"provider": "openai-compatible", "model": "m", "base_url": "http://127.0.0.1:9"}
    compatible["dimensions"] = 8
    with pytest.raises(ConfigurationError, match=r"caps.per_day cannot be enforced"):
        require_price(tenant(embedder=compatible, caps={"per_day": 1}))
    assert require_price(tenant(embedder=compatible)) is None


REF = TenantRef("acme", 1)
CHARGE = Charge(tokens=10, requests=1, texts=1)
PRICE = Price(per_million=1_000)


class Slow:
    """Usage whose recording blocks until it is released, and then may fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.added: list[Usage] = []
        self.go = threading.Event()
        self.error = error

    def add(self, ref: TenantRef, provider: str, model: str, used: Usage) -> None:
        assert (ref, provider, model) == (REF, "openai", "small")
        assert self.go.wait(10)
        self.added.append(used)
        if self.error is not None:
            raise self.error


def meter(usage: Slow) -> Meter:
    catalog: Any = SimpleNamespace(usage=usage)
    return Meter(catalog)


def test_questions_do_not_wait_and_are_added_up_meanwhile() -> None:
    usage = Slow()
    counting = meter(usage)
    for _ in range(50):
        counting.count(REF, "openai/small@2", CHARGE, PRICE)
    usage.go.set()
    counting.close()
    assert len(usage.added) <= 2
    assert sum(usage.added, Usage()).texts == 50
    assert sum(usage.added, Usage()).cost == pytest.approx(0.5)


def test_an_event_that_cannot_be_recorded_fails_no_search() -> None:
    usage = Slow(RuntimeError("no"))
    usage.go.set()
    counting = meter(usage)
    for _ in range(2):
        counting.count(REF, "openai/small@2", CHARGE, PRICE)
        counting.close()
    assert len(usage.added) == 2


def test_free_usage_is_not_recorded() -> None:
    usage = Slow()
    counting = meter(usage)
    counting.count(REF, "local/small@2", CHARGE, FREE)
    counting.close()
    assert usage.added == []
