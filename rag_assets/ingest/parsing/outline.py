"""Headings: their names, their paths, and the choice of a title among them."""

from __future__ import annotations

from collections.abc import Iterable

from rag_assets.ingest.parsing.model import Block

_LONGEST_NAME = 300


class Outline:
    """The headings so far, in order, and the path of the next block."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []
        self._names: tuple[str, ...] = ()

    def enter(self, level: int, name: str) -> tuple[str, ...]:
        """Start a heading of this level; return its path, which ends with its own name."""
        self._path = [(above, title) for above, title in self._path if above < level]
        self._path.append((level, name))
        # All blocks below a heading share one tuple, since a long document has many blocks.
        self._names = tuple(title for _, title in self._path)
        return self._names

    @property
    def path(self) -> tuple[str, ...]:
        """Return the headings above the next block, outermost first."""
        return self._names


def heading_name(text: str) -> str:
    """Return a heading's text on one line, cut to a reasonable length.

    The name is repeated in the path of every block below it, so it must be short.
    """
    name = " ".join(text[: 8 * _LONGEST_NAME].split())
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def first_title(blocks: Iterable[Block]) -> str | None:
    """Return the first heading of the first level or, without one, the first heading."""
    named = [block for block in blocks if block.kind == "heading" and block.heading_path[-1]]
    first = next((block for block in named if block.level == 1), named[0] if named else None)
    return first.heading_path[-1] if first else None
