"""MDX: Markdown with imported modules, and with components among paragraphs.

Imports, exports, comments and lines that contain only tags are for programs. The text between the
tags is Markdown. MDX has no indented code: indented text is inside a component.
"""

from __future__ import annotations

import re

from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.text.decoding import decoded
from rag_assets.ingest.parsing.text.lines import Line, fence_opening, is_indented
from rag_assets.ingest.parsing.text.markdown import MarkdownParser

_MODULE = re.compile(
    r"import[ \t]*(?:[\"'{*]|\w+[ \t]*(?:,|from\b))"
    r"|export[ \t]*(?:[{*]|(?:default|const|let|var|function|async|class|type|interface)\b)"
)
_COMMENT = ("{/*", "*/}")
_TAG = re.compile(r"<[^<>]*>")
_TAG_BEGINS = re.compile(r"[ \t]*</?[A-Za-z>]")
_FOR_READERS = re.compile(r"\b(?:title|label|summary|description|alt|caption|heading)=[\"'{]")
# A construct that is not closed within this many lines ends at the next blank line, or at once.
_LONGEST_MODULE = 200
_LONGEST_TAG = 50


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse an MDX file; see registry.ParseFunction."""
    return _MdxParser(decoded(data, limits)).parsed()


class _MdxParser(MarkdownParser):
    _unclosed = False

    def _next(self, line: Line) -> Block:
        first = self._at
        if _MODULE.match(line.text):
            self._at = self._end_of_module()
        elif line.text.lstrip().startswith(_COMMENT[0]):
            self._skip_comment(_COMMENT)
        elif end := self._end_of_tags():
            self._at = end
            if any(_FOR_READERS.search(tag.text) for tag in self._lines[first:end]):
                return self._block("paragraph", first)
        elif is_indented(line.text) and not fence_opening(line.text.lstrip()):
            return self._paragraph()
        else:
            return super()._next(line)
        return self._block("front_matter", first)

    def _interrupts(self, line: Line) -> bool:
        return super()._interrupts(line) or _is_tags(line.text)

    def _end_of_module(self) -> int:
        """Return the line after a module's statement: a blank line while no bracket is open."""
        depth = 0
        nearest = 0
        lines = self._lines
        end = min(self._at + _LONGEST_MODULE, len(lines))
        for at in range(self._at, end):
            if lines[at].blank:
                if depth <= 0 or self._unclosed:
                    return at
                nearest = nearest or at
            depth += sum(map(lines[at].text.count, "([{")) - sum(map(lines[at].text.count, ")]}"))
        # Search only once: with many unclosed modules, searching each time would take long.
        self._unclosed = True
        return nearest or end

    def _end_of_tags(self) -> int:
        """Return the line after a run of tags that starts here; 0 if no run starts here."""
        at = self._at
        while at < len(self._lines) and (end := self._end_of_tag(at)):
            at = end
        return at if at > self._at else 0

    def _end_of_tag(self, at: int) -> int:
        """Return the line after the complete tags that start on a line; 0 if none start there."""
        line = self._lines[at].text
        if _is_tags(line):
            return at + 1
        if _TAG_BEGINS.match(line) is None or ">" in line:
            return 0
        for later in range(at + 1, min(at + _LONGEST_TAG, len(self._lines))):
            text = self._lines[later].text
            if not text.strip() or "<" in text:
                return 0
            if text.rstrip().endswith(">") and not text.rstrip().endswith("=>"):
                return later + 1
        return 0


def _is_tags(line: str) -> bool:
    """Return whether a line contains only tags."""
    return _TAG_BEGINS.match(line) is not None and not _TAG.sub("", line).strip()
