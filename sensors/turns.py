"""Decides which tenants a tick of the sensor looks at: pure functions over a cursor.

Without a change watcher all of them, as far as the tick's time goes. With one, those that it does
not watch, those with a reason of their own, and a share of all others: each has its turn within a
minute, because events may be lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Literal

from rag_assets.local_stack.watch_report import NO_WATCHER, WatchReport

ROUND_SECONDS = 45.0
"""In which each tenant has a turn, for a tick comes late when there is much to do."""
HANDED_SECONDS = 20.0
"""For the watcher to begin with a tenant that it was told of; then the sensor requests a run."""

Verdict = Literal["request", "tell", "wait"]


@dataclass(frozen=True, slots=True)
class Cursor:
    """What one tick leaves to the next.

    Attributes:
        at: when it began, in seconds since the epoch.
        watcher: the watcher for which all tenants were listed since it began.
        turn: the tenant that had its turn last.
        stopped: the tenant at which the tick's time was over; None: it looked at all.
        handed: tenants that the watcher was told of, and when.
        unlisted: sources that cannot be listed, as TENANT/SOURCE; a run has failed for each.
    """

    at: float = 0.0
    watcher: str = ""
    turn: str | None = None
    stopped: str | None = None
    handed: Mapping[str, float] = field(default_factory=dict)
    unlisted: Sequence[str] = field(default_factory=list)

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """The cursor in a text; a new one if it is none of ours."""
        try:
            return cls(**json.loads(text or "{}"))
        except (ValueError, TypeError):
            return cls()

    def text(self) -> str:
        """As a text."""
        return json.dumps(
            {
                "at": self.at,
                "watcher": self.watcher,
                "turn": self.turn,
                "stopped": self.stopped,
                "handed": dict(self.handed),
                "unlisted": list(self.unlisted),
            }
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """Whom a tick looks at.

    Attributes:
        first: tenants that are looked at whatever the time: some have a reason, some their turn.
        rest: those that are looked at as far as the time goes.
        turn: for the cursor.
        watcher: for the cursor, once all of them have been looked at.
    """

    first: tuple[str, ...]
    rest: tuple[str, ...]
    turn: str | None
    watcher: str


def plan(
    ids: Sequence[str], cursor: Cursor, report: WatchReport, reasons: Set[str], now: float
) -> Plan:
    """Choose the tenants of a tick.

    Args:
        ids: of all active tenants, in order.
        cursor: of the tick before.
        report: of the change watcher.
        reasons: tenants to look at now, whoever watches them.
        now: seconds since the epoch.
    """
    if report is NO_WATCHER or report.watcher != cursor.watcher:
        return Plan((), tuple(from_cursor(ids, cursor.stopped)), cursor.turn, report.watcher)
    overdue = {id_ for id_, at in cursor.handed.items() if _is_overdue(at, now)}
    told = reasons | overdue
    first = [id_ for id_ in ids if id_ in told]
    others = [id_ for id_ in ids if id_ in report.watched and id_ not in told]
    share = math.ceil(len(others) * min(1.0, max(0.0, now - cursor.at) / ROUND_SECONDS))
    turns = from_cursor(others, cursor.turn)[:share]
    unwatched = [id_ for id_ in ids if id_ not in report.watched and id_ not in told]
    return Plan(
        (*first, *turns),
        tuple(from_cursor(unwatched, cursor.stopped)),
        turns[-1] if turns else cursor.turn,
        report.watcher,
    )


def verdict(id_: str, cursor: Cursor, report: WatchReport, now: float) -> Verdict:
    """What is done for a tenant that is due: the watcher has the first try where it watches."""
    if id_ not in report.watched:
        return "request"
    if id_ in report.marked:
        return "wait"
    if id_ not in cursor.handed:
        return "tell"
    return "request" if _is_overdue(cursor.handed[id_], now) else "wait"


def _is_overdue(handed_at: float, now: float) -> bool:
    """Return whether the watcher had its time; a time in the future counts as long past."""
    return not 0 <= now - handed_at < HANDED_SECONDS


def following(
    cursor: Cursor,
    planned: Plan,
    seen: Mapping[str, Verdict | None],
    *,
    stopped: str | None,
    now: float,
) -> Cursor:
    """The cursor after a tick.

    Args:
        cursor: of the tick before.
        planned: whom it was to look at.
        seen: what was done for those it looked at; None: they were not due.
        stopped: where its time was over; None: it was not.
        now: when it began.
    """
    handed = {id_: at for id_, at in cursor.handed.items() if seen.get(id_, "wait") == "wait"}
    handed |= {id_: now for id_, done in seen.items() if done == "tell"}
    return replace(
        cursor,
        at=now,
        watcher=planned.watcher if stopped is None else cursor.watcher,
        turn=planned.turn,
        stopped=stopped,
        handed=handed,
    )


def from_cursor(tenant_ids: Sequence[str], cursor: str | None) -> list[str]:
    """Order tenants round-robin, beginning after the last one that had its turn."""
    if cursor is None:
        return list(tenant_ids)
    after = [tenant_id for tenant_id in tenant_ids if tenant_id > cursor]
    return after + [tenant_id for tenant_id in tenant_ids if tenant_id <= cursor]
