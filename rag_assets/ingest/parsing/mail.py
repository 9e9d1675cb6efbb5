"""EML: subject, people, date, body and attachments of a message.

Attachments are read by the parser of their format; unsupported attachments are listed by name.
Messages within the message are read as well, but not the attachments of these. Nothing is fetched
over the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message

from rag_assets.common.errors import DocumentEmpty, DocumentRejected
from rag_assets.ingest.parsing.blocks import (
    MAX_HEADING_LEVEL,
    Piece,
    assemble,
    clean,
    limit_pieces,
    shorten_heading,
)
from rag_assets.ingest.parsing.detection import detect
from rag_assets.ingest.parsing.html import WESTERN, decode_page, find_encoding, read_page
from rag_assets.ingest.parsing.media_types import EML, find_media_type
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.registry import get_parser
from rag_assets.ingest.parsing.text import find_paragraphs

_MAX_HEADER_CHARACTERS = 4_000
_MAX_SHOWN_CHARACTERS = 1_000
_MAX_PARTS = 1_000
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class MailPart:
    """A leaf of a message's tree of parts: body text, an attachment, or an attached message.

    The name of a part of the body is "".
    """

    message: Message
    name: str = ""
    is_message: bool = False

    @property
    def is_body(self) -> bool:
        """Return whether a mail program shows the part as the text of the message."""
        return not self.name and not self.is_message


def read_header(message: Message, name: str) -> str:
    """Return a header on one line, decoded and cut at a reasonable length; "" if missing."""
    value = str(message.get(name, ""))
    if not value.isascii() and (raw := _find_raw_header(message, name)) is not None:
        value = raw
    return decode_header_value(value)


def _find_raw_header(message: Message, name: str) -> str | None:
    """Return a header that contains bytes instead of encoded words, which are usually UTF-8."""
    for key, value in message.raw_items():
        if key.lower() == name.lower():
            data = str(value).encode("ascii", "surrogateescape")
            with suppress(UnicodeDecodeError):
                return data.decode()
            return data.decode(WESTERN)
    return None


def decode_header_value(value: str) -> str:
    """Return the decoded text of a header value; the value itself if it cannot be decoded."""
    value = " ".join(value[:_MAX_HEADER_CHARACTERS].split())
    with suppress(MessageError, LookupError, ValueError):  # on an error, the value stays unchanged
        value = str(make_header(decode_header(value)))
    # Lone surrogates and NUL cannot be stored.
    value = clean(" ".join(value.encode("utf-8", "replace").decode().split()))
    return value[:_MAX_SHOWN_CHARACTERS]


def list_parts(message: Message, limits: ParseLimits) -> list[MailPart]:
    """Return body and attachments; of alternative bodies, only one."""
    parts: list[MailPart] = []
    for part in _iter_parts(message, limits):
        if len(parts) == _MAX_PARTS:
            break
        parts.append(part)
    return parts


def read_content(message: Message) -> bytes:
    """Return the decoded bytes of a part that has no inner parts."""
    payload = message.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def decode_part(message: Message) -> str:
    """Return the text of a part, in its declared encoding.

    Without a known one, decode it as UTF-8, or else as Windows-1252.
    """
    data = read_content(message)
    if (encoding := find_encoding(get_charset(message) or "")) is not None:
        return data.decode(encoding, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(WESTERN, "replace")


def get_charset(message: Message) -> str | None:
    """Return the encoding that a part declares; None if it declares no valid encoding."""
    try:
        return message.get_content_charset()
    except (LookupError, UnicodeError, ValueError):
        return None


def _iter_parts(message: Message, limits: ParseLimits) -> Iterator[MailPart]:
    kind = message.get_content_type()
    inner = message.get_payload()
    if kind.startswith("message/") and isinstance(inner, list):
        yield from (
            MailPart(m, read_header(m, "Subject") or "message", is_message=True)
            for m in inner
            if isinstance(m, Message)
        )
    elif not isinstance(inner, list):
        yield MailPart(message, _name_attachment(message, kind))
    else:
        messages = [part for part in inner if isinstance(part, Message)]
        if kind == "multipart/alternative":
            messages = _choose_alternative(messages, limits)
        for part in messages:
            yield from _iter_parts(part, limits)


def _choose_alternative(alternatives: list[Message], limits: ParseLimits) -> list[Message]:
    """Return the part with plain text, unless it is blank or a page has the message's text.

    Otherwise return the part with the page, or else the last and most complete part.
    """
    for part in alternatives:
        if part.get_content_type() == "text/plain" and (text := decode_part(part)).strip():
            for other in reversed(alternatives):
                page = next((p for p in other.walk() if p.get_content_type() == "text/html"), None)
                if page is not None and _is_placeholder(text, page, limits):
                    return [other]
            return [part]
    return alternatives[-1:]


def _is_placeholder(text: str, page: Message, limits: ParseLimits) -> bool:
    """Return whether a text is not much longer than a page, and lacks most of the page's words.

    Such a text only says that the message is a page, or where to read it.
    """
    try:
        pieces = _read_page(page, limits)
    except DocumentRejected:
        return False
    words, page_words = (
        set(_WORD.findall(t.lower())) for t in (text, " ".join(piece.text for piece in pieces))
    )
    return 2 * len(words & page_words) < len(page_words) and len(words) < 2 * len(page_words)


def _read_page(part: Message, limits: ParseLimits) -> list[Piece]:
    has_charset = get_charset(part) is not None
    page = decode_part(part) if has_charset else decode_page(read_content(part), limits)
    return read_page(page)[0]


def _name_attachment(message: Message, kind: str) -> str:
    """Return the name of an attachment; "" for a part of the body."""
    name = decode_header_value(message.get_filename() or "")
    disposition = str(message.get("Content-Disposition", "")).strip().lower()
    if kind in {"text/plain", "text/html"} and not disposition.startswith("attachment"):
        return ""
    return name or kind


_SHOWN_HEADERS = ("From", "To", "Cc", "Date")
_MAX_ATTACHMENTS = 100
_ATTACHED_LEVEL = 2


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read a message; see registry.ParseFunction."""
    try:
        message = message_from_bytes(data)
        pieces = list(limit_pieces(_MailReader(options, limits).iter_pieces(message), limits))
    except RecursionError:
        raise DocumentRejected("the parts of the message are nested too deeply") from None
    if not pieces:
        raise DocumentEmpty("the message contains no text")
    joined, blocks = assemble(pieces)
    title = shorten_heading(read_header(message, "Subject")) or None
    return ParsedText(joined, blocks, title, has_lines=False)


