"""Where in its document a passage stands, in words."""

from __future__ import annotations

from typing import Protocol


class Located(Protocol):
    """What has a place in a document; see Chunk for what each number counts."""

    @property
    def page(self) -> int | None: ...  # noqa: D102
    @property
    def slide(self) -> int | None: ...  # noqa: D102
    @property
    def sheet(self) -> str | None: ...  # noqa: D102
    @property
    def row_start(self) -> int | None: ...  # noqa: D102
    @property
    def row_end(self) -> int | None: ...  # noqa: D102
    @property
    def line_start(self) -> int | None: ...  # noqa: D102
    @property
    def line_end(self) -> int | None: ...  # noqa: D102


def place_of(passage: Located) -> str:
    """Where a passage stands, as far as its format has such places: "page 3", "lines 4 to 9"."""
    if passage.page is not None:
        return f"page {passage.page}"
    if passage.slide is not None:
        return f"slide {passage.slide}"
    rows = _span("row", passage.row_start, passage.row_end)
    if passage.sheet is not None:
        return ", ".join(filter(None, (f"sheet {passage.sheet}", rows)))
    return rows or _span("line", passage.line_start, passage.line_end)


def _span(name: str, first: int | None, last: int | None) -> str:
    if first is None:
        return ""
    return f"{name} {first}" if last in {None, first} else f"{name}s {first} to {last}"
