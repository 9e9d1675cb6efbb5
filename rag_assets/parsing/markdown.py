"""Markdown: the source itself is the text, so that every offset is an offset into the source.

Blocks follow CommonMark's block structure as far as headings, fences, lists and tables need it;
inline markup is left as it is. One pass over the lines, so the time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rag_assets.parsing.model import Block, BlockKind, ParsedText
from rag_assets.parsing.outline import Outline

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?")
_CLOSING = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_LIST = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_INDENTED = re.compile(r"(?: {4}|\t)")
_TITLE = re.compile(r"title[ \t]*:[ \t]*(.*)")
_LONGEST_LINE = 10_000
"""A longer line is a paragraph: no pattern is tried on it."""


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    """Without its line break."""


def parse_markdown(text: str) -> ParsedText:
    """Find the blocks and the title of a Markdown document."""
    parser = _Parser(list(_lines(text)))
    blocks = tuple(parser.blocks())
    return ParsedText(text=text, blocks=blocks, title=parser.title(blocks, text))


class _Parser:
    def __init__(self, lines: list[_Line]) -> None:
        self._lines = lines
        self._outline = Outline()
        self._at = 0
        self._front_title: str | None = None

    def blocks(self) -> Iterator[Block]:
        front = self._front_matter()
        if front is not None:
            yield front
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.text.strip():
                self._at += 1
            elif heading := self._atx(line):
                self._at += 1
                yield heading
            elif _match(_FENCE, line.text):
                yield self._fence()
            elif _match(_INDENTED, line.text):
                yield self._run("code", self._indented_goes_on)
            else:
                yield self._text_block()

    def title(self, blocks: tuple[Block, ...], text: str) -> str | None:
        """The title in the front matter, else the first heading of the first level, else any."""
        if self._front_title:
            return self._front_title
        headings = [block for block in blocks if block.kind == "heading"]
        first = next((b for b in headings if b.level == 1), headings[0] if headings else None)
        return first.heading_path[-1] or None if first else None

    def _front_matter(self) -> Block | None:
        if not self._lines or self._lines[0].text.lstrip("\ufeff").rstrip() != "---":
            return None
        for number, line in enumerate(self._lines[1:], start=1):
            if line.text.rstrip() in {"---", "..."}:
                self._at = number + 1
                return Block("front_matter", self._lines[0].start, line.end)
            if self._front_title is None and (found := _match(_TITLE, line.text)):
                self._front_title = found[1].strip().strip("'\"") or None
        self._front_title = None
        return None

    def _atx(self, line: _Line) -> Block | None:
        found = _match(_ATX, line.text)
        if not found or found.end() < len(line.text):
            return None
        text = _CLOSING.sub("", found[2] or "").strip()
        return self._heading(line.start, line.end, len(found[1]), text)

    def _heading(self, start: int, end: int, level: int, text: str) -> Block:
        return Block("heading", start, end, self._outline.enter(level, text), level)

    def _fence(self) -> Block:
        opening = _match(_FENCE, self._lines[self._at].text)
        mark = opening[1] if opening else "```"
        first = self._at
        self._at += 1
        while self._at < len(self._lines):
            closing = _match(_FENCE, self._lines[self._at].text)
            self._at += 1
            if closing and closing[1].startswith(mark) and not closing[2].strip():
                break
        return self._block("code", first)

    def _text_block(self) -> Block:
        line = self._lines[self._at]
        if _match(_LIST, line.text):
            return self._run("list", self._list_goes_on)
        following = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else None
        if following and "|" in line.text and _full(_TABLE_RULE, following.text):
            return self._run("table", lambda line: bool(line.text.strip()))
        return self._paragraph()

    def _paragraph(self) -> Block:
        first = self._at
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if underline := _full(_SETEXT, line.text):
                self._at += 1
                words = " ".join(x.text.strip() for x in self._lines[first : self._at - 1])
                level = 1 if underline[1][0] == "=" else 2
                return self._heading(self._lines[first].start, line.end, level, words)
            if not line.text.strip() or self._interrupts(line):
                break
            self._at += 1
        return self._block("paragraph", first)

    def _interrupts(self, line: _Line) -> bool:
        atx = _match(_ATX, line.text)
        return bool(
            (atx and atx.end() == len(line.text))
            or _match(_FENCE, line.text)
            or _match(_LIST, line.text)
        )

    def _list_goes_on(self, line: _Line) -> bool:
        if not line.text.strip():
            following = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else None
            return following is not None and bool(
                _match(_LIST, following.text) or following.text.startswith(("  ", "\t"))
            )
        return not _full(_ATX, line.text)

    def _indented_goes_on(self, line: _Line) -> bool:
        return bool(_match(_INDENTED, line.text))

    def _run(self, kind: BlockKind, goes_on: object) -> Block:
        first = self._at
        self._at += 1
        while self._at < len(self._lines) and goes_on(self._lines[self._at]):  # type: ignore[operator]
            self._at += 1
        return self._block(kind, first)

    def _block(self, kind: BlockKind, first: int) -> Block:
        last = self._lines[self._at - 1]
        return Block(kind, self._lines[first].start, last.end, self._outline.path)


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    while start < len(text):
        feed = text.find("\n", start)
        end = len(text) if feed < 0 else feed
        yield _Line(start, end, text[start:end].removesuffix("\r"))
        start = end + 1


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.match(text) if len(text) <= _LONGEST_LINE else None


def _full(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.fullmatch(text) if len(text) <= _LONGEST_LINE else None
