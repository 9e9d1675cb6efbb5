"""Coverage: whether a model was trained on the language and script of a text.

If a model was not trained on a script, its vocabulary has no words in that script. The tokenizer
then spells words letter by letter, or replaces them with an unknown token, so that vectors barely
depend on the meaning. In a language that the model was not trained on, but whose letters it knows,
vectors depend on names and on words that languages share.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from rag_assets.models.embedding.protocol import Embedder

Reading: TypeAlias = Literal["known", "foreign", "unread"]
"""How well a model reads a text. "foreign": the text is in a language that the model card does not
name."""

MULTILINGUAL_EMBEDDER: Final = "local/multilingual-e5-small"
"""Recommended if an embedder cannot read a tenant's documents or questions."""
UNREAD: Final = 1 / 3
"""Minimum share of letters in words outside the vocabulary at which a text counts as not read.

In each of 1,500 questions in Latin letters, all-MiniLM-L6-v2 leaves at most a quarter of the
letters unread. In Russian, Greek, Arabic, Hindi, Thai and Chinese questions, it leaves on average
at least two thirds unread; in Japanese questions, a third.
"""
_ENGLISH: Final = frozenset({"en"})
_MIN_NON_ENGLISH_SHARE: Final = 1 / 5
"""Minimum share of words with non-English letters at which a text is in another language.

An English question with one name from another language has a lower share, unless it is short.
"""
_MIN_WORDS: Final = 2
"""Minimum number of words with such letters. A single word may be a name or a loan word, as in
`Café opening hours`."""
_SHORT_TEXT_WORDS: Final = 6
"""In a text with fewer words than this, a single such word can be enough."""
_SYMBOLS: Final = re.compile(r"[\u00b5\u03bc]|(?<![^\W\d_])[\u0370-\u03ff](?![^\W\d_])")
"""The micro sign and single Greek letters, which are symbols of units and quantities."""
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_UNKNOWN: Final = frozenset({"[UNK]", "<unk>"})
_PIECES_PER_LETTER: Final = 0.75
"""Minimum number of pieces per letter at which a word counts as spelled letter by letter."""
_MIN_LETTERS: Final = 3
"""Minimum letters of a word that can count as spelled: shorter words are often written as single
letters."""
_MAX_CHARACTERS: Final = 2_000
"""Maximum number of characters of a text that are examined."""
_LOGOGRAM_RANGES: Final = (("\u2e80", "\u312f"), ("\u31a0", "\u9fff"), ("\uf900", "\ufaff"))
"""Ranges of Chinese and Japanese characters, each of which may be a word."""


def assess_reading(embedder: Embedder, text: str, language: str | None) -> Reading:
    """Return how well an embedder reads a text; `language` is an ISO 639-1 code, None if unknown.

    A text in an unknown language is foreign to an English model if its letters are not English.
    """
    if not covers_words(embedder, text):
        return "unread"
    trained = embedder.languages
    if trained is None:
        return "known"
    if language is None:
        return "foreign" if trained == _ENGLISH and _is_non_english_by_letters(text) else "known"
    return "known" if language in trained else "foreign"


def _is_non_english_by_letters(text: str) -> bool:
    """Return whether so many words have non-English letters that the text is not English."""
    words: list[str] = _LETTERS.findall(_SYMBOLS.sub("", text[:_MAX_CHARACTERS]))
    others = sum(_count_words(word) for word in words if not word.isascii())
    count = others + sum(word.isascii() for word in words)
    is_share = others >= _MIN_WORDS and others >= _MIN_NON_ENGLISH_SHARE * count
    return is_share or (count < _SHORT_TEXT_WORDS and 2 * others > count)


def _count_words(letters: str) -> int:
    """Return the number of words in a run of letters; each Chinese character counts as a word."""
    return max(1, sum(_classify_character(letter)[1] for letter in letters))


def covers_words(embedder: Embedder, text: str) -> bool:
    """Return whether an embedder's vocabulary covers the words of a text; True if unknown."""
    if text.isascii():  # every model has words in Latin letters
        return True
    share = embedder.compute_unread_share([text])
    return share is None or share < UNREAD


def measure_unread_share(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """Return the share of letters in words that a vocabulary does not cover; 0 without letters."""
    unread = letters = 0
    for text in texts:
        for count, is_covered in _measure_words(
            text[:_MAX_CHARACTERS], tokenizer.encode(text[:_MAX_CHARACTERS])
        ):
            letters += count
            unread += 0 if is_covered else count
    return unread / letters if letters else 0.0


def _measure_words(text: str, encoding: Encoding) -> Iterator[tuple[int, bool]]:
    """Yield each word's number of letters, and whether the vocabulary covers the word."""
    pieces = [
        (span, token in _UNKNOWN)
        for span, token, special in zip(
            encoding.offsets, encoding.tokens, encoding.special_tokens_mask, strict=True
        )
        if not special or token in _UNKNOWN
    ]
    end = max((span[1] for span, _ in pieces), default=0) if encoding.overflowing else len(text)
    first = 0
    for start, stop in _find_words(text):
        if stop > end:
            return
        while first < len(pieces) and pieces[first][0][1] <= start:
            first += 1
        within = []
        for span, is_unknown in pieces[first:]:
            if span[0] >= stop:
                break
            within.append(is_unknown)
        yield stop - start, not any(within) and not _is_spelled_out(len(within), stop - start)


def _is_spelled_out(pieces: int, letters: int) -> bool:
    """Return whether a word was spelled out; a short word then has more pieces than letters."""
    if letters < _MIN_LETTERS:
        return pieces > letters
    return pieces >= _PIECES_PER_LETTER * letters


def _find_words(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each word; a Chinese or Japanese character is a word."""
    for (is_word, is_sign), group in groupby(
        range(len(text)), lambda at: _classify_character(text[at])
    ):
        positions = [*group]
        if is_sign:
            yield from ((at, at + 1) for at in positions)
        elif is_word:
            yield positions[0], positions[-1] + 1


def _classify_character(character: str) -> tuple[bool, bool]:
    # Vowel signs of Indic scripts are in the category of marks, and are parts of words.
    is_word = unicodedata.category(character)[0] in "LM"
    return is_word, is_word and any(first <= character <= last for first, last in _LOGOGRAM_RANGES)
