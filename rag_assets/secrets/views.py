"""Other ways to read a text: what a layout, an alphabet or an encoding hides from a rule.

A view is a text with, for each of its characters, the place in the original that it stands for.
What is found in a view is masked in the original.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from rag_assets.secrets.spans import SecretSpan

_LEAST = 16
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[A-Za-z]")
_HUMP = re.compile(r"[a-z][A-Z]")
_CANDIDATE = re.compile(r"[A-Za-z0-9_+/=.~:%-]{16,}")
_MARKUP = re.compile(
    r"\\(?:[nrt]|\")|[*`|()\[\]{}<>~^\\]|(?<![\w/+-])_+|_+(?![\w/+=-])"
    r"|[.,;:!?](?=[\s\"'”’»*_`)\]}>|~]|[^\x00-\x7f]|$)|[^\x00-\x7f\w]|&(?:quot|lt|gt|nbsp|amp);"
)
_INVISIBLE = "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
_HIDDEN = re.compile(rf"[{_INVISIBLE}]")
_TWINS = {
    twin: letter
    for letter, twins in {
        "A": "АΑᎪ", "B": "ВΒᏴ", "C": "СϹᏟ", "E": "ЕΕᎬ", "G": "Ꮐ", "H": "НΗᎻ", "I": "ІΙӀ", "J": "ЈᎫ",
        "K": "КΚᏦ", "L": "Ꮮ", "M": "МΜᎷ", "N": "Ν", "O": "ОΟՕ", "P": "РΡᏢ", "S": "ЅՏᏚ", "T": "ТΤᎢ",
        "V": "Ꮩ", "W": "Ꮃ", "X": "ХΧ", "Y": "УΥҮ", "Z": "ΖᏃ", "a": "аɑα", "c": "сϲ", "d": "ԁ", "e": "еҽ",
        "g": "ɡ", "h": "һհ", "i": "іıι", "j": "ј", "k": "кκ", "l": "ӏ", "n": "ոռη", "o": "оοօ", "p": "рρ",
        "q": "ԛ", "r": "гᴦ", "s": "ѕ", "t": "т", "u": "υսц", "v": "νѵ", "w": "ԝшѡ", "x": "хχ", "y": "уγү",
        "z": "ᴢ", "3": "ЗӠ", "0": "Ο", "-": "‐‑﹣－", "_": "＿﹍", "/": "⁄∕", ":": "：∶ː", "=": "＝﹦",
    }.items()
    for twin in twins
}  # fmt: skip
_TWIN_LETTERS = "".join(map(re.escape, _TWINS))
_DISGUISE = re.compile(
    rf"[{_INVISIBLE}{_TWIN_LETTERS}\uff01-\uff5e\U0001d400-\U0001d7ff\u2460-\u24ff]+"
)
_BESIDE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/+=:-")
_LEAST_DISGUISED = 3
_WRAPPED = re.compile(r"[ \t]*(?:<br ?/?>|\\)?\r?\n[ \t>|]*(?=[A-Za-z0-9+/=_~-])")
_LINE_BREAK = re.compile(r"<br ?/?>$")
_TOKEN_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=_~.-")
_LINE_ENDS = _TOKEN_CHARACTERS | frozenset(" \t\r\\>")
_PIECE_RIGHT = re.compile(r"[A-Za-z0-9+/=_~.-]*")
_MOST_PIECES = 8
_REACH = 240
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_WORD_BEFORE = re.compile(r"[^\s\"'<>`]*\Z")
_WORD_AFTER = re.compile(r"[^\s\"'<>`]*")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{20,}={0,2}(?![A-Za-z0-9+/_-])")
_HEX = re.compile(r"(?<![A-Za-z0-9])(?:0x)?(?:[0-9a-fA-F]{2}:?){10,}(?![A-Za-z0-9])")
_ESCAPES = re.compile(
    r"&(?:#\d{2,6}|#[xX][0-9A-Fa-f]{2,6}|quot|apos|lt|gt|amp|nbsp|lbrace|rbrace|equals|colon);"
    r"|\\u00[0-9A-Fa-f]{2}|\\x[0-9A-Fa-f]{2}|\\[\"'nrt/]"
)
_ESCAPED_CHARACTERS = {"\\n": "\n", "\\r": "\n", "\\t": "\t", "\\/": "/", '\\"': '"', "\\'": "'"}
_MOST_ENCODED = 65_536
_READABLE = 0.95


@dataclass(frozen=True, slots=True)
class View:
    """A way to read a text.

    Attributes:
        text: as it is read.
        starts: for each character of it, where the original's begins; None: the same place.
        ends: likewise, where it ends.
    """

    text: str
    starts: list[int] | None = None
    ends: list[int] | None = None

    def original(self, span: SecretSpan) -> SecretSpan:
        """The place in the original of what was found in the view."""
        if self.starts is None or self.ends is None:
            return span
        return SecretSpan(self.starts[span.start], self.ends[span.end - 1], span.rule)


class _Builder:
    """Puts a view together out of pieces of the original."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []

    def keep(self, piece: str, at: int) -> None:
        """Take a piece each character of which stands for one of the original, from a place on."""
        self._parts.append(piece)
        self._starts.extend(range(at, at + len(piece)))
        self._ends.extend(range(at + 1, at + len(piece) + 1))

    def put(self, written: str, start: int, end: int) -> None:
        """Take what a place of the original reads as."""
        self._parts.append(written)
        self._starts.extend([start] * len(written))
        self._ends.extend([end] * len(written))

    def view(self) -> View:
        """What was put together."""
        return View("".join(self._parts), self._starts, self._ends)


