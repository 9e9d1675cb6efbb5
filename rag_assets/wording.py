"""Numbers in words."""

from __future__ import annotations


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun: "1 entry", "2,000 entries"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
