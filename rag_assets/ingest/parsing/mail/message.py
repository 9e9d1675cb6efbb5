"""EML: subject, people, date, body and attachments of a message.

Attachments are read by the parser of their format; unsupported attachments are listed by name.
Messages within the message are read as well, but not the attachments of these. Nothing is fetched
over the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from email.message import Message

from rag_assets.common.errors import DocumentEmpty, DocumentRejected
from rag_assets.ingest.parsing.detection.detect import detect
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.mail.parts import Part, charset, content, header, parts_of, text
from rag_assets.ingest.parsing.media_types import EML, media_type_of
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.outline import heading_name
from rag_assets.ingest.parsing.pieces import DEEPEST_LEVEL, Piece, assembled, bounded, clean
from rag_assets.ingest.parsing.registry import parser_for
from rag_assets.ingest.parsing.text.plain import paragraphs
from rag_assets.ingest.parsing.web.page import read_page
from rag_assets.ingest.parsing.web.tree import page_text

_SHOWN = ("From", "To", "Cc", "Date")
_MOST_READ = 100
_ATTACHED_LEVEL = 2


def warm_up() -> None:
    """Load the HTML parser."""
    from lxml import etree  # noqa: F401


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read a message; see registry.ParseFunction.

    Raises:
        DocumentRejected: the message is too long, nested too deeply, or has no text.
    """
    try:
        message = message_from_bytes(data)
        pieces = list(bounded(_Reader(options, limits).message(message), limits))
    except RecursionError:
        raise DocumentRejected("the parts of the message are nested too deeply") from None
    if not pieces:
        raise DocumentEmpty("the message contains no text")
    joined, blocks = assembled(pieces)
    title = heading_name(header(message, "Subject")) or None
    return ParsedText(joined, blocks, title, has_lines=False)


class _Reader:
    def __init__(self, options: ParseOptions, limits: ParseLimits) -> None:
        self._options, self._limits = options, limits
        self._left = _MOST_READ

    def message(self, message: Message, level: int = 1) -> Iterator[Piece]:
        """Yield the pieces of a message.

        Args:
            message: as the email package reads it.
            level: heading level of its subject; attachments are read only at the first level.
        """
        yield Piece("heading", header(message, "Subject"), level)
        shown = ((name, header(message, name)) for name in _SHOWN)
        yield Piece("paragraph", clean("\n".join(f"{n}: {value}" for n, value in shown if value)))
        parts = parts_of(message)
        for part in parts:
            if part.is_body:
                yield from _lower_headings(self._read_body(part.message), level)
        yield from self._read_attachments([p for p in parts if not p.is_body], whole=level == 1)

    def _read_body(self, part: Message) -> list[Piece]:
        if part.get_content_type() == "text/html":
            known = text(part) if charset(part) else page_text(content(part), self._limits)
            return read_page(known)[0]
        body = text(part).replace("\0", "").replace("\r\n", "\n")
        return [Piece("paragraph", clean(body[b.start : b.end])) for b in paragraphs(body)]

    def _read_attachments(self, parts: list[Part], *, whole: bool) -> Iterator[Piece]:
        named: list[str] = []
        for part in parts:
            pieces = list(self._read_attachment(part)) if whole and self._left > 0 else []
            if not pieces:
                named.append(part.name)
                continue
            self._left -= 1
            yield Piece("heading", clean(f"Attachment: {part.name}"), _ATTACHED_LEVEL)
            yield from pieces
        if named:
            yield Piece("paragraph", clean("Attachments not read: " + ", ".join(named)))

    def _read_attachment(self, part: Part) -> Iterator[Piece]:
        """Yield the pieces of an attachment; none if it cannot be read."""
        if part.is_message:
            yield from self.message(part.message, _ATTACHED_LEVEL + 1)
            return
        data = content(part.message)
        try:
            kind = detect(data, media_type_of(part.name) or part.message.get_content_type())
            if kind == EML:
                yield from self.message(message_from_bytes(data), _ATTACHED_LEVEL + 1)
                return
            function = parser_for(kind, self._options).function()
            parsed = function(data, kind, self._options, self._limits)
        except DocumentRejected:
            return
        yield from _lower_headings(_pieces_of(parsed), _ATTACHED_LEVEL)


def _pieces_of(parsed: ParsedText) -> Iterator[Piece]:
    for block in parsed.blocks:
        if block.kind != "front_matter":
            text_of_block = parsed.text[block.start : block.end]
            yield Piece(
                block.kind, text_of_block, block.level,
                page=block.page, slide=block.slide, sheet=block.sheet, row=block.row,
            )  # fmt: skip


def _lower_headings(pieces: Iterator[Piece] | list[Piece], by: int) -> Iterator[Piece]:
    """Yield pieces with their headings lowered, so that they are below a heading of this level."""
    for piece in pieces:
        level = min(piece.level + by, DEEPEST_LEVEL) if piece.kind == "heading" else 0
        yield replace(piece, level=level)
