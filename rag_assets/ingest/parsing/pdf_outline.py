"""The outline of a PDF, its bookmarks, which confirms headings that the layout suggests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from rag_assets.ingest.parsing.blocks import MAX_HEADING_LEVEL, Piece, shorten_heading

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument


def apply_outline(pieces: list[Piece], document: PdfDocument) -> list[Piece]:
    """Keep only the headings in the outline, if at least one heading on the pages is in it.

    The headings found by type size are too many. An outline with other words, such as slide names,
    is ignored.
    """
    bookmarks = _Bookmarks(_iter_bookmark_entries(document))
    levels = [bookmarks.get_level(piece.page or 0, piece.text) for piece in pieces]
    are_confirmed = (
        piece.kind == "heading" and level for piece, level in zip(pieces, levels, strict=True)
    )
    if not any(are_confirmed):
        return pieces
    return [_apply_level(piece, level) for piece, level in zip(pieces, levels, strict=True)]


def _apply_level(piece: Piece, level: int) -> Piece:
    if level and piece.kind in {"heading", "paragraph"}:
        return replace(piece, kind="heading", level=level)
    return replace(piece, kind="paragraph", level=0) if piece.kind == "heading" else piece


_MAX_BOOKMARKS = 20_000
_NUMBERING = re.compile(r"^(?:(?:chapter|section|appendix|part) )?(?:[0-9]{1,4}|[a-z]|[ivx]{1,6}) ")
_NUMBERS = re.compile(r"^(?:[0-9]{1,4} )+")


class _Bookmarks:
    """The level of each heading, by page and title."""

    def __init__(self, entries: Iterable[tuple[int, str, int]] = ()) -> None:
        self._levels: dict[tuple[int, str], int] = {}
        for page, title, level in entries:
            for form in _normalize_title(title):
                self._levels.setdefault((page, form), min(level, MAX_HEADING_LEVEL))

    def get_level(self, page: int, text: str) -> int:
        """Return the level of a heading on a page, or on the page before it; else 0."""
        if not self._levels:
            return 0
        forms = _normalize_title(shorten_heading(text))
        at = (page, page - 1)
        return next((n for p in at for form in forms if (n := self._levels.get((p, form)))), 0)


def _iter_bookmark_entries(document: PdfDocument) -> Iterator[tuple[int, str, int]]:
    """Yield page (from 1), title and level (from 1) of each bookmark that points to a page."""
    for bookmark in islice(document.get_toc(), _MAX_BOOKMARKS):
        destination = bookmark.get_dest()
        page = destination.get_index() if destination else None
        if page is not None:
            with suppress(UnicodeDecodeError):  # a lone surrogate, which matches no heading
                yield page + 1, shorten_heading(bookmark.get_title()), bookmark.level + 1


def _normalize_title(title: str) -> tuple[str, ...]:
    """Return forms of a title that can be compared: lower case, without punctuation."""
    words = " ".join(re.sub(r"[\W_]+", " ", title.lower()).split())
    forms = [words]
    if (bare := _NUMBERS.sub("", _NUMBERING.sub("", words))) and bare != words:
        forms.append(bare)
    return tuple(form for form in forms if form)
