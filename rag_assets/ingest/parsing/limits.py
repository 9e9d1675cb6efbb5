"""Resource limits of one document."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.common.errors import DocumentTooLarge


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Resources that one document may use while it is parsed, scanned and masked.

    Attributes:
        seconds: maximum elapsed time, and maximum processor time.
        memory_bytes: maximum address space, in addition to that of an idle worker.
        characters: maximum size of the parsed text.
        blocks: maximum number of paragraphs, rows and other blocks; later stages hold all
            blocks of a document in memory without any other limit.
        pages: maximum number of pages, if the format has them; slides and sheets count as
            pages.
        ocr_pages: maximum number of pages that are read by OCR; each of them adds to the time
            limit.
        ocr_seconds: maximum time for OCR of all pages; pages that exceed it are left out.
        expanded_bytes: maximum size of a compressed document after it is unpacked.
        cells: maximum number of cells of a workbook, including empty cells between filled
            cells.
    """

    seconds: float = 60.0
    memory_bytes: int = 2 * 1024**3
    characters: int = 20_000_000
    blocks: int = 1_000_000
    pages: int = 5_000
    ocr_pages: int = 1_000
    ocr_seconds: float = 600.0
    expanded_bytes: int = 512 * 1024**2
    cells: int = 5_000_000

    def check_characters(self, count: int) -> None:
        """Refuse a text that is too long.

        Raises:
            DocumentRejected: the text is too long; the message names the limit.
        """
        if count > self.characters:
            raise DocumentTooLarge(
                f"the document's text is longer than the limit of {self.characters:,} characters",
                hint="split the document",
            )

    def check_blocks(self, count: int) -> None:
        """Refuse a text with too many blocks.

        Raises:
            DocumentRejected: it has too many blocks; the message names the limit.
        """
        if count > self.blocks:
            raise DocumentTooLarge(
                f"the document has {count:,} paragraphs and rows, over the limit of"
                f" {self.blocks:,}",
                hint="split the document",
            )

    def check_pages(self, count: int) -> None:
        """Refuse a document with too many pages.

        Raises:
            DocumentRejected: it has too many pages; the message names the limit.
        """
        if count > self.pages:
            raise DocumentTooLarge(
                f"the document has {count:,} pages, over the limit of {self.pages:,}",
                hint="split the document",
            )
