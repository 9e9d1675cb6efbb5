import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rag_assets.common.errors import (
    BadVectors,
    ProviderRefused,
    ProviderUnavailable,
    RagAssetsError,
    WrongShape,
)
from rag_assets.pipeline.context import SliceLimits, TenantContext
from rag_assets.pipeline.slices import StageTime, compute_retry_time, is_permanent, prefetch_items
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.documents.status import NEVER


def stage(*, is_hurried: bool = False, has_changed: bool = False, at: float) -> StageTime:
    """Return a stage of ten seconds that started so many seconds ago."""
    limits = SliceLimits(hurried_seconds=1.0)
    fields = SimpleNamespace(limits=limits, has_changed=lambda: has_changed)
    made = StageTime(cast("TenantContext", cast("Any", fields)), 10.0, is_hurried=is_hurried)
    made.deadline -= at
    made._hurried_deadline -= at
    return made


@pytest.mark.parametrize(
    ("is_hurried", "has_changed", "at", "urgent_over", "other_over"),
    [
        (False, False, 0.5, False, False),
        (False, False, 5.0, False, False),
        (False, False, 11.0, True, True),
        (True, False, 0.5, False, False),
        (True, False, 5.0, False, True),
        (False, True, 0.5, False, False),
        (False, True, 5.0, False, True),
        (True, True, 11.0, True, True),
    ],
)
def test_others_are_put_off_while_something_urgent_waits(
    is_hurried: bool, has_changed: bool, at: float, urgent_over: bool, other_over: bool
) -> None:
    made = stage(is_hurried=is_hurried, has_changed=has_changed, at=at)
    assert made.is_over(is_urgent=True) == urgent_over
    assert made.is_over(is_urgent=False) == other_over


FAILED_TWICE = cast("Document", SimpleNamespace(attempts=2))


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        (None, timedelta(minutes=4)),
        (1.0, timedelta(minutes=4)),
        (7_200.0, timedelta(hours=2)),
        (1e17, timedelta(days=1)),
        (float("inf"), timedelta(days=1)),
    ],
)
def test_transient_failures_are_retried_when_the_provider_requires_but_within_a_day(
    asked: float | None, wait: timedelta
) -> None:
    outage = ProviderUnavailable("busy", retry_after=asked)
    left = compute_retry_time(FAILED_TWICE, outage) - datetime.now(UTC)
    assert wait - timedelta(seconds=5) < left <= wait
    assert not is_permanent(outage)


def test_bad_vectors_may_be_better_ones_next_time() -> None:
    assert not is_permanent(BadVectors("not finite"))
    assert compute_retry_time(FAILED_TWICE, BadVectors("not finite")) != NEVER


@pytest.mark.parametrize(
    "outage", [ProviderRefused("no such model"), WrongShape("of 384 dimensions")]
)
def test_permanent_failures_are_not_retried_automatically(outage: RagAssetsError) -> None:
    assert is_permanent(outage)
    assert compute_retry_time(FAILED_TWICE, outage) == NEVER


def test_the_next_is_made_while_the_present_one_is_used() -> None:
    made = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        made.set()
        yield 2

    passed = prefetch_items(items())
    assert next(passed) == 1
    assert made.wait(5)
    assert list(passed) == [2]


def test_no_more_than_one_is_prefetched() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(5):
            made.append(number)
            yield number

    passed = prefetch_items(items())
    next(passed)
    passed.close()
    assert made == [0, 1]


def test_an_error_comes_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no second one")

    passed = prefetch_items(items())
    assert next(passed) == 1
    with pytest.raises(ValueError, match="no second one"):
        next(passed)
