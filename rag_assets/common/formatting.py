"""Formatting of numbers for people."""

from __future__ import annotations

from math import floor, log10


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun: "1 entry", "2,000 entries"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def dollars(amount: float) -> str:
    """An amount of money: to the cent, below a dollar to two significant digits: "$0.0012"."""
    if not amount or abs(amount) >= 1:
        return f"${amount:,.2f}" if amount else "$0"
    return f"${amount:.{max(2, 1 - floor(log10(abs(amount))))}f}"
