"""Reads the man pages that docutils writes, as Markdown; aws has its help in them.

Rendered for a terminal, words would be hyphenated at line ends, exact names among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

_MARK: Final = '.\\" Man page generated from reStructuredText'
_FONT = re.compile(r"\\f([BIRPC])")
_ESCAPE = re.compile(r"\\(?:\((..)|\[([^\]]*)\]|(.))")
_NAMED: Final = {"aq": "'", "dq": '"', "bu": "•", "lq": "“", "rq": "”", "em": "—", "en": "–"}
_SINGLE: Final = {"-": "-", "e": "\\", "\\": "\\", " ": " ", "~": " "}
_CODE = re.compile(r"\S+|-.*|.*(?:--|://|=).*")
_COMMANDS = re.compile(r"^## available (?:commands|services)$", re.IGNORECASE)
_ITEM = re.compile(r"^ *- ([a-z0-9][\w.-]*)$")


@dataclass(slots=True)
class _Block:
    kind: Literal["heading", "text", "item", "code"]
    indent: int
    lines: list[str] = field(default_factory=list)

    def written(self) -> str:
        margin = " " * self.indent
        if self.kind == "code":
            return "\n".join(f"{margin}{line}".rstrip() for line in ["```", *self.lines, "```"])
        text = " ".join(" ".join(self.lines).split())
        return f"{margin}- {text}" if self.kind == "item" else f"{margin}{text}"


def is_docutils(text: str) -> bool:
    """Whether a text is a man page as docutils writes it."""
    return text.lstrip().startswith(_MARK)


def markdown_of(text: str) -> str:
    """A man page of docutils as Markdown, its definitions as items of lists."""
    reader = _Reader()
    for line in _without_macros(text):
        reader.read(line)
    found = [block for block in reader.blocks if block.lines]
    parts: list[str] = []
    for at, block in enumerate(found):
        likes = [(one.kind, one.indent) for one in found[max(0, at - 1) : at]]
        is_next = block.kind == "item" and likes == [("item", block.indent)]
        parts.append(("" if at == 0 else "\n" if is_next else "\n\n") + block.written())
    return "".join(parts)


def commands_of(markdown: str) -> list[str]:
    """The subcommands that a page lists."""
    found: list[str] = []
    within = False
    for line in markdown.split("\n"):
        if line.startswith("#"):
            within = _COMMANDS.match(line) is not None
        elif within and (item := _ITEM.match(line)) is not None:
            found.append(item[1])
    return [name for name in found if name != "help"]


def _without_macros(text: str) -> Iterator[str]:
    """The lines of a page without comments and the macros that it defines."""
    defined = False
    for line in text.split("\n"):
        if line.startswith(".de1"):
            defined = True
        elif defined:
            defined = line != ".."
        elif line not in {"", "."} and not line.startswith('.\\"'):
            yield line


class _Reader:
    """Reads lines into blocks."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self._indents = [0]
        self._code = self._broken = False
        self._joins: _Block | None = None

    def read(self, line: str) -> None:
        if self._code and line != ".fi":
            if not line.startswith(".ft"):
                self.blocks[-1].lines.append(_unescaped(line))
            return
        if not line.startswith("."):
            self._text(line)
            return
        request, _, rest = line[1:].partition(" ")
        self._request(request, rest)

    def _request(self, request: str, rest: str) -> None:
        match request:
            case "SH" | "SS":
                title = _unescaped(rest.strip('"'))
                marks = "##" if request == "SH" else "###"
                self._add("heading", [marks, title.capitalize() if request == "SH" else title])
            case "sp":
                self._broken = True
            case "nf":
                self._add("code")
                self._code = True
            case "fi":
                self._code = False
                self._broken = True
            case "INDENT":
                self._enter(float(rest.split(maxsplit=1)[0]))
            case "UNINDENT":
                self._leave()
            case "IP":
                self._indents[-1] = self._indents[-2] if len(self._indents) > 1 else 0
                self._add("item")
                self._indents[-1] += 2

    def _add(self, kind: Literal["heading", "text", "item", "code"], lines: list[str] = []) -> None:  # noqa: B006 - copied
        self.blocks.append(_Block(kind, self._indents[-1], list(lines)))
        self._broken = kind == "heading"
        self._joins = None

    def _text(self, line: str) -> None:
        last = self.blocks[-1] if self.blocks else None
        if self._joins is not None and self._joins is last:
            # The definition stands beside its term.
            self._joins.lines[-1] += ":"
            self._joins, self._broken = None, False
        if last is None or self._broken or last.kind == "code":
            self._add("text")
        self.blocks[-1].lines.append(_inline(line))

    def _enter(self, width: float) -> None:
        last = self.blocks[-1] if self.blocks else None
        indent = self._indents[-1]
        if width and last is not None and last.kind == "text" and last.indent == indent:
            last.kind = "item"
            self._joins = last
            indent += 2
        self._indents.append(indent)

    def _leave(self) -> None:
        if len(self._indents) > 1:
            self._indents.pop()
        self._broken = True
        self._joins = None


def _inline(line: str) -> str:
    """A line with its fonts: code where a bold word is one."""
    pieces = _FONT.split(line)
    text = _unescaped(pieces[0])
    for font, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        plain = _unescaped(piece)
        if font == "B" and plain.strip():
            mark = "`" if _CODE.fullmatch(plain) and "`" not in plain else "**"
            text += f"{mark}{plain}{mark}"
        else:
            text += plain
    return text


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        named = found[1] or found[2]
        return _NAMED.get(named, "") if named else _SINGLE.get(found[3] or "", "")

    return _ESCAPE.sub(character, text)
