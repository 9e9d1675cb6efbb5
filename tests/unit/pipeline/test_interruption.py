"""How long documents wait when nothing can be embedded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from rag_assets.common.errors import (
    BadVectors,
    ProviderRefused,
    ProviderUnavailable,
    RagAssetsError,
    WrongShape,
)
from rag_assets.pipeline.slices import is_permanent, retry_at
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.documents.status import NEVER

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
    left = retry_at(FAILED_TWICE, outage) - datetime.now(UTC)
    assert wait - timedelta(seconds=5) < left <= wait
    assert not is_permanent(outage)


def test_bad_vectors_may_be_better_ones_next_time() -> None:
    assert not is_permanent(BadVectors("not finite"))
    assert retry_at(FAILED_TWICE, BadVectors("not finite")) != NEVER


@pytest.mark.parametrize(
    "outage", [ProviderRefused("no such model"), WrongShape("of 384 dimensions")]
)
def test_permanent_failures_are_not_retried_automatically(outage: RagAssetsError) -> None:
    assert is_permanent(outage)
    assert retry_at(FAILED_TWICE, outage) == NEVER