def candidates(text: str) -> list[tuple[int, int]]:
    """Where something long stands with digits in it, or capitals within: all that may be a token."""
    return [
        found.span()
        for found in _CANDIDATE.finditer(text)
        if _DIGIT.search(found[0]) or len(_HUMP.findall(found[0])) > 1
    ]


def loosened(text: str, places: Sequence[tuple[int, int]]) -> View | None:
    """Lines with a candidate in them, marks beside words read as blanks; None: there are none.

    Libraries' rules mostly ask for a quotation mark, a blank or the end of the text after a token,
    and so overlook one in bold type or at the end of a sentence.
    """
    builder = _Builder()
    done = 0
    for first, last in places:
        if first < done:
            continue
        start = text.rfind("\n", done, first) + 1 or done
        end = text.find("\n", last)
        done = len(text) if end < 0 else end + 1
        line = text[start:done]
        plain = _MARKUP.sub(_blank, line)
        if plain != line:
            builder.keep(plain, start)
    view = builder.view()
    return view if view.text else None


def _blank(mark: re.Match[str]) -> str:
    return " " * len(mark[0])


def folded(text: str) -> View | None:
    """Lines with letters of other alphabets in a word, full-width forms, or what cannot be seen."""
    if text.isascii():
        return None
    builder = _Builder()
    disguised = filter(_is_disguise, _DISGUISE.finditer(text))
    for start, end in _lines_of(text, disguised):
        for at in range(start, end):
            builder.put(_plain(text[at]), at, at + 1)
    view = builder.view()
    return view if view.text else None


def _is_disguise(found: re.Match[str]) -> bool:
    """Whether letters of another kind stand within a word, or make up one by themselves."""
    text, start, end = found.string, found.start(), found.end()
    if text[start - 1 : start] in _BESIDE or text[end : end + 1] in _BESIDE:
        return True
    return end - start >= _LEAST_DISGUISED and unicodedata.normalize("NFKC", found[0]).isascii()


@lru_cache(4_096)
def _plain(character: str) -> str:
    if character.isascii():
        return character
    if _HIDDEN.match(character):
        return ""
    if character in _TWINS:
        return _TWINS[character]
    compatible = unicodedata.normalize("NFKC", character)
    if compatible.isascii():
        return compatible
    return "".join(_TWINS.get(part, part) for part in compatible)


@dataclass(frozen=True, slots=True)
class Seam:
    """A place of a view at which two lines were put together.

    Attributes:
        at: where the second line begins, as a place in the view.
        end: where the piece of a token ends that it begins with.
        certain: whether that piece is no word of a language.
    """

    at: int
    end: int
    certain: bool


def joined(text: str) -> Iterator[tuple[View, list[Seam]]]:
    """Lines put together over which a token may run, with the places where they were joined."""
    done = 0
    for gap in _gaps(text):
        if gap.start() < done:
            continue
        builder = _Builder()
        start = max(text.rfind("\n", 0, gap.start()) + 1, gap.start() - _REACH)
        builder.keep(text[start : gap.start()], start)
        length = gap.start() - start
        seams: list[Seam] = []
        following: re.Match[str] | None = gap
        while following is not None and len(seams) < _MOST_PIECES:
            at = following.end()
            piece = _PIECE_RIGHT.match(text, at, at + _REACH)
            end = piece.end() if piece else at
            rest = text[at:end]
            certain = _is_mixed(rest) and "=" not in rest.rstrip("=")
            builder.keep(text[at:end], at)
            seams.append(Seam(length, length + end - at, certain))
            length += end - at
            following = _WRAPPED.match(text, end) if certain else None
        done = at
        yield builder.view(), seams


