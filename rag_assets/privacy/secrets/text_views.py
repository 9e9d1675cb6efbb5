"""Views of a text, in which rules find what layout, alphabet or encoding hides.

A view is a text with the offsets of each of its characters in the original. A finding in a view is
masked in the original.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import HOST_NAME

_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[A-Za-z]")
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
_CANDIDATE = re.compile(r"[A-Za-z0-9_+/=.~:%-]{16,}")
_MARKUP = re.compile(
    r"\\(?:[nrt]|\")|[*`|()\[\]{}<>~^\\]|(?<![\w/+-])_+|_+(?![\w/+=-])"
    r"|[.,;:!?](?=[\s\"'”’»*_`)\]}>|~]|[^\x00-\x7f]|$)|[^\x00-\x7f\w]|&(?:quot|lt|gt|nbsp|amp);"
)
_INVISIBLE = "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
_HIDDEN = re.compile(rf"[{_INVISIBLE}]")
_CONFUSABLES = {
    confusable: letter
    for letter, confusables in {
        "A": "АΑᎪ", "B": "ВΒᏴ", "C": "СϹᏟ", "E": "ЕΕᎬ", "G": "Ꮐ", "H": "НΗᎻ", "I": "ІΙӀ", "J": "ЈᎫ",
        "K": "КΚᏦ", "L": "Ꮮ", "M": "МΜᎷ", "N": "Ν", "O": "ОΟՕ", "P": "РΡᏢ", "S": "ЅՏᏚ", "T": "ТΤᎢ",
        "V": "Ꮩ", "W": "Ꮃ", "X": "ХΧ", "Y": "УΥҮ", "Z": "ΖᏃ", "a": "аɑα", "c": "сϲ", "d": "ԁ", "e": "еҽ",
        "g": "ɡ", "h": "һհ", "i": "іıι", "j": "ј", "k": "кκ", "l": "ӏ", "n": "ոռη", "o": "оοօ", "p": "рρ",
        "q": "ԛ", "r": "гᴦ", "s": "ѕ", "t": "т", "u": "υսц", "v": "νѵ", "w": "ԝшѡ", "x": "хχ", "y": "уγү",
        "z": "ᴢ", "3": "ЗӠ", "0": "Ο", "-": "‐‑﹣－", "_": "＿﹍", "/": "⁄∕", ":": "：∶ː", "=": "＝﹦",
    }.items()
    for confusable in confusables
}  # fmt: skip
_CONFUSABLE_LETTERS = "".join(map(re.escape, _CONFUSABLES))
_CONFUSABLE_RUN = re.compile(
    rf"[{_INVISIBLE}{_CONFUSABLE_LETTERS}\u00a0\u2002-\u200a\u202f\u3000\uff01-\uff5e\U0001d400-\U0001d7ff\u2460-\u24ff]+"
)
_WORD_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/+=:-")
_MIN_RUN_LENGTH = 3


class _Piece(NamedTuple):
    """A part of a view, made from one part of the original.

    Attributes:
        at: where the piece starts in the view.
        start, end: the part of the original that the piece represents.
        copied: whether the piece equals that part; otherwise each of its characters stands for the
            whole part.
    """

    at: int
    start: int
    end: int
    copied: bool


@dataclass(frozen=True, slots=True)
class View:
    """A transformed text, with offsets in the original."""

    text: str
    pieces: list[_Piece]

    def to_original(self, span: SecretSpan) -> SecretSpan:
        """Convert a span in the view to the span in the original."""
        first, last = self._find_piece(span.start), self._find_piece(span.end - 1)
        start = first.start + span.start - first.at if first.copied else first.start
        end = last.start + span.end - last.at if last.copied else last.end
        return SecretSpan(start, end, span.rule)

    def _find_piece(self, at: int) -> _Piece:
        return self.pieces[bisect_right(self.pieces, at, key=attrgetter("at")) - 1]


class ViewBuilder:
    """Builds a view from pieces of the original."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._pieces: list[_Piece] = []
        self._length = 0

    def copy(self, piece: str, at: int) -> None:
        """Append the piece of the original at an offset, or a text of equal length in its place."""
        self._append(piece, at, at + len(piece), copied=True)

    def replace(self, text: str, start: int, end: int) -> None:
        """Append a text in place of a part of the original."""
        self._append(text, start, end, copied=False)

    def build(self) -> View:
        """Return the view of all pieces appended."""
        return View("".join(self._texts), self._pieces)

    def build_if_any(self) -> View | None:
        """Return the view of all pieces appended; None without any."""
        return self.build() if self._pieces else None

    def _append(self, text: str, start: int, end: int, *, copied: bool) -> None:
        if text:
            self._texts.append(text)
            self._pieces.append(_Piece(self._length, start, end, copied))
            self._length += len(text)


def find_candidates(text: str) -> list[tuple[int, int]]:
    """Return the spans of long words that contain a digit; they may be hidden tokens."""
    return [match.span() for match in _CANDIDATE.finditer(text) if _DIGIT.search(match[0])]


