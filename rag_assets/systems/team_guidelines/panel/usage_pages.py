"""Usage: the month, the days, the caps, and all of it as a table for other programs."""

from __future__ import annotations

import csv
import io
from functools import partial

from starlette.responses import Response

from rag_assets.panel.frame import Visit
from rag_assets.systems.team_guidelines.panel.room import room_of

_DAYS = 30
_CHOICES = (7, 30, 90)
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


async def usage(visit: Visit) -> Response:
    """The page."""
    room = await room_of(visit)
    days = _days(visit)
    found = await room.read(partial(room.guidelines.usage.of, room.project, days))
    return visit.html("usage.html", usage=found, days=days, choices=_CHOICES)


async def table(visit: Visit) -> Response:
    """The days as CSV."""
    room = await room_of(visit)
    found = await room.read(partial(room.guidelines.usage.of, room.project, _days(visit)))
    written = io.StringIO()
    lines = csv.writer(written)
    lines.writerow(
        ("day", "provider", "model", "requests", "texts", "tokens", "output_tokens", "cost_usd")
    )
    for one in found.days:
        used = one.used
        lines.writerow(
            (
                *(one.day.isoformat(), _plain(one.provider), _plain(one.model)),
                *(used.requests, used.texts, used.tokens, used.output_tokens, f"{used.cost:.8f}"),
            )
        )
    name = f"usage-{found.since.isoformat()}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(written.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")


def _days(visit: Visit) -> int:
    given = visit.request.query_params.get("days", "")
    return next((days for days in _CHOICES if str(days) == given), _DAYS)


def _plain(name: str) -> str:
    """A name that a spreadsheet does not take for a formula."""
    return f"'{name}" if name.startswith(_FORMULAS) else name
