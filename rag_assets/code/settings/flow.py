"""Values in brackets, as JSON, TOML and YAML write them, read without recursion."""

from __future__ import annotations

import re
from typing import Final

from rag_assets.code.settings.entries import ITEM, Entries, Entry, Path

_TOKEN: Final = re.compile(
    r"""(?xs)
    (?P<string> \"{3} (?: [^"\\] | \\. | "(?!"") )*+ \"{3} | '{3} (?: [^'] | '(?!'') )*+ '{3}
        | "(?: [^"\\\n] | \\. )*+" | '(?: [^'\n] | '' )*+' )
    | (?P<broken> \"{3} | '{3} ) | (?P<bad> ["'] )
    | (?P<open> [\[{] ) | (?P<close> [\]}] ) | (?P<comma> , ) | (?P<colon> [:=] )
    | (?P<comment> \# [^\n]*+ | // [^\n]*+ | /\* (?: [^*] | \*(?!/) )*+ (?:\*/)? )
    | (?P<newline> \n )
    | (?P<bare> [^\s\[\]{},:="'\#/]++ | / )"""
)
_ESCAPE: Final = re.compile(r"\\([\"\\/])")


def unquoted(token: str) -> str:
    """What a string says; escapes of other characters than quotes and slashes stay."""
    for quote in ('"""', "'''", '"', "'"):
        if len(token) >= 2 * len(quote) and token.startswith(quote) and token.endswith(quote):
            inner = token[len(quote) : -len(quote)]
            return _ESCAPE.sub(r"\1", inner) if quote[0] == '"' else inner
    return token


class Flow:
    """Reads one value from an offset on.

    Attributes:
        end: the offset after the value.
        whole: whether all brackets and quotes were closed.

    Args:
        text: of the file.
        at: where the value begins.
        base: the path of the value.
    """

    def __init__(self, text: str, at: int, base: Path = ()) -> None:
        self._text, self._base = text, base
        self._found = Entries()
        self._brackets: list[str] = []
        self._key: tuple[str, int] | None = None
        self.end, self.whole = at, True
        self._read(at)

    def entries(self) -> tuple[Entry, ...]:
        """The entries within the value."""
        return self._found.all()

    def _read(self, at: int) -> None:
        while token := _TOKEN.search(self._text, at):
            kind = token.lastgroup or ""
            at = token.end()
            if kind in {"broken", "bad"}:
                self.whole = False
                line = self._text.find("\n", at)
                at = len(self._text) if line < 0 or kind == "broken" else line
                self.end = at
                continue
            if not self._brackets and kind != "open":
                if kind in {"newline", "comment"} and self.end == token.start():
                    break
                continue
            self._take(kind, token)
            if not self._brackets:
                break
        self.whole = self.whole and not self._brackets
        if self._brackets:
            self.end = len(self._text)
        self._found.close(0, len(self._text[: self.end].rstrip()))

    def _take(self, kind: str, token: re.Match[str]) -> None:
        depth = len(self._brackets)
        if kind == "open":
            self._item(token)
            self._brackets.append(token[0])
        elif kind == "close":
            self._flush()
            self._found.close(depth, self.end)
            self._brackets.pop()
        elif kind == "comma":
            self._flush()
            self._found.close(depth, self.end)
        elif kind == "colon":
            self._named()
        elif kind in {"string", "bare"}:
            self._scalar(token)
        if kind not in {"newline", "comment", "comma"}:
            self.end = token.end()

    def _item(self, token: re.Match[str]) -> None:
        if self._brackets and self._brackets[-1] == "[":
            self._found.open(len(self._brackets), ITEM, token.start(), self._base)

    def _flush(self) -> None:
        self._key = None

    def _named(self) -> None:
        if self._key is not None:
            name, start = self._key
            self._found.open(len(self._brackets), name, start, self._base)
            self._key = None

    def _scalar(self, token: re.Match[str]) -> None:
        if self._brackets[-1] == "[":
            self._found.close(len(self._brackets), self.end)
            self._found.open(len(self._brackets), ITEM, token.start(), self._base)
            self._found.hold(unquoted(token[0]))
        elif self._key is None and not self._valued():
            self._key = unquoted(token[0]), token.start()
        elif self._key is None:
            self._found.hold(unquoted(token[0]))

    def _valued(self) -> bool:
        return self._found.innermost() >= len(self._brackets)
