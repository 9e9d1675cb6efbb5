"""Resource limits of one document."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.common.errors import DocumentTooLarge


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """What one document may use while it is parsed, scanned and masked.

    Attributes:
        seconds: of time, and of processor time.
        memory_bytes: of address space, beyond what an idle worker has.
        characters: of parsed text.
        blocks: paragraphs, rows and the like; all of a document's are in memory further on, where
            nothing bounds it.
        pages: where the format has them; slides and sheets count as well.
        ocr_pages: that are read by OCR; each adds to the time.
        ocr_seconds: of OCR of all pages; those that are beyond it are left out.
        expanded_bytes: what may come out of a compressed document.
        cells: of a workbook, empty ones between filled ones included.
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
            DocumentRejected: with the limit that was passed.
        """
        if count > self.characters:
            raise DocumentTooLarge(
                f"its text is longer than the limit of {self.characters:,} characters",
                hint="split the document",
            )

    def check_blocks(self, count: int) -> None:
        """Refuse a text of too many parts.

        Raises:
            DocumentRejected: with the limit that was passed.
        """
        if count > self.blocks:
            raise DocumentTooLarge(
                f"it has {count:,} paragraphs and rows, over the limit of {self.blocks:,}",
                hint="split the document",
            )

    def check_pages(self, count: int) -> None:
        """Refuse a document with too many pages.

        Raises:
            DocumentRejected: with the limit that was passed.
        """
        if count > self.pages:
            raise DocumentTooLarge(
                f"it has {count:,} pages, over the limit of {self.pages:,}",
                hint="split the document",
            )
