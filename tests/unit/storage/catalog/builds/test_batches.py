from datetime import UTC, datetime, timedelta

import pytest

from rag_assets.storage.catalog.builds.batches import EmbeddingBatch, is_poll_due
from rag_assets.storage.catalog.database import TenantRef

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("polled_minutes_ago", "is_due"), [(0, False), (1, True), (-1, True), (-400 * 1_440, True)]
)
def test_a_batch_polled_within_a_minute_is_not_due(polled_minutes_ago: int, is_due: bool) -> None:
    batch = EmbeddingBatch(
        id=1, ref=TenantRef("team", 1), tag="tag", batch_id="batch", embedder_id="model",
        embedder={}, texts=1, tokens=1, cost=None, state="UNDER_WAY", error=None,
        submitted_at=NOW - timedelta(minutes=5),
        polled_at=NOW - timedelta(minutes=polled_minutes_ago), ended_at=None,
    )  # fmt: skip
    assert is_poll_due(batch, NOW) == is_due