def _gaps(text: str) -> Iterator[re.Match[str]]:
    """Ends of lines whose last word looks like a piece of a token."""
    start = 0
    end = text.find("\n")
    while end >= 0:
        if end > start and (text[end - 1] in _LINE_ENDS):
            low = max(start, end - _REACH)
            line = text[low:end].rstrip(" \t\r\\")
            if line.endswith(">"):
                line = _LINE_BREAK.sub("", line)
            word = line[line.rfind(" ") + 1 :]
            if word and word[-1] in _TOKEN_CHARACTERS and _is_mixed(word):
                gap = _WRAPPED.match(text, low + len(line))
                if gap is not None:
                    yield gap
        start = end + 1
        end = text.find("\n", start)


def _is_mixed(word: str) -> bool:
    """Whether digits stand beside letters, or capitals within: as in no word of a language."""
    if _DIGIT.search(word):
        return _LETTER.search(word) is not None
    return _HUMP.search(word) is not None


def decoded(text: str, places: Sequence[tuple[int, int]]) -> View | None:
    """What percent signs, base64 and hexadecimal digits stand for, where it is text."""
    builder = _Builder()
    for word, at in _words_with(text, _PERCENT):
        _unquote(builder, word, at)
    for start, end in _lines_of(text, _ESCAPES.finditer(text)):
        _unescape(builder, text, start, end)
    for first, last in places:
        for pattern, decode in ((_BASE64, _from_base64), (_HEX, _from_hex)):
            for found in pattern.finditer(text, first, last):
                if len(found[0]) <= _MOST_ENCODED and (plain := decode(found[0])):
                    builder.put(plain, *found.span())
                    builder.put("\n\n", *found.span())
    view = builder.view()
    return view if view.text else None


def _unquote(builder: _Builder, word: str, offset: int) -> None:
    at = 0
    for found in re.finditer(r"(?:%[0-9A-Fa-f]{2})+", word):
        builder.keep(word[at : found.start()], offset + at)
        raw = unquote_to_bytes(found[0])
        for n, byte in enumerate(raw):
            place = offset + found.start() + 3 * n
            builder.put(chr(byte), place, place + 3)
        at = found.end()
    builder.keep(word[at:], offset + at)
    builder.put("\n\n", offset, offset)


def _unescape(builder: _Builder, text: str, start: int, end: int) -> None:
    at = start
    for found in _ESCAPES.finditer(text, start, end):
        builder.keep(text[at : found.start()], at)
        builder.put(_character(found[0]), *found.span())
        at = found.end()
    builder.keep(text[at:end], at)
    builder.put("\n\n", end, end)


def _character(escape: str) -> str:
    if escape[0] == "&":
        return html.unescape(escape)
    return _ESCAPED_CHARACTERS.get(escape) or chr(int(escape[2:], 16))


def _from_base64(word: str) -> str | None:
    plain = word.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _readable(base64.b64decode(plain + "=" * (-len(plain) % 4)))
    except (binascii.Error, ValueError):
        return None


def _from_hex(word: str) -> str | None:
    try:
        return _readable(bytes.fromhex(word.removeprefix("0x").replace(":", " ")))
    except ValueError:
        return None


def _readable(raw: bytes) -> str | None:
    """The text that bytes are; None where they are none."""
    try:
        plain = raw.decode()
    except UnicodeDecodeError:
        return None
    seen = sum(c.isprintable() or c in "\r\n\t" for c in plain)
    return plain if plain and seen >= _READABLE * len(plain) else None


def _words_with(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """Words in which a pattern is found, with where they begin."""
    done = 0
    for found in pattern.finditer(text):
        if found.start() < done:
            continue
        before = _WORD_BEFORE.search(text, max(done, found.start() - _REACH), found.start())
        start = before.start() if before else found.start()
        after = _WORD_AFTER.match(text, found.start(), found.start() + _MOST_ENCODED)
        done = max(found.end(), after.end() if after else 0)
        yield text[start:done], start


def _lines_of(text: str, places: Iterable[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """The lines in which matches stand, each once."""
    done = 0
    for found in places:
        if found.start() < done:
            continue
        start = text.rfind("\n", done, found.start()) + 1 or done
        end = text.find("\n", found.end())
        done = len(text) if end < 0 else end + 1
        yield start, done
