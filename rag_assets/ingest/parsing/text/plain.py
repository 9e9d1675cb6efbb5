"""Plain text: the source itself is the text; blank lines separate paragraphs.

Headings are not guessed: a line that is short, numbered or in capitals is just as often a list item
or a line of an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.text.decoding import decoded
from rag_assets.ingest.parsing.text.lines import split_lines


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse a plain text; see registry.ParseFunction."""
    text = decoded(data, limits)
    return ParsedText(text=text, blocks=tuple(paragraphs(text)))


def paragraphs(text: str) -> Iterator[Block]:
    """Yield the runs of lines between blank lines."""
    for blank, lines in groupby(split_lines(text), key=lambda line: line.blank):
        if not blank:
            first, *others = lines
            yield Block("paragraph", first.start, (others or [first])[-1].end)
