"""The entries of TOML: tables, and keys with their values."""

from __future__ import annotations

import re
from typing import Final

from rag_assets.code.settings.entries import Entries, Entry, Path
from rag_assets.code.settings.flow import Flow, unquoted

_PART: Final = r"(?:[\w-]++|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+')"
_NAME: Final = rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART})*+"
_HEADER: Final = re.compile(rf"[ \t]*+\[\[?[ \t]*+(?P<name>{_NAME})[ \t]*+\]\]?")
_KEY: Final = re.compile(rf"[ \t]*+(?P<name>{_NAME})[ \t]*+=[ \t]*+")
_PARTS: Final = re.compile(_PART)
_STRING: Final = re.compile(
    r"(?s)\"{3}(?:[^\"\\]|\\.|\"(?!\"\"))*+\"{3,5}|'{3}(?:[^']|'(?!''))*+'{3,5}"
    r"|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+'"
)
_BARE: Final = re.compile(r"[^#\n]*+")


def toml_entries(text: str) -> tuple[tuple[Entry, ...], bool]:
    """The entries of a TOML text, and whether every line of it was read.

    A table is an entry with the path of its header; its keys are entries below it.
    """
    return _Toml(text).read()


class _Toml:
    def __init__(self, text: str) -> None:
        self._text = text
        self._found = Entries()
        self._table: Path = ()
        self._table_start = -1
        self._end = 0
        self._whole = True

    def read(self) -> tuple[tuple[Entry, ...], bool]:
        at, size = 0, len(self._text)
        while at < size:
            at = self._line(at)
        self._close()
        return self._found.all(), self._whole

    def _line(self, at: int) -> int:
        if header := _HEADER.match(self._text, at):
            self._close()
            self._table = _path(header["name"])
            self._table_start = at + len(header[0]) - len(header[0].lstrip())
            self._end = header.end()
        elif key := _KEY.match(self._text, at):
            self._end = self._value(key)
        else:
            after = self._after(at)
            line = self._text[at:after].strip()
            self._whole = self._whole and (not line or line.startswith("#"))
            return after
        return self._after(self._end)

    def _after(self, at: int) -> int:
        """The beginning of the next line."""
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end + 1

    def _value(self, key: re.Match[str]) -> int:
        at, path = key.end(), (*self._table, *_path(key["name"]))
        start = key.start("name")
        if self._text[at : at + 1] in {"[", "{"}:
            flow = Flow(self._text, at, path)
            self._whole = self._whole and flow.whole
            self._found.add(path, start, flow.end, None)
            self._found.extend(flow.entries())
            return flow.end
        if string := _STRING.match(self._text, at):
            self._found.add(path, start, string.end(), unquoted(string[0]))
            return string.end()
        if self._text.startswith(('"""', "'''"), at):
            self._whole = False
            return len(self._text)
        bare = _BARE.match(self._text, at)
        value = "" if bare is None else bare[0].rstrip()
        self._found.add(path, start, at + len(value), value)
        return at + len(value)

    def _close(self) -> None:
        if self._table_start >= 0:
            self._found.add(self._table, self._table_start, self._end, None)


def _path(name: str) -> Path:
    return tuple(unquoted(part) for part in _PARTS.findall(name))
