"""Decides whether a tenant is due, by pure functions over listings and recorded state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from rag_assets.storage.catalog.builds.syncs import Sync

_MAX_BACKOFF = timedelta(hours=1)
_MAX_WAIT = _MAX_BACKOFF + timedelta(minutes=5)
"""Maximum wait after a failure, with a margin for differences between clocks."""


@dataclass(frozen=True, slots=True)
class TenantState:
    """The state that determines whether a tenant's pipeline must run.

    Attributes:
        digests: digests of the current listing, by source; without one, of the last recorded one.
        unlisted: why a source could not be listed, by source; such a source does not make the
            tenant due.
        config_key: key of the current configuration and components.
        pending: number of outdated documents that may be tried now.
        removals: number of deleted documents that a build may still contain.
        partly_replaced: number of documents for which a killed run may have left entries of other
            versions.
        recently_changed: number of documents that were listed so soon after their last change that
            a further change could have been missed.
        unpublished: whether a complete build waits to be judged and published.
        next_expiry: when the next document is due for pruning.
        unfinished: why the tenant's system still has work to do after a sync; None if it has none.
        is_listed: whether the sources were listed; with pending work they are not.
    """

    tenant_id: str
    digests: Mapping[str, str]
    config_key: str
    syncs: Mapping[str, Sync]
    pending: int = 0
    removals: int = 0
    partly_replaced: int = 0
    recently_changed: int = 0
    unpublished: bool = False
    next_expiry: datetime | None = None
    unlisted: Mapping[str, str] = field(default_factory=dict)
    unfinished: str | None = None
    is_listed: bool = True


def explain_due(state: TenantState, now: datetime, *, wait_for_retry: bool = True) -> str | None:
    """Return why the tenant's pipeline must run now; None if it need not run.

    A listing is compared with the last *successful* sync, not with the last run, so that a change
    from A to B and back to A is noticed.

    Args:
        wait_for_retry: whether to wait until the next retry is due after a failure; a sync by
            command does not wait.
    """
    # A retry time beyond the limit was computed with a fast clock, and is ignored.
    latest = now + _MAX_WAIT
    if wait_for_retry and any(
        sync.retry_at is not None and now < sync.retry_at <= latest for sync in state.syncs.values()
    ):
        return None
    return _explain_sources(state) or _explain_remaining_work(state, now)


def _explain_sources(state: TenantState) -> str | None:
    for source, digest in state.digests.items():
        sync = state.syncs.get(source)
        if sync is None or sync.listing_digest is None:
            return f"source {source!r} was never synced"
        if sync.listing_digest != digest:
            return f"source {source!r} changed"
        if sync.config_key is not None and sync.config_key != state.config_key:
            return "the configuration changed"
    removed = set(state.syncs) - set(state.digests) - set(state.unlisted)
    held_sources = {source for source in removed if state.syncs[source].held_deletions}
    return "a source was removed" if removed - held_sources else None


def _explain_remaining_work(state: TenantState, now: datetime) -> str | None:
    for count, work in (
        (state.pending, "documents wait"),
        (state.removals, "removals wait"),
        (state.partly_replaced, "documents were only partly replaced"),
        (state.recently_changed, "documents may have changed again since they were listed"),
    ):
        if count:
            return f"{count} {work}"
    if state.unpublished:
        return "a build waits to be published"
    if state.unfinished is not None:
        return state.unfinished
    if state.next_expiry is not None and state.next_expiry < now:
        return "documents have reached their retention"
    return None


def compute_backoff_seconds(attempts: int) -> int:
    """Return the delay before the next attempt after this many failures: 30 s to 1 h."""
    longest = int(_MAX_BACKOFF.total_seconds())
    return min(longest, 30 << min(max(attempts, 0), 10))
