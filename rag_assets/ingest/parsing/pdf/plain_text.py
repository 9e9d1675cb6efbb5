"""Convert liteparse's Markdown to plain text."""

from __future__ import annotations

import re

# Asterisks of the page itself are escaped, so an unescaped asterisk marks emphasis and is removed.
_MARKUP = re.compile(r"\\([!-/:-@\[-`{-~])|\*{1,3}")


def plain(markdown: str) -> str:
    """Remove emphasis and escapes from a block's Markdown."""
    if "\\" not in markdown and "*" not in markdown:
        return markdown
    return _MARKUP.sub(lambda found: found[1] or "", markdown)
