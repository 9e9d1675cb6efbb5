"""Resource limits of one document."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.common.errors import DocumentTooLarge


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Resources that one document may use while it is parsed, scanned and masked.

    Attributes:
        seconds: time, and processor time.
        memory_bytes: address space, in addition to the space of an idle worker.
        characters: size of the parsed text.
        blocks: paragraphs, rows and the like; later stages hold all of a document's blocks in
            memory without any other bound.
        pages: number of pages, if the format has them; slides and sheets count as pages.
        ocr_pages: number of pages read by OCR; each page adds to the time.
        ocr_seconds: time for OCR of all pages; pages beyond it are left out.
        expanded_bytes: size of a compressed document after it is unpacked.
        cells: cells of a workbook, including empty cells between filled cells.
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
                f"its text is longer than the limit of {self.characters:,} characters",
                hint="split the document",
            )

    def check_blocks(self, count: int) -> None:
        """Refuse a text of too many blocks.

        Raises:
            DocumentRejected: it has too many blocks; the message names the limit.
        """
        if count > self.blocks:
            raise DocumentTooLarge(
                f"it has {count:,} paragraphs and rows, over the limit of {self.blocks:,}",
                hint="split the document",
            )

    def check_pages(self, count: int) -> None:
        """Refuse a document with too many pages.

        Raises:
            DocumentRejected: it has too many pages; the message names the limit.
        """
        if count > self.pages:
            raise DocumentTooLarge(
                f"it has {count:,} pages, over the limit of {self.pages:,}",
                hint="split the document",
            )
