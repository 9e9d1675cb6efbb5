"""What a tenant may choose about parsing, limits apart."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rag_assets.hashing import key_of


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """How documents are parsed, whatever their format.

    Attributes:
        keep_headers_footers: keep the lines that repeat on every page of a PDF.
        passwords: tried on encrypted documents, in order.
    """

    keep_headers_footers: bool = False
    passwords: tuple[str, ...] = field(default=(), repr=False)

    def identity(self) -> dict[str, Any]:
        """What of it may change a parser's output; every parse key hashes it."""
        return asdict(self) | {"passwords": key_of("passwords", list(self.passwords))}
