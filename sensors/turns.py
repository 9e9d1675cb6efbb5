"""Decides which tenants a tick of the sensor checks, by pure functions over a cursor.

Without a change watcher, a tick checks as many tenants as its time allows. With a watcher, it
checks unwatched tenants, tenants with a reason, and a share of all others. The shares are chosen so
that each tenant has a turn within a minute, because events may be lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Literal

from rag_assets.runtime.watch_report import NO_WATCHER, WatchReport

ROUND_SECONDS = 45.0
"""Seconds within which each tenant has a turn; below a minute, because ticks may be late."""
HANDED_SECONDS = 20.0
"""Seconds in which the watcher must start to sync a tenant; then the sensor requests a run."""

Action = Literal["request", "tell", "wait"]


@dataclass(frozen=True, slots=True)
class Cursor:
    """The state that one tick passes to the next.

    Attributes:
        at: when the tick started, in seconds since the epoch.
        watcher: id of the watcher, if all tenants have been listed since it started.
        turn: the tenant that had the last turn.
        stopped: the tenant at which the tick's time ran out; None if it checked all tenants.
        handed: tenants that were left to the watcher, with the time in seconds since the epoch.
        unlisted: sources that cannot be listed and for which a failing run was requested, as
            TENANT/SOURCE.
    """

    at: float = 0.0
    watcher: str = ""
    turn: str | None = None
    stopped: str | None = None
    handed: Mapping[str, float] = field(default_factory=dict)
    unlisted: Sequence[str] = field(default_factory=list)

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """Return the cursor in a text; a new cursor if the text is not valid."""
        try:
            return cls(**json.loads(text or "{}"))
        except (ValueError, TypeError):
            return cls()

    def text(self) -> str:
        """Return the cursor as text."""
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
class TickPlan:
    """The tenants that a tick checks.

    Attributes:
        first: tenants with a reason to be checked or whose turn it is; they are checked even if the
            time runs out.
        rest: tenants that are checked only as far as time allows.
        turn: the new value of Cursor.turn.
        watcher: the new value of Cursor.watcher, if all planned tenants are checked.
    """

    first: tuple[str, ...]
    rest: tuple[str, ...]
    turn: str | None
    watcher: str


def plan_tick(
    ids: Sequence[str], cursor: Cursor, report: WatchReport, reasons: Set[str], now: float
) -> TickPlan:
    """Choose the tenants of a tick.

    Args:
        reasons: tenants that have a reason to be checked now, whether watched or not.
    """
    if report is NO_WATCHER or report.watcher != cursor.watcher:
        return TickPlan((), tuple(rotate_after(ids, cursor.stopped)), cursor.turn, report.watcher)
    overdue = {id_ for id_, at in cursor.handed.items() if _is_overdue(at, now)}
    urgent = reasons | overdue
    first = [id_ for id_ in ids if id_ in urgent]
    others = [id_ for id_ in ids if id_ in report.watched and id_ not in urgent]
    share = math.ceil(len(others) * min(1.0, max(0.0, now - cursor.at) / ROUND_SECONDS))
    turns = rotate_after(others, cursor.turn)[:share]
    unwatched = [id_ for id_ in ids if id_ not in report.watched and id_ not in urgent]
    return TickPlan(
        (*first, *turns),
        tuple(rotate_after(unwatched, cursor.stopped)),
        turns[-1] if turns else cursor.turn,
        report.watcher,
    )


def choose_action(id_: str, cursor: Cursor, report: WatchReport, now: float) -> Action:
    """Return the action for a due tenant.

    "tell" leaves a watched tenant to the watcher, "wait" gives the watcher time, and "request"
    requests a run, because the tenant is not watched or the watcher did not act in time.
    """
    if id_ not in report.watched:
        return "request"
    if id_ in report.marked:
        return "wait"
    if id_ not in cursor.handed:
        return "tell"
    return "request" if _is_overdue(cursor.handed[id_], now) else "wait"


def _is_overdue(handed_at: float, now: float) -> bool:
    """Return whether a tenant has been left to the watcher for too long.

    A time in the future counts as too long.
    """
    return not 0 <= now - handed_at < HANDED_SECONDS


def advance_cursor(
    cursor: Cursor,
    planned: TickPlan,
    seen: Mapping[str, Action | None],
    *,
    stopped: str | None,
    now: float,
) -> Cursor:
    """Return the cursor after a tick.

    Args:
        seen: the action for each checked tenant; None if the tenant was not due.
        stopped: the tenant at which the tick's time ran out; None if it did not run out.
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


def rotate_after(tenant_ids: Sequence[str], cursor: str | None) -> list[str]:
    """Return the tenants in order, starting after the tenant `cursor` and wrapping around."""
    if cursor is None:
        return list(tenant_ids)
    after = [tenant_id for tenant_id in tenant_ids if tenant_id > cursor]
    return after + [tenant_id for tenant_id in tenant_ids if tenant_id <= cursor]
