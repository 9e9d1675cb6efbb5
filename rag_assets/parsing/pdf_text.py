"""Text as liteparse gives it, made plain."""

from __future__ import annotations

import re

# An asterisk of the page itself comes escaped, so that a bare one is emphasis, and goes.
_MARKUP = re.compile(r"\\([!-/:-@\[-`{-~])|\*{1,3}")
# What pdfium makes of hyphens at line ends, control characters, and marks nobody sees.
_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xad\u200b\u2060\ufeff\ufffe\uffff]")


def plain(markdown: str) -> str:
    """Take emphasis and escapes off a block's Markdown."""
    if "\\" not in markdown and "*" not in markdown:
        return markdown
    return _MARKUP.sub(lambda found: found[1] or "", markdown)


def clean(text: str) -> str:
    """Take out what no reader sees: control characters, soft hyphens, blank edges."""
    return _UNWANTED.sub("", text).strip()
