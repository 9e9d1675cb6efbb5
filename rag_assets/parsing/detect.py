"""What a document is, by its content first and its name second, and under which key it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rag_assets.errors import DocumentRejected
from rag_assets.hashing import key_of
from rag_assets.parsing.model import ParsedText
from rag_assets.secrets.scanner import rules_version

_PDF_HEADER_WITHIN = 1024
TEXT = "text/markdown"
PDF = "application/pdf"


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser and what identifies its output."""

    id: str
    version: str


PARSERS: Mapping[str, Parser] = {TEXT: Parser("markdown", "1"), PDF: Parser("liteparse", "1")}


def parsers_version() -> str:
    """Changes whenever any parser or the secret rules change."""
    return key_of("parsers", {k: [p.id, p.version] for k, p in PARSERS.items()}, rules_version())


def parse_key(content_sha256: str, media_type: str | None) -> str:
    """Where the parsed text of this content belongs.

    Args:
        content_sha256: of the bytes.
        media_type: what the source says it is; with the content it determines the parser.
    """
    return key_of("parse", content_sha256, media_type, parsers_version())


def media_type_for(media_type: str | None) -> str:
    """The type that a document is treated as by the stages after parsing."""
    return PDF if media_type == PDF else TEXT


def parse(data: bytes) -> ParsedText:
    """Parse a document by what its bytes are.

    Raises:
        DocumentRejected: it is empty, not text, or its parser rejects it.
    """
    if not data.strip():
        raise DocumentRejected("it is empty")
    return _parser_for(data)(data)


def _parser_for(data: bytes) -> Callable[[bytes], ParsedText]:
    if b"%PDF-" in data[:_PDF_HEADER_WITHIN]:
        from rag_assets.parsing.pdf import parse_pdf

        return parse_pdf
    return _parse_text


def _parse_text(data: bytes) -> ParsedText:
    from rag_assets.parsing.markdown import parse_markdown

    zero = data.find(b"\0")
    if zero >= 0:
        raise DocumentRejected(f"it is not text: a NUL byte at offset {zero}")
    try:
        text = data.decode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8")
    except UnicodeDecodeError as error:
        raise DocumentRejected(f"it is not UTF-8 text: invalid byte at {error.start}") from None
    if not text.strip():
        raise DocumentRejected("it is empty")
    return parse_markdown(text)
