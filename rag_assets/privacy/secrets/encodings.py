"""Encoded parts of a text, decoded once: percent signs, escapes, base64, hexadecimal digits."""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote_to_bytes

from rag_assets.privacy.secrets.text_views import View, ViewBuilder, lines_of

_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_WORD_BEFORE = re.compile(r"[^\s\"'<>`]*\Z")
_WORD_AFTER = re.compile(r"[^\s\"'<>`]*")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}={0,2}(?![A-Za-z0-9+/_-])")
_HEX = re.compile(r"(?<![A-Za-z0-9])(?:0x)?(?:[0-9a-fA-F]{2}:?){10,}(?![A-Za-z0-9])")
_ESCAPES = re.compile(
    r"&(?:#\d{2,6}|#[xX][0-9A-Fa-f]{2,6}|quot|apos|lt|gt|amp|nbsp|lbrace|rbrace|equals|colon);"
    r"|\\u00[0-9A-Fa-f]{2}|\\x[0-9A-Fa-f]{2}|\\[\"'nrt/]"
)
_ESCAPED_CHARACTERS = {"\\n": "\n", "\\r": "\n", "\\t": "\t", "\\/": "/", '\\"': '"', "\\'": "'"}
_MOST_ENCODED = 65_536
_HEAD = 8
_SEEN_FROM, _SEEN_TO = 0x09, 0x7E
_READABLE = 0.95
_REACH = 240


def decoded(text: str, places: Sequence[tuple[int, int]]) -> View | None:
    """Decode those encoded parts of a text that decode to readable text; None if there are none."""
    builder = ViewBuilder()
    for word, at in _words_with(text, _PERCENT):
        _unquote(builder, word, at)
    for start, end in lines_of(text, _ESCAPES.finditer(text)):
        _unescape(builder, text, start, end)
    for first, last in places:
        for pattern, decode in ((_BASE64, _from_base64), (_HEX, _from_hex)):
            for found in pattern.finditer(text, first, last):
                if len(found[0]) <= _MOST_ENCODED and (plain := decode(found[0])):
                    builder.replace(plain, *found.span())
                    builder.replace("\n\n", *found.span())
    view = builder.view()
    return view if view.text else None


def _unquote(builder: ViewBuilder, word: str, offset: int) -> None:
    at = 0
    for found in re.finditer(r"(?:%[0-9A-Fa-f]{2})+", word):
        builder.copy(word[at : found.start()], offset + at)
        raw = unquote_to_bytes(found[0])
        for n, byte in enumerate(raw):
            place = offset + found.start() + 3 * n
            builder.replace(chr(byte), place, place + 3)
        at = found.end()
    builder.copy(word[at:], offset + at)
    builder.replace("\n\n", offset, offset)


def _unescape(builder: ViewBuilder, text: str, start: int, end: int) -> None:
    at = start
    for found in _ESCAPES.finditer(text, start, end):
        builder.copy(text[at : found.start()], at)
        builder.replace(_character(found[0]), *found.span())
        at = found.end()
    builder.copy(text[at:end], at)
    builder.replace("\n\n", end, end)


def _character(escape: str) -> str:
    if escape[0] == "&":
        return html.unescape(escape).replace("\xa0", " ")
    return _ESCAPED_CHARACTERS.get(escape) or chr(int(escape[2:], 16))


def _from_base64(word: str) -> str | None:
    plain = word.rstrip("=").replace("-", "+").replace("_", "/")
    if not all(_SEEN_FROM <= byte <= _SEEN_TO for byte in base64.b64decode(plain[:_HEAD])):
        return None
    try:
        return _readable(base64.b64decode(plain + "=" * (-len(plain) % 4)))
    except (binascii.Error, ValueError):
        return None


def _from_hex(word: str) -> str | None:
    try:
        return _readable(bytes.fromhex(word.removeprefix("0x").replace(":", " ")))
    except ValueError:
        return None


def _readable(raw: bytes) -> str | None:
    """Return the text of bytes; None if they are not readable text."""
    try:
        plain = raw.decode()
    except UnicodeDecodeError:
        return None
    seen = sum(c.isprintable() or c in "\r\n\t" for c in plain)
    return plain if plain and seen >= _READABLE * len(plain) else None


def _words_with(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """Find the words that contain a match of a pattern, and their start offsets."""
    done = 0
    for found in pattern.finditer(text):
        if found.start() < done:
            continue
        before = _WORD_BEFORE.search(text, max(done, found.start() - _REACH), found.start())
        start = before.start() if before else found.start()
        after = _WORD_AFTER.match(text, found.start(), found.start() + _MOST_ENCODED)
        done = max(found.end(), after.end() if after else 0)
        yield text[start:done], start
