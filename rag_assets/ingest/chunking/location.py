"""Locations of chunks in their documents, by page, slide, sheet, row or line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A location in a document. All numbers count from 1; None if the format has no such number.

    Hits and citations inherit from it, so interfaces return these fields with them.

    Attributes:
        page, slide, sheet: where the first block lies that is not overlap.
        row_start, row_end: first and last row that text other than overlap touches.
        line_start, line_end: first and last line that the text touches, including overlap.
    """

    page: int | None
    slide: int | None
    sheet: str | None
    row_start: int | None
    row_end: int | None
    line_start: int | None
    line_end: int | None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Return the location in a stored record; other fields of the record are ignored."""
        return cls(**{name: record.get(name) for name in LOCATION_FIELDS})


LOCATION_FIELDS = tuple(field.name for field in fields(Location))
"""Names of the database columns and index fields that hold a location."""


UNKNOWN_LOCATION = Location.of({})
"""Location of a chunk whose format has no pages, slides, sheets, rows or lines."""


def location_fields(location: Location) -> dict[str, Any]:
    """Return the values of a location by the names of their columns and index fields."""
    return {name: getattr(location, name) for name in LOCATION_FIELDS}


def describe(location: Location) -> str:
    """Describe a location: "page 3", "sheet Costs, rows 2 to 7"; "" if it is unknown."""
    if location.page is not None:
        return f"page {location.page}"
    if location.slide is not None:
        return f"slide {location.slide}"
    rows = _span("row", location.row_start, location.row_end)
    if location.sheet is not None:
        return ", ".join(filter(None, (f"sheet {location.sheet}", rows)))
    return rows or _span("line", location.line_start, location.line_end)


def _span(name: str, first: int | None, last: int | None) -> str:
    if first is None:
        return ""
    return f"{name} {first}" if last in {None, first} else f"{name}s {first} to {last}"
