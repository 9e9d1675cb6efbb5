from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rag_assets.billing.spending import Meter
from rag_assets.models.embedding.protocol import Charge
from rag_assets.models.prices import FREE, Price
from rag_assets.storage.catalog.accounts.usage import Usage
from rag_assets.storage.catalog.database import TenantRef

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