class _MailReader:
    def __init__(self, options: ParseOptions, limits: ParseLimits) -> None:
        self._options, self._limits = options, limits
        self._attachments_left = _MAX_ATTACHMENTS

    def iter_pieces(self, message: Message, level: int = 1) -> Iterator[Piece]:
        """Yield subject, headers, body, and attachments or, below level 1, their names."""
        yield Piece("heading", read_header(message, "Subject"), level)
        headers = ((name, read_header(message, name)) for name in _SHOWN_HEADERS)
        yield Piece("paragraph", clean("\n".join(f"{n}: {value}" for n, value in headers if value)))
        parts = list_parts(message, self._limits)
        for part in parts:
            if part.is_body:
                yield from _lower_headings(self._read_body(part.message), level)
        yield from self._read_attachments(
            [p for p in parts if not p.is_body], is_outermost=level == 1
        )

    def _read_body(self, part: Message) -> list[Piece]:
        if part.get_content_type() == "text/html":
            return _read_page(part, self._limits)
        body = decode_part(part).replace("\0", "").replace("\r\n", "\n")
        return [Piece("paragraph", clean(body[b.start : b.end])) for b in find_paragraphs(body)]

    def _read_attachments(self, parts: list[MailPart], *, is_outermost: bool) -> Iterator[Piece]:
        unread_names: list[str] = []
        for part in parts:
            pieces = (
                list(self._read_attachment(part))
                if is_outermost and self._attachments_left > 0
                else []
            )
            if not pieces:
                unread_names.append(part.name)
                continue
            self._attachments_left -= 1
            yield Piece("heading", clean(f"Attachment: {part.name}"), _ATTACHED_LEVEL)
            yield from pieces
        if unread_names:
            yield Piece("paragraph", clean("Attachments not read: " + ", ".join(unread_names)))

    def _read_attachment(self, part: MailPart) -> Iterator[Piece]:
        """Yield the pieces of an attachment; none if it cannot be read."""
        if part.is_message:
            yield from self.iter_pieces(part.message, _ATTACHED_LEVEL + 1)
            return
        data = read_content(part.message)
        if part.message.get_content_maintype() == "text" and get_charset(part.message):
            data = decode_part(part.message).encode()
        try:
            kind = detect(data, find_media_type(part.name) or part.message.get_content_type())
            if kind == EML:
                yield from self.iter_pieces(message_from_bytes(data), _ATTACHED_LEVEL + 1)
                return
            function = get_parser(kind, self._options).load_function()
            parsed = function(data, kind, self._options, self._limits)
        except DocumentRejected:
            return
        yield from _lower_headings(_iter_pieces(parsed), _ATTACHED_LEVEL)


def _iter_pieces(parsed: ParsedText) -> Iterator[Piece]:
    for block in parsed.blocks:
        if block.kind != "front_matter":
            text_of_block = parsed.text[block.start : block.end]
            yield Piece(
                block.kind, text_of_block, block.level,
                page=block.page, slide=block.slide, sheet=block.sheet, row=block.row,
            )  # fmt: skip


def _lower_headings(pieces: Iterator[Piece] | list[Piece], by: int) -> Iterator[Piece]:
    """Yield pieces with `by` added to the level of each heading, up to MAX_HEADING_LEVEL."""
    for piece in pieces:
        level = min(piece.level + by, MAX_HEADING_LEVEL) if piece.kind == "heading" else 0
        yield replace(piece, level=level)
