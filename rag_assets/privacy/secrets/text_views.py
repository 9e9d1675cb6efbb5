"""Other ways to read a text: what a layout, an alphabet or an encoding hides from a rule.

A view is a text with, for each of its characters, its place in the original.
What is found in a view is masked in the original.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag_assets.privacy.secrets.spans import SecretSpan

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
    rf"[{_INVISIBLE}{_TWIN_LETTERS}\u00a0\u2002-\u200a\u202f\u3000\uff01-\uff5e\U0001d400-\U0001d7ff\u2460-\u24ff]+"
)
_BESIDE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/+=:-")
_LEAST_DISGUISED = 3


@dataclass(frozen=True, slots=True)
class View:
    """A way to read a text.

    Attributes:
        text: as it is read.
        starts: for each character of it, where what it stands for begins in the original.
        ends: likewise, where it ends.
    """

    text: str
    starts: list[int]
    ends: list[int]

    def original(self, span: SecretSpan) -> SecretSpan:
        """The place in the original of what was found in the view."""
        return SecretSpan(self.starts[span.start], self.ends[span.end - 1], span.rule)


class ViewBuilder:
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
    """Long runs with a digit in them: all that a layout or an encoding may hide."""
    return [found.span() for found in _CANDIDATE.finditer(text) if _DIGIT.search(found[0])]


def loosened(text: str, places: Sequence[tuple[int, int]]) -> View | None:
    """Lines with a candidate in them, marks beside words read as blanks; None: there are none.

    Libraries' rules mostly ask for a quotation mark, a blank or the end of the text after a token,
    and so overlook one in bold type or at the end of a sentence.
    """
    builder = ViewBuilder()
    done = 0
    for first, last in places:
        if first < done or not _is_enclosed(text, first, last):
            continue
        start = text.rfind("\n", done, first) + 1 or done
        end = text.find("\n", last)
        done = len(text) if end < 0 else end + 1
        builder.keep(_MARKUP.sub(_blank, text[start:done]), start)
    view = builder.view()
    return view if view.text else None


def _is_enclosed(text: str, first: int, last: int) -> bool:
    """Whether a mark is beside a candidate, or ends it, that a library's rule may not expect."""
    if text[last - 1] in ".:~%_" or text[first] in ".:~_":
        return True
    return not (_is_open(text[first - 1 : first]) and _is_open(text[last : last + 1]))


def _is_open(beside: str) -> bool:
    return not beside or beside in " \t\r\n\"'"


def _blank(mark: re.Match[str]) -> str:
    return " " * len(mark[0])


def folded(text: str) -> View | None:
    """Lines with letters of other alphabets in a word, full-width forms, or what cannot be seen."""
    if text.isascii():
        return None
    builder = ViewBuilder()
    disguised = filter(_is_disguise, _DISGUISE.finditer(text))
    for start, end in lines_of(text, disguised):
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


def is_mixed_word(word: str) -> bool:
    """Whether digits stand beside letters, or capitals within: as in no word of a language."""
    if _DIGIT.search(word):
        return _LETTER.search(word) is not None
    return _HUMP.search(word) is not None


def lines_of(text: str, places: Iterable[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """The lines in which matches stand, each once."""
    done = 0
    for found in places:
        if found.start() < done:
            continue
        start = text.rfind("\n", done, found.start()) + 1 or done
        end = text.find("\n", found.end())
        done = len(text) if end < 0 else end + 1
        yield start, done
