"""Common words of many languages: they reveal a text's language, but do not help find passages.

The lists are in common_words.toml.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain, islice
from types import MappingProxyType
from typing import Final

STOP_WORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        language: frozenset(words.split())
        for language, words in tomllib.loads(
            files("rag_assets.storage.index").joinpath("common_words.toml").read_text("utf-8")
        ).items()
    }
)
"""Common words by ISO 639-1 code, in lower case."""
COMMON_WORDS: Final = STOP_WORDS["en"]

_MIN_COMMON_SHARE: Final = 0.25
"""In a sentence, at least this share of the words are common words."""
_MIN_FOREIGN_WORDS: Final = 2
"""This many common words are evidence of a language other than English."""
_MIN_SENTENCE_WORDS: Final = 3
"""Minimum number of words in a sentence without common words."""
_MIN_SENTENCE_CHARACTERS: Final = 8
"""Minimum number of characters in a sentence in a script without spaces."""
_MIN_PROBABILITY: Final = 0.8
"""Minimum probability at which a detected language is accepted. At this value, no English question
in the sets used to measure fusion is treated as another language."""
_MIN_KEY_WORDS: Final = 6
"""Minimum number of key words in plain letters to be treated like any other text. With fewer words,
names and words shared by several languages would decide the detected language."""
_MIN_PROBABILITY_OF_SHORT: Final = 0.99
"""The minimum probability for fewer key words without common words of the language."""
_LAST_LATIN: Final = "\u024f"
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+"
)
SOUTHEAST_ASIAN: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u104c-\u108f"
    "\u109a-\u109d\u1780-\u17d3\u17d7\u17dc\u17dd\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
)
"""Letters, vowel signs and tone marks of Thai, Lao, Burmese and Khmer. These scripts do not
separate words."""
_SOUTHEAST_ASIAN: Final = re.compile(rf"[{SOUTHEAST_ASIAN}][{SOUTHEAST_ASIAN}\u200b-\u200d]*")
_KANA: Final = re.compile(r"[\u3041-\u30fa]")
_HAN_LANGUAGES: Final = frozenset({"zh", "ja"})
_SAMPLED_WORDS: Final = 100
"""Number of words inspected in a long text."""
GROUPED_NUMBER: Final = re.compile(
    r"(?<!\d[.,'’])\d{1,3}"
    r"(?:(?:,\d{2,3}){0,6},\d{3}(?:\.\d+)?|(?:\.\d{3}){1,7}(?:,\d+)?|(?:['’]\d{3}){1,7}(?:[.,]\d+)?)"
    r"(?![^\W_]|[.,:'’_]\d)"
)
"""A number with separators between groups of digits: 338,000 or 1.250.000,50.

