"""Splits SQL into statements; strings, comments and bodies of routines are not split."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

_ROUTINE = re.compile(
    r"\s*+CREATE\s[^;'\"]{0,400}?\b(?:PROCEDURE|FUNCTION|TRIGGER|EVENT|PACKAGE)\b", re.IGNORECASE
)
_COMMENT = re.compile(r"--[^\n]*+|^[#\\][^\n]*+", re.MULTILINE)
_BLANK = re.compile(r"\s*+")
_UNCLOSED_WORDS: Final = frozenset({"IF", "LOOP", "WHILE", "REPEAT", "FOR"})
_NEXT_WORD = re.compile(r"\s{1,80}([A-Za-z]{1,20})")
_PLAIN: Final = re.compile(r"'[^']*+'")
_ESCAPED: Final = re.compile(r"'(?:[^'\\]++|\\.)*+'", re.DOTALL)
_STDIN = re.compile(r"\bFROM\s{1,80}stdin\b", re.IGNORECASE)
_DATA_END = re.compile(r"^\\\.[ \t]*$", re.MULTILINE)


def statements(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the statements, with the comments before them but no white space.

    Args:
        text: the text of a file; an unclosed string or comment extends to its end.
    """
    scanner = _Scanner(text)
    at = 0
    while at < len(text):
        start = _after_blank(text, at)
        end, at = scanner.end(start)
        if end > start:
            yield start, end


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


class _Scanner:
    """Finds the ends of statements; keeps track of the delimiter that the text sets."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._mysql = "`" in text
        self._delimiter = ";"

    def end(self, start: int) -> tuple[int, int]:
        """Return the end of the statement at an offset, and the offset at which to continue."""
        text, at, depth, routine = self._text, start, 0, None
        while (token := _tokens(self._delimiter).search(text, at)) is not None:
            word = token[0].upper()
            at = token.end()
            if token.lastgroup == "end":
                if depth <= 0:
                    return self._copied(start, at)
            elif token.lastgroup == "delimiter":
                self._delimiter = token["mark"]
                return (token.start() if text[start : token.start()].strip() else at), at
            elif token.lastgroup == "go":
                return token.start(), at
            elif token.lastgroup == "word":
                if routine is None:
                    routine = _ROUTINE.match(_uncommented(text, start, at)) is not None
                depth += self._step(word, at) if routine else 0
            else:
                at = self._closed(token[0], token.start(), at)
        return len(text), len(text)

    def _step(self, word: str, at: int) -> int:
        if word != "END":
            return 1
        following = _NEXT_WORD.match(self._text, at)
        if following is not None and following[1].upper() in _UNCLOSED_WORDS:
            return 0
        return -1

    def _closed(self, opener: str, start: int, at: int) -> int:
        """Return the offset after a string or comment; if it is unclosed, the end of the text."""
        text = self._text
        if opener == "'":
            escapes = self._mysql or text[max(0, start - 1) : start] in {"E", "e"}
            found = (_ESCAPED if escapes else _PLAIN).match(text, start)
            return len(text) if found is None else found.end()
        closer = {"--": "\n", "#": "\n", "\\": "\n", "/*": "*/"}.get(opener, opener)
        end = text.find(closer, at)
        return len(text) if end < 0 else end + len(closer)

    def _copied(self, start: int, at: int) -> tuple[int, int]:
        """Return the end of a statement; `COPY … FROM stdin;` ends after the data it copies."""
        head = self._text[start:at]
        if len(head) < 10_000 and "COPY" in head and _STDIN.search(head):  # noqa: PLR2004
            end = _DATA_END.search(self._text, at)
            if end is not None:
                return end.end(), end.end()
        return at, at


@lru_cache(maxsize=64)
def _tokens(delimiter: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<end>{re.escape(delimiter)})"
        r"|(?P<delimiter>^[ \t]*+DELIMITER[ \t]++(?P<mark>[^\s'\"]{1,20}))"
        r"|(?P<go>^GO[ \t\r]*+$)"
        r"|\b(?P<word>BEGIN|CASE|END)\b"
        r"|--|/\*|^[#\\]|'|\"|`|\$(?:[A-Za-z_]\w{0,62})?\$",
        re.IGNORECASE | re.MULTILINE,
    )


def head_of(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start of a statement's own text, and of the comments that belong to it.

    Args:
        start, end: offsets of the statement.

    Returns:
        The offset of the first comment that no blank line separates from the statement, and the
            offset of the statement's first word.
    """
    at, first = start, start
    while at < end:
        if text.startswith("/*", at):
            close = text.find("*/", at, end)
            stop = end if close < 0 else close + 2
        else:
            found = _COMMENT.match(text, at, end)
            if found is None:
                break
            stop = found.end()
        following = min(_after_blank(text, stop), end)
        if text.count("\n", stop, following) > 1:
            first = following
        at = following
    return first, at


def _uncommented(text: str, start: int, end: int) -> str:
    _, head = head_of(text, start, end)
    return text[head : min(end, head + 1_000)]
