"""Open PDFs and their pages with pdfium."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Self

from rag_assets.common.errors import DocumentEncrypted, DocumentRejected, DocumentScanned
from rag_assets.ingest.parsing.detection.detect import PDF_MARK

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_TAIL_BYTES = 4_096
_NEEDS_PASSWORD = 4  # FPDF_ERR_PASSWORD
SCANTY = 60
"""Maximum number of characters on a scanned page, since scanner apps stamp a line on each page."""
_MOST_OBJECTS = 500


class PdfFile:
    """An opened PDF.

    Args:
        data: the document; bytes before the PDF mark are left out.
        passwords: passwords that are tried in order if it is encrypted.

    Attributes:
        data: the document from the PDF mark on.
        password: the password that opened the document, if it needed one.
        document: the document opened by pdfium.

    Raises:
        DocumentRejected: the PDF is encrypted, truncated or damaged.
    """

    def __init__(self, data: bytes, passwords: Iterable[str] = ()) -> None:
        self.data = data[data.find(PDF_MARK) :]
        tail = self.data[-_TAIL_BYTES:]
        if b"%%EOF" not in tail and b"startxref" not in tail:
            # Without this check, pdfium would silently open only the remaining pages.
            raise DocumentRejected(
                "the PDF is truncated: its end is missing", hint="copy the file again"
            )
        self.document, self.password = _open_pdf(self.data, tuple(passwords))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.document.close()

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self.document)

    @property
    def title(self) -> str:
        """Return the title in the properties; "" if it is missing or cannot be decoded."""
        try:
            return str(self.document.get_metadata_value("Title"))
        except UnicodeDecodeError:
            return ""

    @contextmanager
    def page(self, number: int) -> Iterator[PdfPage]:
        """Yield one page, counted from 1.

        Raises:
            PdfiumError: the page cannot be read.
        """
        page = self.document[number - 1]
        try:
            yield page
        finally:
            page.close()

    def is_picture(self, number: int) -> bool:
        """Return whether a page has graphics and little text, so it was scanned or drawn."""
        from pypdfium2 import PdfiumError
        from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

        try:
            with self.page(number) as page:
                text = page.get_textpage()
                characters = text.count_chars()
                text.close()
                if characters > SCANTY:
                    return False
                objects = islice(page.get_objects(), _MOST_OBJECTS)
                kinds = {drawn.type for drawn in objects}
        except PdfiumError:
            return False
        return FPDF_PAGEOBJ_IMAGE in kinds or (not characters and bool(kinds))


def no_text(pages: int, *, ocr: bool) -> DocumentRejected:
    """Return the error that rejects a PDF without any text."""
    if ocr:
        return DocumentScanned(f"no text was found, not even by OCR ({pages:,} pages)")
    return DocumentScanned(
        f"the PDF has no text: scanned pages need OCR (pages without text: {pages:,})",
        hint="set parser.ocr: true for the tenant",
    )


def _open_pdf(data: bytes, passwords: tuple[str, ...]) -> tuple[PdfDocument, str | None]:
    import pypdfium2 as pdfium

    for password in (None, *passwords):
        try:
            return pdfium.PdfDocument(data, password=password), password
        except pdfium.PdfiumError as error:
            if getattr(error, "err_code", None) != _NEEDS_PASSWORD:
                raise DocumentRejected("the PDF is damaged and cannot be read") from None
    tried = ", and none of parser.passwords opens it" if passwords else " and needs a password"
    raise DocumentEncrypted(
        f"the document is encrypted{tried}",
        hint="add its password to parser.passwords, or store a copy without a password",
    )
