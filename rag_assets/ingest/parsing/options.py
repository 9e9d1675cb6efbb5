"""A tenant's parsing options, and the resource limits of one document."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal, Self

from rag_assets.common.errors import DocumentTooLarge


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """The resources that one document may use while it is parsed, scanned and masked.

    Attributes:
        memory_bytes: maximum address space beyond an idle worker's.
        blocks: maximum number of paragraphs, rows and other blocks; later stages hold all
            blocks of a document in memory without any other limit.
        pages: maximum number of pages, if the format has them; slides and sheets count as
            pages.
        ocr_seconds: maximum time for OCR of all pages; pages that exceed it are left out.
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
        """Raise DocumentTooLarge if the document's text has too many characters."""
        if count > self.characters:
            raise DocumentTooLarge(
                f"the document's text is longer than the limit of {self.characters:,} characters",
                hint="split the document",
            )

    def check_blocks(self, count: int) -> None:
        """Raise DocumentTooLarge if the document has too many blocks."""
        _require_count(count, self.blocks, "paragraphs and rows")

    def check_pages(self, count: int) -> None:
        """Raise DocumentTooLarge if the document has too many pages."""
        _require_count(count, self.pages, "pages")


def _require_count(count: int, maximum: int, noun: str) -> None:
    if count > maximum:
        raise DocumentTooLarge(
            f"the document has {count:,} {noun}, over the limit of {maximum:,}",
            hint="split the document",
        )


PdfEngine = Literal["liteparse", "docling"]

STRICT_VERSION = 2
"""Must be increased when the patterns of privacy/described.py find anything else or name it
differently."""
_SALT = b"rag-assets parser.passwords"


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """A tenant's parsing options, for all formats.

    Attributes:
        keep_headers_footers: whether to keep the lines that repeat on every page of a PDF.
        ocr_data: folder of the languages' data; None for the installed folder.
        strict_secrets: whether every match of some patterns in privacy.described is also a
            credential.
    """

    keep_headers_footers: bool = False
    passwords: tuple[str, ...] = field(default=(), repr=False)
    pdf: PdfEngine = "liteparse"
    ocr: bool = False
    ocr_languages: tuple[str, ...] = ("eng",)
    ocr_data: str | None = None
    docling_models: str | None = None
    strict_secrets: bool = False

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Build options from the output of `dataclasses.asdict`; lists may replace tuples."""
        values: dict[str, Any] = {f.name: record[f.name] for f in fields(cls) if f.name in record}
        for name, value in values.items():
            values[name] = tuple(value) if isinstance(value, list) else value
        return cls(**values)

    def identity(self) -> dict[str, Any]:
        """Return the options that may change a parser's output; every parse key hashes them."""
        ocr = (self.ocr_languages, self.ocr_data) if self.ocr else None
        # Include it only if it is set, so that the keys of all other documents do not change.
        strict = {"strict_secrets": STRICT_VERSION} if self.strict_secrets else {}
        return {
            **strict,
            "keep_headers_footers": self.keep_headers_footers,
            "pdf": (self.pdf, self.docling_models) if self.pdf == "docling" else self.pdf,
            "ocr": ocr,
            "passwords": _hash_passwords(self.passwords) if self.passwords else None,
        }


@lru_cache(maxsize=256)
def _hash_passwords(passwords: tuple[str, ...]) -> str:
    """Return a hash of the passwords; it is slow, so that keys do not help to guess passwords."""
    joined = b"\0".join(password.encode() for password in passwords)
    return hashlib.scrypt(joined, salt=_SALT, n=2**14, r=8, p=1, dklen=32).hex()
