"""Detect text formats by the start of a document."""

from __future__ import annotations

import re

from rag_assets.ingest.parsing.media_types import MARKDOWN, PLAIN
from rag_assets.ingest.parsing.text.decoding import UTF16_MARKS
from rag_assets.ingest.parsing.text.lines import (
    atx_heading,
    fence_opening,
    is_table_rule,
    split_lines,
)

_BEGINNING = 64 * 1024
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head)[\s>]", re.IGNORECASE)
_MARKUP_BEFORE = ((b"<!--", b"-->"), (b"<?", b"?>"))
_MOST_MARKUP_BEFORE = 20
_HEADER = re.compile(rb"([A-Za-z][A-Za-z0-9-]{0,60}):|[ \t]")
_MAIL_NEEDS = (
    {b"from"},
    {b"date", b"subject", b"to"},
    # Only mail programs write these headers; a memo in a text file may have the others.
    {b"message-id", b"mime-version", b"received", b"return-path", b"delivered-to"},
)
_MARKDOWN_LINES = 500
_FRONT_MATTER = "---"
_LINK = re.compile(r"\]\((?:https?://|\.{0,2}/|#)")


def looks_like_html(data: bytes) -> bool:
    """Return whether a document starts like HTML, after comments and XML declarations."""
    text = _ascii(data).lstrip()
    for _ in range(_MOST_MARKUP_BEFORE):
        ends = next((end for begin, end in _MARKUP_BEFORE if text.startswith(begin)), None)
        if ends is None:
            break
        text = text.partition(ends)[2].lstrip()
    return _HTML.match(text) is not None


def looks_like_mail(data: bytes) -> bool:
    """Return whether a document starts with the headers that a mail program writes."""
    names = set()
    for line in _ascii(data).lstrip().splitlines():
        header = _HEADER.match(line)
        if header is None:
            break
        names.add((header[1] or b"").lower())
    return all(names & wanted for wanted in _MAIL_NEEDS)


def guessed_type(data: bytes) -> str:
    """Return Markdown if one of the first lines has markup of Markdown alone, else plain text."""
    encoding = "utf-16" if data.startswith(UTF16_MARKS) else "utf-8-sig"
    text = data[:_BEGINNING].decode(encoding, "replace")
    for number, line in zip(range(_MARKDOWN_LINES), split_lines(text), strict=False):
        if (
            (number == 0 and line.text.rstrip() == _FRONT_MATTER)
            or ((heading := atx_heading(line.text)) is not None and heading[1])
            or fence_opening(line.text)
            or is_table_rule(line.text)
            or _LINK.search(line.text)
        ):
            return MARKDOWN
    return PLAIN


def _ascii(data: bytes) -> bytes:
    """Return the start of a document with each ASCII character as one byte."""
    beginning = data[:_BEGINNING].removeprefix(b"\xef\xbb\xbf")
    if beginning.startswith(UTF16_MARKS):
        return beginning[2:].replace(b"\0", b"")
    return beginning
