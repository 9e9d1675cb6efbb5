from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.sensors.due import TenantState, compute_backoff_seconds, explain_due
from rag_assets.storage.catalog.builds.syncs import Sync

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def sync(**changes: Any) -> Sync:
    values: dict[str, Any] = {
        "source": "files", "listing_digest": "A", "listed_at_ns": 1, "config_key": "config",
        "held_deletions": 0, "attempts": 0, "last_error": None, "retry_at": None,
        "succeeded_at": NOW,
    }  # fmt: skip
    return Sync(**{**values, **changes})


DONE = TenantState("acme", {"files": "A"}, "config", {"files": sync()})


def test_nothing_is_due_when_nothing_changed() -> None:
    assert explain_due(DONE, NOW) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"digests": {"files": "B"}}, "changed"),
        ({"syncs": {}}, "never synced"),
        ({"syncs": {"files": sync(listing_digest=None)}}, "never synced"),
        ({"digests": {"files": "A", "more": "C"}}, "'more' was never synced"),
        ({"config_key": "other"}, "configuration"),
        ({"digests": {}}, "removed"),
        ({"pending": 3}, "3 documents wait"),
        ({"removals": 2}, "2 removals wait"),
        ({"recently_changed": 1}, "1 documents may have changed"),
        ({"next_expiry": NOW - timedelta(microseconds=1)}, "retention"),
    ],
)
def test_each_reason_is_seen(changes: dict[str, Any], reason: str) -> None:
    assert reason in (explain_due(replace(DONE, **changes), NOW) or "")


def test_a_change_there_and_back_is_followed_each_time() -> None:
    recorded = "A"
    for listed in ("B", "A", "B", "A"):
        state = replace(
            DONE, digests={"files": listed}, syncs={"files": sync(listing_digest=recorded)}
        )
        assert explain_due(state, NOW) is not None
        recorded = listed
        state = replace(state, syncs={"files": sync(listing_digest=recorded)})
        assert explain_due(state, NOW) is None


def test_documents_that_wait_for_a_person_request_no_run() -> None:
    held = replace(DONE, syncs={"files": sync(held_deletions=30)})
    assert explain_due(held, NOW) is None
    gone = sync(source="gone", listing_digest="", held_deletions=30)
    assert explain_due(replace(DONE, syncs={**DONE.syncs, "gone": gone}), NOW) is None
    let_go = replace(gone, held_deletions=0)
    assert explain_due(replace(DONE, syncs={**DONE.syncs, "gone": let_go}), NOW) is not None


def test_a_retry_recorded_while_the_clock_was_ahead_is_due() -> None:
    failed = replace(DONE, digests={"files": "B"}, syncs={"files": sync(retry_at=NOW)})
    for ahead, is_due in ((timedelta(hours=1), False), (timedelta(days=400), True)):
        later = replace(failed, syncs={"files": sync(retry_at=NOW + ahead)})
        assert (explain_due(later, NOW) is not None) == is_due


def test_after_a_failure_only_a_person_does_not_wait() -> None:
    waiting = sync(retry_at=NOW + timedelta(seconds=30), attempts=1)
    failed = replace(DONE, digests={"files": "B"}, syncs={"files": waiting})
    assert explain_due(failed, NOW) is None
    assert explain_due(failed, NOW, wait_for_retry=False) is not None
    assert explain_due(failed, NOW + timedelta(seconds=31)) is not None
    assert explain_due(failed, NOW - timedelta(days=400)) is not None, "the clock was ahead"


def test_what_expires_later_is_not_due_yet() -> None:
    assert explain_due(replace(DONE, next_expiry=NOW), NOW) is None


@given(attempts=st.integers(-5, 10_000))
def test_backing_off_grows_to_an_hour(attempts: int) -> None:
    assert 30 <= compute_backoff_seconds(attempts) <= compute_backoff_seconds(attempts + 1) <= 3600


def test_backing_off_begins_with_half_a_minute() -> None:
    assert [compute_backoff_seconds(n) for n in range(4)] == [30, 60, 120, 240]
