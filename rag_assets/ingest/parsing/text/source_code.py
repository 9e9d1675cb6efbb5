"""Source code and settings as text: the source itself is the text, with all lines in place.

A block starts with a line that is not indented and that follows a blank line. Usually this is a
definition with its comment, or a group of settings. The rule is the same for every language.
"""

from __future__ import annotations

from collections.abc import Iterator

from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.text.decoding import decoded_source
from rag_assets.ingest.parsing.text.lines import Line, split_lines

_CLOSING = ")]}"


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse a file of source code or settings; see registry.ParseFunction."""
    text, replaced = decoded_source(data, limits)
    notes = (f"{replaced:,} bytes that are not UTF-8 were read as Latin-1",) if replaced else ()
    return ParsedText(text=text, blocks=tuple(_blocks(text)), notes=notes)


def _blocks(text: str) -> Iterator[Block]:
    first: Line | None = None
    last: Line | None = None
    after_blank = False
    for line in split_lines(text):
        if not line.blank:
            if first is not None and last is not None and after_blank and _begins(line.text):
                yield Block("code", first.start, last.end)
                first = None
            first = first or line
            last = line
        after_blank = line.blank
    if first is not None and last is not None:
        yield Block("code", first.start, last.end)


def _begins(line: str) -> bool:
    return not line[0].isspace() and line[0] not in _CLOSING
