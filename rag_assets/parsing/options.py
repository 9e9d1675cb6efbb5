"""What a tenant may choose about parsing, limits apart."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """How documents are parsed, whatever their format.

    Attributes:
        keep_headers_footers: keep the lines that repeat on every page of a PDF.
    """

    keep_headers_footers: bool = False

    def identity(self) -> dict[str, Any]:
        """What of it may change a parser's output; every parse key hashes it."""
        return asdict(self)
