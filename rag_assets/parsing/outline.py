"""Heading paths: which headings a passage stands under."""

from __future__ import annotations


class Outline:
    """Follows headings as they come and knows the path of what comes next."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []

    def enter(self, level: int, text: str) -> tuple[str, ...]:
        """A heading of this level begins; returns its path, its own text last."""
        self._path = [(above, title) for above, title in self._path if above < level]
        self._path.append((level, text))
        return self.path

    @property
    def path(self) -> tuple[str, ...]:
        """Headings above what comes now, outermost first."""
        return tuple(text for _, text in self._path)
