"""Formatting of numbers for people."""

from __future__ import annotations

from math import floor, log10

_MINUTE, _HOUR = 60.0, 3_600.0


def format_count(count: int, singular: str, plural: str | None = None) -> str:
    """Format a number with its noun: "1 entry", "2,000 entries"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def dollars(amount: float) -> str:
    """Format dollars: to the cent, or below a dollar to two significant digits: "$0.0012"."""
    if not amount or abs(amount) >= 1:
        return f"${amount:,.2f}" if amount else "$0"
    return f"${amount:.{max(2, 1 - floor(log10(abs(amount))))}f}"


def duration(seconds: float) -> str:
    """Format a duration in a suitable unit: "0.4 s", "45 s", "12 min", "3.5 h"."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"  # noqa: PLR2004
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:,.1f} h"
