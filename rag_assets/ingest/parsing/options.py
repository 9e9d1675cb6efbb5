"""A tenant's options of parsing, except limits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal, Self

PdfEngine = Literal["liteparse", "docling"]

STRICT_VERSION = 2
"""Must be increased when the patterns of privacy/described.py find anything else or name it
differently."""
_SALT = b"rag-assets parser.passwords"


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """Options of parsing for all formats.

    Attributes:
        keep_headers_footers: whether to keep the lines that repeat on every page of a PDF.
        passwords: passwords that are tried on encrypted documents, in order.
        pdf: the parser of PDFs.
        ocr: whether to read scanned pages of PDFs, and pictures, by OCR.
        ocr_languages: languages of the texts, in Tesseract's abbreviations.
        ocr_data: folder of the languages' data; None for the installed folder.
        docling_models: folder of docling's models.
        strict_secrets: whether to treat every match of a few described patterns as a
            credential, too.
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
        given: dict[str, Any] = {f.name: record[f.name] for f in fields(cls) if f.name in record}
        for name, value in given.items():
            given[name] = tuple(value) if isinstance(value, list) else value
        return cls(**given)

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
            "passwords": _digest(self.passwords) if self.passwords else None,
        }


@lru_cache(maxsize=256)
def _digest(passwords: tuple[str, ...]) -> str:
    """Return a digest of the passwords; it is slow, so that keys do not help to guess them."""
    joined = b"\0".join(password.encode() for password in passwords)
    return hashlib.scrypt(joined, salt=_SALT, n=2**14, r=8, p=1, dklen=32).hex()
