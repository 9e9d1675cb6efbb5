"""The outline of a PDF, from which headings and their levels are taken."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from rag_assets.ingest.parsing.outline import heading_name
from rag_assets.ingest.parsing.pdf.file import PdfFile
from rag_assets.ingest.parsing.pieces import DEEPEST_LEVEL

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_MOST_BOOKMARKS = 20_000
_NUMBERING = re.compile(r"^(?:(?:chapter|section|appendix|part) )?(?:[0-9]{1,4}|[a-z]|[ivx]{1,6}) ")
_NUMBERS = re.compile(r"^(?:[0-9]{1,4} )+")


class Bookmarks:
    """The outline of a PDF: the headings of each page and their levels."""

    def __init__(self, entries: Iterable[tuple[int, str, int]] = ()) -> None:
        self._levels: dict[tuple[int, str], int] = {}
        for page, title, level in entries:
            for form in _forms(title):
                self._levels.setdefault((page, form), min(level, DEEPEST_LEVEL))

    def level(self, page: int, text: str) -> int:
        """Return the level of a text on a page; 0 if it is not a heading.

        A bookmark may point just before a page break while its heading follows the break.
        """
        if not self._levels:
            return 0
        forms = _forms(heading_name(text))
        at = (page, page - 1)
        return next((n for p in at for form in forms if (n := self._levels.get((p, form)))), 0)


def bookmarks_of(file: PdfFile) -> Bookmarks:
    """Return the outline of a PDF; an endless outline is cut off."""
    return Bookmarks(_entries(file.document))


def _entries(document: PdfDocument) -> Iterator[tuple[int, str, int]]:
    """Yield page (from 1), title and level (from 1) of each bookmark that points to a page."""
    for bookmark in islice(document.get_toc(), _MOST_BOOKMARKS):
        destination = bookmark.get_dest()
        page = destination.get_index() if destination else None
        if page is not None:
            with suppress(UnicodeDecodeError):  # a lone surrogate, which matches no heading
                yield page + 1, heading_name(bookmark.get_title()), bookmark.level + 1


def _forms(title: str) -> tuple[str, ...]:
    """Return normal forms of a title: without case and punctuation, with and without numbers."""
    words = " ".join(re.sub(r"[\W_]+", " ", title.lower()).split())
    forms = [words]
    if (bare := _NUMBERS.sub("", _NUMBERING.sub("", words))) and bare != words:
        forms.append(bare)
    return tuple(form for form in forms if form)
