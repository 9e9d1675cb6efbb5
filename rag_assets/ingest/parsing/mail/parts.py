"""The parts of a message: its decoded headers, its body, its attachments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message

from rag_assets.ingest.parsing.pieces import clean

_LONGEST_HEADER = 4_000
_LONGEST_SHOWN = 1_000
_MOST_PARTS = 1_000


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message without inner parts.

    Attributes:
        message: the part; for a message within the message, that message.
        name: file name of an attachment; "" for a part of the body.
        is_message: whether the part is a whole message.
    """

    message: Message
    name: str = ""
    is_message: bool = False

    @property
    def is_body(self) -> bool:
        """Return whether a mail program shows the part as the text of the message."""
        return not self.name and not self.is_message


def header(message: Message, name: str) -> str:
    """Return a header on one line, decoded and cut at a reasonable length; "" if missing."""
    return readable(str(message.get(name, "")))


def readable(value: str) -> str:
    """Return the text of a header value, whatever its encoding."""
    value = " ".join(value[:_LONGEST_HEADER].split())
    with suppress(MessageError, LookupError, ValueError):  # on an error, the value stays unchanged
        value = str(make_header(decode_header(value)))
    # Lone surrogates and NUL cannot be stored.
    value = clean(" ".join(value.encode("utf-8", "replace").decode().split()))
    return value[:_LONGEST_SHOWN]


def parts_of(message: Message) -> list[Part]:
    """Return body and attachments in order; of alternatives, the plain text if any, else HTML."""
    found: list[Part] = []
    for part in _parts(message):
        if len(found) == _MOST_PARTS:
            break
        found.append(part)
    return found


def content(message: Message) -> bytes:
    """Return the bytes of a part without inner parts."""
    payload = message.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def text(message: Message) -> str:
    """Return the text of a part, in its declared encoding; UTF-8 if it declares no encoding."""
    data = content(message)
    try:
        return data.decode(charset(message) or "utf-8", "replace")
    except LookupError:
        return data.decode("utf-8", "replace")


def charset(message: Message) -> str | None:
    """Return the encoding that a part declares, if any."""
    try:
        return message.get_content_charset()
    except (LookupError, UnicodeError, ValueError):
        return None


def _parts(message: Message) -> Iterator[Part]:
    kind = message.get_content_type()
    inner = message.get_payload()
    if kind.startswith("message/") and isinstance(inner, list):
        yield from (
            Part(m, header(m, "Subject") or "message", is_message=True)
            for m in inner
            if isinstance(m, Message)
        )
    elif not isinstance(inner, list):
        yield Part(message, _name(message, kind))
    else:
        held = [part for part in inner if isinstance(part, Message)]
        for part in _chosen(held) if kind == "multipart/alternative" else held:
            yield from _parts(part)


def _chosen(alternatives: list[Message]) -> list[Message]:
    """Return plain text if present, else the last alternative, which is the most complete."""
    for part in alternatives:
        if part.get_content_type() == "text/plain" and text(part).strip():
            return [part]
    return alternatives[-1:]


def _name(message: Message, kind: str) -> str:
    """Return the name of an attachment; "" for a part of the body."""
    name = readable(message.get_filename() or "")
    disposition = str(message.get("Content-Disposition", "")).strip().lower()
    if kind in {"text/plain", "text/html"} and not disposition.startswith("attachment"):
        return ""
    return name or kind
