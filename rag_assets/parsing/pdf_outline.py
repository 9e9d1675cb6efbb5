"""What a PDF says of itself: pages, title, outline; and whether it can be opened at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from rag_assets.errors import DocumentRejected
from rag_assets.parsing.limits import ParseLimits
from rag_assets.parsing.outline import heading_name
from rag_assets.parsing.titles import sensible_title

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_MOST_BOOKMARKS = 20_000
_DEEPEST_LEVEL = 6
_TAIL_BYTES = 4_096
_NEEDS_PASSWORD = 4  # FPDF_ERR_PASSWORD
_NUMBERING = re.compile(r"^(?:(?:chapter|section|appendix|part) )?(?:[0-9]{1,4}|[a-z]|[ivx]{1,6}) ")
_NUMBERS = re.compile(r"^(?:[0-9]{1,4} )+")


class Bookmarks:
    """The outline: which texts on which pages are headings, and of what level."""

    def __init__(self, entries: Iterable[tuple[int, str, int]] = ()) -> None:
        self._levels: dict[tuple[int, str], int] = {}
        for page, title, level in entries:
            for form in _forms(title):
                self._levels.setdefault((page, form), min(level, _DEEPEST_LEVEL))

    def level(self, page: int, text: str) -> int:
        """The level of a text on a page, 0 where it is no heading.

        A destination may lie just before the page break that its heading follows.
        """
        if not self._levels:
            return 0
        forms = _forms(heading_name(text))
        at = (page, page - 1)
        return next((n for p in at for form in forms if (n := self._levels.get((p, form)))), 0)


@dataclass(frozen=True, slots=True)
class PdfFacts:
    """What a PDF says of itself; the title only if it is one that a person gave."""

    pages: int
    title: str | None
    bookmarks: Bookmarks


def inspect_pdf(data: bytes, limits: ParseLimits) -> PdfFacts:
    """Open a PDF and read what it says of itself.

    Raises:
        DocumentRejected: it is encrypted, cut short, damaged, or has too many pages.
    """
    import pypdfium2 as pdfium

    tail = data[-_TAIL_BYTES:]
    if b"%%EOF" not in tail and b"startxref" not in tail:
        # pdfium would make do with the pages that are left, and nobody would know.
        raise DocumentRejected(
            "it is truncated: the end of the PDF is missing", hint="copy the file again"
        )
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == _NEEDS_PASSWORD:
            raise DocumentRejected(
                "it is encrypted, needs a password", hint="store a copy without a password"
            ) from None
        raise DocumentRejected("it is damaged: not a readable PDF") from None
    try:
        limits.check_pages(len(document))
        title = sensible_title(document.get_metadata_value("Title"))
        return PdfFacts(len(document), title, Bookmarks(_entries(document)))
    finally:
        document.close()


def _entries(document: PdfDocument) -> Iterator[tuple[int, str, int]]:
    """Page (from 1), title and level (from 1) of each bookmark that leads to a page."""
    for bookmark in islice(document.get_toc(), _MOST_BOOKMARKS):
        destination = bookmark.get_dest()
        page = destination.get_index() if destination else None
        if page is not None:
            yield page + 1, heading_name(bookmark.get_title()), bookmark.level + 1


def _forms(title: str) -> tuple[str, ...]:
    """A title as it is compared: without case and punctuation, with and without numbering."""
    words = " ".join(re.sub(r"[\W_]+", " ", title.lower()).split())
    forms = [words]
    if (bare := _NUMBERS.sub("", _NUMBERING.sub("", words))) and bare != words:
        forms.append(bare)
    return tuple(form for form in forms if form)
