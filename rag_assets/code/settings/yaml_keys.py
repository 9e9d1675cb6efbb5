"""The entries of YAML by its indentation: nothing is expanded, and damaged files have entries."""

from __future__ import annotations

import re
from typing import Final

from rag_assets.code.settings.entries import ITEM, Entries, Entry
from rag_assets.code.settings.flow import Flow, unquoted

_KEY: Final = re.compile(
    r"(?P<name>\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\n]|'')*+'"
    r"|[^\s\"'\[\]{}#&*!|>%@`,:][^:\n]*+(?::(?![ \t\r\n]|\Z)[^:\n]*+)*+)[ \t]*+:(?=[ \t\r\n]|\Z)"
)
_PROPERTIES: Final = re.compile(r"(?:[ \t]*+[&!][^\s\[\]{},]*+)*+[ \t]*+")
_DASH: Final = re.compile(r"-(?=[ \t\r\n]|\Z)[ \t]*+")
_BLOCK: Final = re.compile(r"[|>][-+0-9]{0,3}[ \t]*+(?:#[^\n]*+)?\r?$")
_QUOTED: Final = re.compile(r"(?s)\"(?:[^\"\\]|\\.)*+\"|'(?:[^']|'')*+'")
_COMMENT: Final = re.compile(r"[ \t]#")


def yaml_entries(text: str) -> tuple[tuple[Entry, ...], bool]:
    """The entries of a YAML text of one or more documents, and whether it was read to its end."""
    return _Yaml(text).read()


class _Yaml:
    def __init__(self, text: str) -> None:
        self._text = text
        self._found = Entries()
        self._end = 0
        self._block = -1
        self._whole = True

    def read(self) -> tuple[tuple[Entry, ...], bool]:
        at, size = 0, len(self._text)
        while at < size:
            after = self._text.find("\n", at)
            after = size if after < 0 else after
            at = self._line(at, after) + 1
        self._found.close(0, self._end)
        return self._found.all(), self._whole

    def _line(self, start: int, end: int) -> int:
        """Read a line, and what it begins; the offset of the end of the last line of that."""
        line = self._text[start:end]
        content = line.lstrip(" ")
        if not content.strip():
            return end
        indent = len(line) - len(content)
        if self._block >= 0 and indent > self._block:
            self._end = start + len(line.rstrip())
            return end
        self._block = -1
        if content[0] == "#":
            return end
        if indent == 0 and (line.startswith(("---", "...")) and not line[3:].strip()):
            self._found.close(0, self._end)
            return end
        return self._content(start, start + indent, end)

    def _content(self, start: int, at: int, end: int) -> int:
        while dash := _DASH.match(self._text, at, end):
            self._found.close(2 * (at - start) + 1, self._end)
            self._found.open(2 * (at - start) + 1, ITEM, at)
            self._end = at + 1
            at = dash.end()
        owner = self._found.innermost() // 2
        key = _KEY.match(self._text, at, end)
        if key is not None:
            owner = at - start
            self._found.close(2 * owner, self._end)
            self._found.open(2 * owner, unquoted(key["name"]), at)
            self._end = at = key.end()
        return self._value(at, end, max(owner, 0))

    def _value(self, at: int, end: int, owner: int) -> int:
        properties = _PROPERTIES.match(self._text, at, end)
        at = at if properties is None else properties.end()
        rest = self._text[at:end].rstrip()
        if not rest or rest[0] == "#":
            return end
        self._end = at + len(rest)
        if _BLOCK.match(self._text, at, end):
            self._block = owner
            return end
        if rest[0] in "\"'":
            return self._quoted(at, end)
        if rest[0] in "[{":
            return self._flow(at)
        comment = _COMMENT.search(rest)
        value = rest if comment is None else rest[: comment.start()].rstrip()
        self._found.hold(value)
        return end

    def _quoted(self, at: int, end: int) -> int:
        string = _QUOTED.match(self._text, at)
        if string is None:
            self._whole = False
            return end
        self._found.hold(unquoted(string[0]))
        self._end = max(self._end if string.end() <= end else 0, string.end())
        return self._line_end(string.end())

    def _flow(self, at: int) -> int:
        flow = Flow(self._text, at, self._found.path() or ())
        if not flow.whole:
            self._whole = False
        if self._found.path() is not None:
            self._found.extend(flow.entries())
        self._end = flow.end
        return self._line_end(flow.end)

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end
