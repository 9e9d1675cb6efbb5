"""Converts liteparse's Markdown to plain text."""

from __future__ import annotations

import re

# An asterisk of the page itself comes escaped, so that a bare one is emphasis, and goes.
_MARKUP = re.compile(r"\\([!-/:-@\[-`{-~])|\*{1,3}")


def plain(markdown: str) -> str:
    """Take emphasis and escapes off a block's Markdown."""
    if "\\" not in markdown and "*" not in markdown:
        return markdown
    return _MARKUP.sub(lambda found: found[1] or "", markdown)