def blank_markup(text: str, places: Sequence[tuple[int, int]]) -> View | None:
    """Return a view of lines with a candidate, with spaces in place of the markup around words.

    Most rules of libraries require a quotation mark, a space or the end of the text after a token.
    They overlook a token in bold type or at the end of a sentence. None is returned if no candidate
    is next to markup or punctuation.
    """
    builder = ViewBuilder()
    enclosed = (place for place in places if _is_enclosed(text, *place))
    for start, end in find_lines(text, enclosed):
        builder.copy(_MARKUP.sub(lambda mark: " " * len(mark[0]), text[start:end]), start)
    return builder.build_if_any()


def _is_enclosed(text: str, first: int, last: int) -> bool:
    """Return whether a character at or next to a candidate's edge may defeat a library's rule."""
    if text[last - 1] in ".:~%_" or text[first] in ".:~_":
        return True
    return not (_is_open(text[first - 1 : first]) and _is_open(text[last : last + 1]))


def _is_open(neighbour: str) -> bool:
    return not neighbour or neighbour in " \t\r\n\"'"


def fold_lookalikes(text: str) -> View | None:
    """Return a view in ASCII of lines with lookalike characters; None without such lines."""
    if text.isascii():
        return None
    builder = ViewBuilder()
    runs = filter(_is_part_of_word, _CONFUSABLE_RUN.finditer(text))
    for start, end in find_lines(text, (run.span() for run in runs)):
        for at in range(start, end):
            builder.replace(_convert_to_ascii(text[at]), at, at + 1)
    return builder.build_if_any()


def _is_part_of_word(match: re.Match[str]) -> bool:
    """Return whether lookalike letters are within a word, or are a word themselves."""
    text, start, end = match.string, match.start(), match.end()
    if text[start - 1 : start] in _WORD_CHARACTERS or text[end : end + 1] in _WORD_CHARACTERS:
        return True
    return end - start >= _MIN_RUN_LENGTH and unicodedata.normalize("NFKC", match[0]).isascii()


@lru_cache(4_096)
def _convert_to_ascii(character: str) -> str:
    if character.isascii():
        return character
    if _HIDDEN.match(character):
        return ""
    if character in _CONFUSABLES:
        return _CONFUSABLES[character]
    compatible = unicodedata.normalize("NFKC", character)
    if compatible.isascii():
        return compatible
    return "".join(_CONFUSABLES.get(part, part) for part in compatible)


def is_mixed_word(word: str) -> bool:
    """Return whether a word, unlike usual words, mixes letters and digits or has inner capitals."""
    if _DIGIT.search(word):
        return _LETTER.search(word) is not None
    return _INNER_CAPITAL.search(word) is not None