The number of groups is limited, so that long lists of numbers are read in linear time.
"""
_WORD: Final = re.compile(rf"{GROUPED_NUMBER.pattern}|[^\W_]+(?:[_.\-/:'’][^\W_]+)*")
# Python does not treat vowel signs of these scripts as letters.
_MARKED_WORD: Final = re.compile(
    rf"[\u0900-\u0963\u0966-\u0dff\u200c\u200d]+|{_SOUTHEAST_ASIAN.pattern}|{_WORD.pattern}"
)
_MARKED: Final = re.compile(rf"[\u0900-\u0dff{SOUTHEAST_ASIAN}]")
_ELISION: Final = re.compile(r"^(?:[cdjlmnst]|qu|dell|all|nell|dall|sull)['’](?=\w)")


def find_significant_words(query: str) -> list[tuple[int, str]]:
    """Return the words of a query that are not common in its language, with their positions.

    Documents seldom contain questions. So a ranking by words would count `what` and `how` as rare
    and therefore important. A word in capitals, such as IT or US, is kept as a name. If all words
    are common, all are kept.
    """
    words = [*enumerate(_list_words(query))]
    common = STOP_WORDS[_find_dominant_language([word for _, word in words]) or "en"]
    significant = [
        (at, word) for at, word in words if _is_name(word) or _normalize(word) not in common
    ]
    return significant or words


def find_sentence_language(query: str) -> str | None:
    """Return the language of a query that is a sentence; None for key words, or if unknown.

    A sentence in English is a text in which at least a quarter of the words are common words. Other
    languages, such as Turkish with its suffixes, have short sentences without common words. For
    these, the detector of documents' languages decides if it is certain; otherwise the common words
    decide.
    """
    words = _list_words(query)
    language = _find_dominant_language(words)
    common = STOP_WORDS[language] if language else frozenset()
    if sum(_normalize(word) in common for word in words) < _MIN_COMMON_SHARE * len(words):
        language = None
    is_latin = _are_mostly_latin(words)
    if language == "en" and is_latin:
        return language
    # Imported here, because a process that never gets a question needs no detector.
    from rag_assets.ingest.parsing.languages import detect_text_language

    # Words in plain letters may be common words in other languages, as `go to` is in Polish.
    is_doubtful = language == "en" or (language is not None and query.isascii())
    is_short = query.isascii() and len(words) < _MIN_KEY_WORDS and "?" not in query
    guess = detect_text_language(
        query, is_guess=not is_short, min_probability=_MIN_PROBABILITY, min_bytes=0
    )
    if is_doubtful and guess != language:
        language = None
    detected = _find_detected_language(query, words)
    if is_short and detected not in {None, "en", language}:
        detected = detect_text_language(query, min_probability=_MIN_PROBABILITY_OF_SHORT)
    return language if detected == "en" and language is not None else detected or language


def is_english(query: str) -> bool:
    """Return whether a query is a sentence in English."""
    return find_sentence_language(query) == "en"


def is_certainly_english(query: str) -> bool:
    """Return whether a query is an English sentence, or key words that are certainly English."""
    language = find_sentence_language(query)
    if language is not None:
        return language == "en"
    from rag_assets.ingest.parsing.languages import detect_text_language

    return detect_text_language(query, min_probability=_MIN_PROBABILITY, min_bytes=0) == "en"


def _find_detected_language(query: str, words: Sequence[str]) -> str | None:
    """Return the detected language of a sentence; None if it is not certain."""
    letters = sum(len(run) for run in _UNSPACED.findall(query))
    if len(words) < _MIN_SENTENCE_WORDS and letters < _MIN_SENTENCE_CHARACTERS:
        return None
    from rag_assets.ingest.parsing.languages import detect_text_language

    language = detect_text_language(query, min_probability=_MIN_PROBABILITY)
    if language in _HAN_LANGUAGES:
        return "ja" if _KANA.search(query) else "zh"
    return language


def _are_mostly_latin(words: Sequence[str]) -> bool:
    letters = [letter for word in words for letter in word if letter.isalpha()]
    return 2 * sum(letter <= _LAST_LATIN for letter in letters) >= len(letters)


def find_prose_language(text: str) -> str | None:
    """Return the language of a text's common words; None if no language has two of them."""
    return _find_dominant_language([*islice(_iter_words(text), _SAMPLED_WORDS)], least=2)


def _find_dominant_language(words: Iterable[str], least: int = 1) -> str | None:
    """Return the language with the most common words among these; English wins a tie.

    A single word of plain letters is evidence only for English: `die`, `io` and `van` are common
    words in other languages.
    """
    by_word = _map_languages_by_word()
    common = [(word, those) for word in words if (those := by_word.get(_normalize(word)))]
    counts = Counter(chain.from_iterable(those for _, those in common))
    best = max(counts.values(), default=0)
    if best < least:
        return None
    language = next(language for language in STOP_WORDS if counts[language] == best)
    if language == "en" or best >= _MIN_FOREIGN_WORDS:
        return language
    return None if all(word.isascii() for word, _ in common) else language


@cache
def _map_languages_by_word() -> Mapping[str, tuple[str, ...]]:
    languages: dict[str, list[str]] = {}
    for language, words in STOP_WORDS.items():
        for word in words:
            languages.setdefault(word, []).append(language)
    return {word: tuple(those) for word, those in languages.items()}


def _list_words(text: str) -> list[str]:
    return [*_iter_words(text)]


def _iter_words(text: str) -> Iterator[str]:
    pattern = _WORD
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        if _MARKED.search(text):
            pattern = _MARKED_WORD
            text = _SOUTHEAST_ASIAN.sub(r" \g<0> ", text)  # a Latin word may be adjacent
    return (match.group() for match in pattern.finditer(text))


def _normalize(word: str) -> str:
    word = word.lower()
    return _ELISION.sub("", word) if "'" in word or "’" in word else word


def _is_name(word: str) -> bool:
    return len(word) > 1 and word.isupper()