def find_lines(text: str, places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the lines that contain places, each line once."""
    done = 0
    for first, last in places:
        if first < done:
            continue
        start = text.rfind("\n", done, first) + 1 or done
        end = text.find("\n", last)
        done = len(text) if end < 0 else end + 1
        yield start, done


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
_MAX_ENCODED_CHARACTERS = 65_536
_CHECKED_CHARACTERS = 8
_FIRST_READABLE_BYTE, _LAST_READABLE_BYTE = 0x09, 0x7E
_MIN_READABLE_SHARE = 0.95
_WORD_REACH = 240


def decode_parts(text: str, places: Sequence[tuple[int, int]]) -> View | None:
    """Return a view of the encoded parts that decode to readable text; None without such parts."""
    builder = ViewBuilder()
    for word, at in _find_words(text, _PERCENT):
        _unquote(builder, word, at)
    for start, end in find_lines(text, (escape.span() for escape in _ESCAPES.finditer(text))):
        _unescape(builder, text, start, end)
    for first, last in places:
        for pattern, decode in ((_BASE64, _decode_base64), (_HEX, _decode_hex)):
            for match in pattern.finditer(text, first, last):
                if len(match[0]) <= _MAX_ENCODED_CHARACTERS and (plain := decode(match[0])):
                    builder.replace(plain, *match.span())
                    builder.replace("\n\n", *match.span())
    return builder.build_if_any()


def _unquote(builder: ViewBuilder, word: str, offset: int) -> None:
    at = 0
    for match in re.finditer(r"(?:%[0-9A-Fa-f]{2})+", word):
        builder.copy(word[at : match.start()], offset + at)
        raw = unquote_to_bytes(match[0])
        for n, byte in enumerate(raw):
            place = offset + match.start() + 3 * n
            builder.replace(chr(byte), place, place + 3)
        at = match.end()
    builder.copy(word[at:], offset + at)
    builder.replace("\n\n", offset, offset)


def _unescape(builder: ViewBuilder, text: str, start: int, end: int) -> None:
    at = start
    for match in _ESCAPES.finditer(text, start, end):
        builder.copy(text[at : match.start()], at)
        builder.replace(_decode_escape(match[0]), *match.span())
        at = match.end()
    builder.copy(text[at:end], at)
    builder.replace("\n\n", end, end)


def _decode_escape(escape: str) -> str:
    if escape[0] == "&":
        return html.unescape(escape).replace("\xa0", " ")
    return _ESCAPED_CHARACTERS.get(escape) or chr(int(escape[2:], 16))


def _decode_base64(word: str) -> str | None:
    plain = word.rstrip("=").replace("-", "+").replace("_", "/")
    if not all(
        _FIRST_READABLE_BYTE <= byte <= _LAST_READABLE_BYTE
        for byte in base64.b64decode(plain[:_CHECKED_CHARACTERS])
    ):
        return None
    try:
        return _decode_readable(base64.b64decode(plain + "=" * (-len(plain) % 4)))
    except (binascii.Error, ValueError):
        return None


def _decode_hex(word: str) -> str | None:
    try:
        return _decode_readable(bytes.fromhex(word.removeprefix("0x").replace(":", " ")))
    except ValueError:
        return None


def _decode_readable(raw: bytes) -> str | None:
    """Decode UTF-8; return None if the bytes are not readable text."""
    try:
        plain = raw.decode()
    except UnicodeDecodeError:
        return None
    printable = sum(c.isprintable() or c in "\r\n\t" for c in plain)
    return plain if plain and printable >= _MIN_READABLE_SHARE * len(plain) else None


def _find_words(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """Find the words that contain a match of a pattern, and their start offsets."""
    done = 0
    for match in pattern.finditer(text):
        if match.start() < done:
            continue
        before = _WORD_BEFORE.search(text, max(done, match.start() - _WORD_REACH), match.start())
        start = before.start() if before else match.start()
        after = _WORD_AFTER.match(text, match.start(), match.start() + _MAX_ENCODED_CHARACTERS)
        done = max(match.end(), after.end() if after else 0)
        yield text[start:done], start


_WRAPPED = re.compile(r"[ \t]*(?:<br ?/?>|\\)?\r?\n[ \t>|]*(?=[A-Za-z0-9+/=_~-])")
# Starts with a character set, so that the search skips other characters quickly.
_LINE_END = re.compile(
    r"([\dA-Z](?:(?<![A-Z])|(?<=[a-z][A-Z]))[A-Za-z0-9+/=_~.:-]{0,240})"
    r"[ \t]*(?:<br ?/?>|\\)?\r?\n"
)
_WORD = re.compile(r"[A-Za-z0-9+/=_~.:-]+")
_PIECE_RIGHT = re.compile(r"[A-Za-z0-9+/=_~.-]*")
_VALUE_FOLLOWS = re.compile(r"[ \t]*[:=][ \t]+\S")
_MAX_PIECES = 8
_LINE_REACH = 240


@dataclass(frozen=True, slots=True)
class Seam:
    """A position in a view at which two lines were joined."""

    at: int
    """Offset in the view at which the second line starts."""
    end: int
    """End of the second line's first word, which may continue a token."""
    certain: bool
    """Whether that word cannot be an ordinary word."""
    is_name: bool
    """Whether that word is a label of the value after it, or a host name; then it does not continue
    a token."""


def join_lines(text: str) -> Iterator[tuple[View, list[Seam]]]:
    """Yield views that join lines across which a token may continue, each with its seams."""
    done = 0
    for gap in _find_gaps(text):
        if gap.start() < done:
            continue
        builder = ViewBuilder()
        start = max(text.rfind("\n", 0, gap.start()) + 1, gap.start() - _LINE_REACH)
        builder.copy(text[start : gap.start()], start)
        length = gap.start() - start
        seams: list[Seam] = []
        following: re.Match[str] | None = gap
        while following is not None and len(seams) < _MAX_PIECES:
            at = following.end()
            piece = _PIECE_RIGHT.match(text, at, at + _LINE_REACH)
            end = piece.end() if piece else at
            rest = text[at:end]
            certain = is_mixed_word(rest) and "=" not in rest.rstrip("=")
            builder.copy(text[at:end], at)
            is_host = HOST_NAME.match(text, at) is not None
            is_name = is_host or _VALUE_FOLLOWS.match(text, end) is not None
            seams.append(Seam(length, length + end - at, certain, is_name))
            length += end - at
            following = _WRAPPED.match(text, end) if certain else None
        done = at
        yield builder.build(), seams


def _find_gaps(text: str) -> Iterator[re.Match[str]]:
    """Find the line ends after a word that looks like a part of a token."""
    for match in _LINE_END.finditer(text):
        end = match.end(1)
        # Match backwards: a pattern for the end of a word would be tried from every start.
        word = _WORD.match(text[max(0, end - _LINE_REACH) : end][::-1])
        if word is not None and is_mixed_word(word[0][::-1]):
            gap = _WRAPPED.match(text, end)
            if gap is not None:
                yield gap
