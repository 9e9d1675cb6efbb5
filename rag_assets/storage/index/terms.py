"""Lexical search: the terms of texts and of queries, and the weights of a query's words.

Elasticsearch's standard analyzer does not split `snake_case_name`, and its core server has no
stemmer. This module does both. A text is analyzed in its language, and its first term names that
language. A query is analyzed in every language of the texts, so it matches texts of all languages.

A word score never depends on an entry that the search may not find: terms are weighted by their
frequency among the entries that pass the filter, and an entry's length is compared with a constant.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rag_assets.storage.index.common_words import (
    GROUPED_NUMBER,
    SOUTHEAST_ASIAN,
    find_prose_language,
    find_significant_words,
)

TERMS_VERSION: Final = 4
"""Increased whenever the same text yields other terms, so that all entries are written again."""
FORMER: Final = "former"
"""The analysis of entries of TERMS_VERSION 1: English stems in all languages, no folding."""
PLAIN: Final = "plain"
"""The analysis of texts in languages without a stemmer: words are only folded."""
MARK: Final = "lang="
"""Prefix of the term that names an entry's analysis. No word of a text contains its "="."""

_LATIN: Final = {
    "en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian",
    "pt": "portuguese", "nl": "dutch", "sv": "swedish", "da": "danish", "no": "norwegian",
    "fi": "finnish", "hu": "hungarian", "ro": "romanian", "ca": "catalan", "pl": "polish",
    "cs": "czech", "tr": "turkish", "et": "estonian", "lt": "lithuanian", "eu": "basque",
    "ga": "irish", "id": "indonesian", "eo": "esperanto",
}  # fmt: skip
_VIETNAMESE: Final = "vi"
_CYRILLIC: Final = {"ru": "russian", "sr": "serbian"}
_ARABIC: Final = {"ar": "arabic", "fa": "persian"}
_DEVANAGARI: Final = {"hi": "hindi", "ne": "nepali"}
_OTHERS: Final = {"el": "greek", "hy": "armenian", "ta": "tamil", "yi": "yiddish"}
_STEMMERS: Final[Mapping[str, str]] = MappingProxyType(
    _LATIN | _CYRILLIC | _ARABIC | _DEVANAGARI | _OTHERS
)
"""Snowball's algorithms by ISO 639-1 code."""
# In languages with a separate script and no stemmer, words in Latin letters are English.
_OWN_SCRIPTS: Final = "am bn gu he ja ka km kn ko lo ml my pa si te th zh"
_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    # `go` is a programming language.
    {"nb": "no", "nn": "no", "ms": "id", "hr": "sr", "bs": "sr", "go": "en"}
    | dict.fromkeys(_OWN_SCRIPTS.split(), "en")
)
ANALYSES: Final = (*_STEMMERS, _VIETNAMESE, PLAIN)
"""All analyses of entries of the present TERMS_VERSION."""
EVERY_ANALYSIS: Final = (FORMER, *ANALYSES)
"""All analyses of entries of the present and earlier versions."""
_SCRIPTS: Final = (
    # The first letter of a word, the languages written in its script, and the usual language among
    # them.
    (re.compile(r"[a-z\u00aa-\u024f\u1e00-\u1eff]"), frozenset({*_LATIN, _VIETNAMESE, "sr"}), "en"),
    (re.compile(r"[\u0400-\u052f]"), frozenset(_CYRILLIC), "ru"),
    (re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]"), frozenset({"el"}), "el"),
    (re.compile(r"[\u0600-\u06ff\u0750-\u077f]"), frozenset(_ARABIC), "ar"),
    (re.compile(r"[\u0900-\u097f]"), frozenset(_DEVANAGARI), "hi"),
    (re.compile(r"[\u0530-\u058f]"), frozenset({"hy"}), "hy"),
    (re.compile(r"[\u0b80-\u0bff]"), frozenset({"ta"}), "ta"),
    (re.compile(r"[\u0590-\u05ff]"), frozenset({"yi"}), PLAIN),
)

_CODE_LENGTH: Final = 2
_MAX_WORD: Final = 100
_SAMPLED_CHARACTERS: Final = 2_000
"""Number of characters of a text that are inspected to find its script."""
_WORD: Final = re.compile(rf"{GROUPED_NUMBER.pattern}|[^\W_]+(?:[_.\-/:][^\W_]+)*")
_PART: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
# For words with letters beyond ASCII: they are split at punctuation and digits, never at an umlaut.
_PLAIN_PART: Final = re.compile(r"[^\W\d_]+|\d+")
# Python does not treat vowel signs of Indic scripts as letters; dandas and digits are not parts of
# words.
_INDIC_WORD: Final = re.compile(
    rf"(?:(?![\u0964\u0965])[\u0900-\u0dff\u200c\u200d])+|{_WORD.pattern}"
)
_INDIC: Final = re.compile(r"[\u0900-\u0dff]")
_HANGUL: Final = re.compile(r"[\uac00-\ud7a3]+")
_IDEOGRAPHS: Final = "\u2e80-\u309f\u31f0-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA: Final = "\u30a0-\u30ff"
_SIGNS: Final = re.compile(rf"[{_IDEOGRAPHS}{_KATAKANA}]+")
_SIGN: Final = re.compile(rf"[{_KATAKANA}]{{1,100}}|[{_IDEOGRAPHS}]")
"""A character of Chinese or Japanese; a word in katakana counts as one character."""
_SOUTHEAST_ASIAN: Final = re.compile(rf"[{SOUTHEAST_ASIAN}]+")
_UNSEPARATED: Final = re.compile(rf"({_SIGNS.pattern}|{_SOUTHEAST_ASIAN.pattern})")
_PAIR, _TRIPLE = 2, 3
_UNMARKED: Final = re.compile(rf"[^\W\d_]{{{_TRIPLE + 1},}}")
"""Letters between marks, in runs longer than any term of the present TERMS_VERSION."""
_TERMS_PER_WORD: Final = (
    (re.compile(rf" (?=[{SOUTHEAST_ASIAN}])"), 10),
    (re.compile(rf" (?=[{_IDEOGRAPHS}{_KATAKANA}])"), 1.5),
)
"""Number of terms in the Thai and Chinese translations of XQuAD per term of its English text."""
_SYMBOL: Final = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")
_UNTYPED: Final = re.compile(
    # Soft hyphens, joiners, Arabic tatweel and vowels, Hebrew points, nuktas.
    "[\u00ad\u200b-\u200f\u2060\ufeff\u0640\u064b-\u065f\u0670\u0591-\u05bd\u05bf\u05c1\u05c2"
    "\u05c4\u05c5\u093c\u09bc\u0a3c\u0abc\u0b3c\u0cbc]"
)
_DIGITS: Final = re.compile(
    "[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0a66-\u0a6f\u0ae6-\u0aef\u0b66-\u0b6f"
    "\u0be6-\u0bef\u0c66-\u0c6f\u0ce6-\u0cef\u0d66-\u0d6f\u0e50-\u0e59\u0ed0-\u0ed9\u1040-\u1049\u1090-\u1099\u17e0-\u17e9]"
)
_STEMMER_LETTERS: Final[Mapping[str, Mapping[int, int]]] = MappingProxyType(
    {
        "ar": str.maketrans("یک", "يك"),
        "fa": str.maketrans("يكى", "یکی"),
        "ru": str.maketrans("ё", "е"),
        "hi": str.maketrans("ँ", "ं"),
    }
)
"""Letters that are typed in several ways, mapped to the form that a language's stemmer expects."""
_FOLDED: Final = str.maketrans(
    {"ß": "ss", "ı": "i", "ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th"}
    | {"ς": "σ", "ё": "е", "أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ة": "ه"}
    | {"ک": "ك"}
)
_MARKED: Final = re.compile(r"[\u00c0-\u024f\u1e00-\u1fff\u0386-\u03ce\u0300-\u036f]")
"""Latin and Greek letters that may have diacritics. In other scripts, diacritics make other
letters."""
_MARKS: Final = re.compile(r"[\u0300-\u036f]+")


def choose_analysis(text: str, language: str | None) -> str:
    """Return how a text is to be analyzed: a language, or another value of ANALYSES.

    Args:
        language: language of the text's document, an ISO 639-1 code or the name of a programming
            language; None if uncertain.
    """
    if language is not None and len(language) != _CODE_LENGTH:
        return "en"  # identifiers and comments of source code
    code = language or find_prose_language(text) or _find_usual_language(text)
    code = _ALIASES.get(code, code)
    return code if is_analyzed(code) else PLAIN


def is_analyzed(language: str) -> bool:
    """Return whether a language has a stemmer, so that forms of a word share a term."""
    return language in _STEMMERS or language == _VIETNAMESE


def compute_lexical_terms(text: str, analysis: str = "en") -> str:
    """Return the words of a text, whole and in parts, folded and stemmed, separated by spaces.

    `handleHTTPError` gives `handlehttperror handl http error`. Repeated words stay repeated, so
    that term frequencies keep their meaning. In scripts that do not separate words or their
    endings, the terms are sequences: pairs of adjacent characters in Chinese and Japanese, and
    pairs of syllables in Korean. In Thai, Lao, Burmese and Khmer, they are all pairs and triples of
    letters; a query uses the triples.
    """
    runs = _normalize(text).split()
    # Longer runs would fill the cache's memory.
    of_run = (
        _compute_run_terms
        if max(map(len, runs), default=0) <= _MAX_WORD
        else _compute_any_run_terms
    )
    return " ".join(filter(None, [of_run(run, analysis) for run in runs]))


def list_words(text: str) -> list[str]:
    """Return the words of a query, whole and in parts, in lower case, neither folded nor stemmed.

    Korean words are also returned whole, to match entries of TERMS_VERSION 1. For Thai and similar
    scripts, the letters between marks are also returned, to match entries of TERMS_VERSION 1 and 2.
    """
    parts: list[str] = []
    for word in _split_words_and_parts(_normalize(text)):
        parts += _split_parts(word)
        if is_sequence(word):
            parts += _UNMARKED.findall(word)
    return parts


def sum_word_weights(terms: str) -> float:
    """Return the sum of the weights of an entry's terms, as a number of words.

    A whole word counts as 1; a pair or triple of letters counts as a fraction of a word.
    """
    count: float = terms.count(" ")
    if not terms.isascii():
        for prefix, per_word in _TERMS_PER_WORD:
            parts = len(prefix.findall(terms))
            count -= parts - parts / per_word
    return count


def list_symbols(text: str) -> list[str]:
    """Return the pictographs (such as emoji) in a text, which are searched without analysis."""
    return [] if text.isascii() else _SYMBOL.findall(text)


@lru_cache(maxsize=1 << 13)
def build_forms(
    word: str, analyses: tuple[str, ...] = EVERY_ANALYSIS
) -> Mapping[str, frozenset[str]]:
    """Return the terms under which texts may contain a word, each with its analyses."""
    forms: dict[str, set[str]] = {}
    is_term, is_written = _is_term(word), is_phrase(word)
    for analysis in analyses:
        if analysis == FORMER and not is_written:
            forms.setdefault(_get_stemmer("english").stemWord(word), set()).add(FORMER)
        elif analysis != FORMER and is_term:
            forms.setdefault(_stem(word, analysis), set()).add(analysis)
    return MappingProxyType({form: frozenset(made_by) for form, made_by in forms.items()})


def is_phrase(word: str) -> bool:
    """Return whether entries of TERMS_VERSION 1 contain a word in their text but not as a term."""
    return any(kind.search(word) for kind in (_INDIC, _SIGNS, _SYMBOL))


def is_sequence(word: str) -> bool:
    """Return whether a word is a sequence of Thai, Lao, Burmese or Khmer letters."""
    return _SOUTHEAST_ASIAN.match(word) is not None


def _is_term(word: str) -> bool:
    """Return whether entries contain a query word as one term; longer words are stored as pairs."""
    if word.isascii():
        return True
    single = len(word) == 1 and _SIGNS.match(word) is not None
    return not single and not _SYMBOL.match(word) and not _is_long_hangul(word)


def _normalize(text: str) -> str:
    """Return a text in composed Unicode, with ASCII digits and without marks that nobody types."""
    if text.isascii():
        return text
    text = _UNTYPED.sub("", unicodedata.normalize("NFKC", text))
    return _DIGITS.sub(lambda digit: str(unicodedata.decimal(digit.group())), text)


def _compute_any_run_terms(run: str, analysis: str) -> str:
    terms_of = _compute_run_terms if len(run) <= _MAX_WORD else _compute_word_terms
    return terms_of(run, analysis)


# The cache holds words with the punctuation around them: in a bulk import most of them recur.
@lru_cache(maxsize=1 << 16)
def _compute_run_terms(run: str, analysis: str) -> str:
    return _compute_word_terms(run, analysis)


def _compute_word_terms(text: str, analysis: str) -> str:
    terms: list[str] = []
    for word in _split_words_and_parts(text):
        terms += [_stem(part, analysis) for part in _split_parts(word) if _is_term(part)]
        if _SIGNS.match(word):  # a word in katakana may be searched alone
            signs = _SIGN.findall(word)
            terms += [sign for sign in signs if len(sign) > 1 and len(signs) > 1]
        elif len(word) > _PAIR and is_sequence(word):  # a word of two letters may be searched alone
            terms += _list_sequences(word, _PAIR)
    return " ".join(terms)


def _split_words_and_parts(text: str) -> list[str]:
    if text.isascii():
        return [word for word in _WORD.findall(text) if len(word) <= _MAX_WORD]
    pattern = _INDIC_WORD if _INDIC.search(text) else _WORD
    words: list[str] = []
    for piece in _UNSEPARATED.split(text):
        if _UNSEPARATED.match(piece):
            words.append(piece)
        else:
            words += [word for word in pattern.findall(piece) if len(word) <= _MAX_WORD]
    return words


def _split_parts(word: str) -> list[str]:
    """Return a word in lower case, followed by its parts if it has several.

    A number with separators is followed by the number without them: 338,000 by 338000.
    """
    if GROUPED_NUMBER.fullmatch(word):
        separator = word.strip("0123456789")[0]
        whole = re.split(rf"[^\d{separator}]", word)[0]
        return [word, whole.replace(separator, ""), *re.findall(r"\d+", word)]
    if word.isascii():
        terms = [part.lower() for part in _PART.findall(word)]
        return [word.lower(), *terms] if len(terms) > 1 else terms
    if _INDIC.search(word):
        return [word.lower()]
    if _SIGNS.match(word):
        signs = _SIGN.findall(word)
        return [first + second for first, second in pairwise(signs)] or signs
    if is_sequence(word):
        return _list_sequences(word, _TRIPLE)
    parts = _PLAIN_PART.findall(word)
    terms = [part.lower() for part in parts]
    if len(parts) > 1:
        terms.insert(0, word.lower())
    for part in parts:
        if _is_long_hangul(part):
            terms += [first + second for first, second in pairwise(part)]
    return terms


def _list_sequences(letters: str, length: int) -> list[str]:
    """Return all sequences of this number of adjacent letters, or all letters if they are fewer."""
    beginnings = range(len(letters) - length + 1)
    return [letters[at : at + length] for at in beginnings] or [letters]


def _is_long_hangul(word: str) -> bool:
    return len(word) > len("가나") and _HANGUL.fullmatch(word) is not None


# Most runs of source code are new, but not their parts.
@lru_cache(maxsize=1 << 16)
def _stem(word: str, analysis: str) -> str:
    language = _choose_language(word, analysis)
    if language == PLAIN:
        return _fold_word(word)
    if language == _VIETNAMESE:  # diacritics distinguish its words
        return word
    table = _STEMMER_LETTERS.get(language)
    stem = _get_stemmer(_STEMMERS[language]).stemWord(
        word if table is None else word.translate(table)
    )
    return _fold_word(stem) or word


def _choose_language(word: str, analysis: str) -> str:
    """Return the language to stem a word in: the text's, or the usual language of its script."""
    if word[0].isdecimal():
        return PLAIN
    for letters, languages, usual in _SCRIPTS:
        if letters.match(word):
            return analysis if analysis in languages or analysis == PLAIN else usual
    return PLAIN


def _fold_word(word: str) -> str:
    """Return a word without Latin and Greek diacritics, and with variant letters unified."""
    if word.isascii():
        return word
    word = word.translate(_FOLDED)
    if not _MARKED.search(word):
        return word
    plain = _MARKS.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", plain)


def _find_usual_language(text: str) -> str:
    for word in _split_words_and_parts(text[:_SAMPLED_CHARACTERS]):
        for letters, _, usual in _SCRIPTS:
            if letters.match(word.lower()):
                return usual
    return "en"


@cache
def _get_stemmer(algorithm: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(algorithm)


MAX_TERMS: Final = 250
"""Maximum number of a query's words."""
MAX_CLAUSES: Final = 390
"""Maximum number of forms of these words; each form is a clause.

Elasticsearch rejects a query with more clauses than its memory allows, which may be as few as
1,024. Each filter is a clause, too.
"""
MAX_TITLE_WORDS: Final = 90
"""Maximum number of words searched in titles and headings; each of them takes two clauses."""
MAX_WRITTEN_FIELDS: Final = 4
"""Maximum number of fields in which a word is searched as it is written."""
TITLE_WEIGHT: Final = 0.3
"""Weight of a word in title or headings, in addition to its weight as a term.

All passages of a document share its title, so the title must not outweigh a passage's text.
"""
PAIR_WEIGHT: Final = 0.5
"""Weight of two adjacent words of a query that are also adjacent in a text, relative to the mean
weight of both words. A passage with a phrase thus precedes passages with its words apart.

Source: Metzler and Croft, A Markov Random Field Model for Term Dependencies (SIGIR 2005).
"""
MAX_PAIRS: Final = 100
"""Maximum number of clauses for pairs of words."""
_MAX_GAP: Final = 3
"""Maximum number of common words between the words of a pair."""


@dataclass(frozen=True, slots=True)
class QueryWords:
    """The words of a query.

    Attributes:
        terms: words as `list_words` returns them, each with its number of occurrences in the query.
        title_words: words as they are searched in titles and headings, each with its parts in
            `terms`.
        pairs: words of `terms` that follow each other, each pair with the number of common words
            between them.
        analyses: the expected analyses of the entries.
    """

    terms: Mapping[str, int]
    title_words: Mapping[str, tuple[str, ...]]
    pairs: Mapping[tuple[str, str], int]
    analyses: tuple[str, ...] = EVERY_ANALYSIS

    @property
    def forms(self) -> frozenset[str]:
        """Return all terms that entries may contain for the words of the query."""
        return frozenset(form for word in self.terms for form in build_forms(word, self.analyses))

    @property
    def marks(self) -> tuple[str, ...]:
        """Return the analyses that entries name in a separate term (a mark): all but FORMER."""
        return tuple(analysis for analysis in self.analyses if analysis != FORMER)

    @property
    def phrases(self) -> tuple[str, ...]:
        """Return the words to search in texts as written: some entries have no term for them."""
        return tuple(word for word in self.terms if self.is_written(word, self.analyses))

    @staticmethod
    def is_written(word: str, analyses: tuple[str, ...]) -> bool:
        """Return whether a word must be searched in texts as written, given these analyses."""
        return is_phrase(word) and (FORMER in analyses or not build_forms(word, analyses))


class WeighedWord(NamedTuple):
    """A word of a query, with its weight and the forms in which it is searched.

    Attributes:
        forms: terms for the word; only the best match counts.
    """

    weight: float
    forms: tuple[str, ...]
    is_written: bool


class WeighedPair(NamedTuple):
    """Two adjacent words of a query, with their weight.

    Attributes:
        phrases: both words in each of their forms; only the best match counts.
        gap: maximum number of terms between them.
    """

    weight: float
    phrases: tuple[str, ...]
    gap: int


def parse_query_words(query: str, analyses: tuple[str, ...] = EVERY_ANALYSIS) -> QueryWords:
    """Return the words of a query without common words; a very long query is cut off."""
    return QueryWords(*_split_words(query), analyses)


@lru_cache(maxsize=64)  # a search asks for the same words several times
def _split_words(
    query: str,
) -> tuple[Mapping[str, int], Mapping[str, tuple[str, ...]], Mapping[tuple[str, str], int]]:
    # A joiner within a word must not split it: the halves of Persian verbs are common words.
    significant = [
        (at, word, tuple(list_words(word)))
        for at, word in find_significant_words(_UNTYPED.sub("", query))
    ]
    all_parts = [part for _, _, parts in significant for part in parts]
    terms = Counter([*list_symbols(query), *all_parts][:MAX_TERMS])
    distinct = {word: parts for _, word, parts in significant}
    written = {
        word: parts
        for word, parts in islice(distinct.items(), MAX_TITLE_WORDS)
        if parts and not any(is_phrase(piece) or is_sequence(piece) for piece in parts)
    }
    pairs = {
        (left[-1], right[0]): end - begin - 1
        for (begin, _, left), (end, _, right) in pairwise(significant)
        if left and right and left[-1] != right[0] and end - begin - 1 <= _MAX_GAP
    }
    return MappingProxyType(terms), MappingProxyType(written), MappingProxyType(pairs)


def weigh_words(
    words: QueryWords,
    entries: int,
    *,
    forms: Mapping[str, int],
    phrases: Mapping[str, int],
    marks: Mapping[str, int],
) -> dict[str, WeighedWord]:
    """Return the words of a query that some entry contains, each with its weight.

    A word is searched only in the forms that it has in the languages of these entries, because a
    stem in another language may be another word.

    Args:
        forms: by form of a word, the number of these entries that have the form as a term.
        phrases: by word, the number of these entries that contain the word as it is written.
        marks: by analysis, the number of these entries that name it (see QueryWords.marks).
    """
    analyses = list_analyses(entries, marks)
    weighed: dict[str, WeighedWord] = {}
    clauses = 0
    for word in words.terms:
        searched = tuple(form for form in build_forms(word, analyses) if forms.get(form))
        is_written = words.is_written(word, analyses)
        clauses += len(searched) + MAX_WRITTEN_FIELDS * is_written
        if clauses > MAX_CLAUSES:
            break
        holders = sum(forms[form] for form in searched)
        if is_written:
            holders = max(holders, phrases.get(word, 0))
        if holders:
            weight = compute_rarity(entries, min(holders, entries))
            weighed[word] = WeighedWord(weight, searched, is_written)
    return weighed


def weigh_pairs(words: QueryWords, weighed: Mapping[str, WeighedWord]) -> list[WeighedPair]:
    """Return the pairs of a query's words that entries may contain, each with its weight.

    Args:
        weighed: the query's words that some entry contains (see `weigh_words`).
    """
    pairs: list[WeighedPair] = []
    clauses = 0
    for (left, right), gap in words.pairs.items():
        if left not in weighed or right not in weighed:
            continue
        first, second = build_forms(left), build_forms(right)
        phrases = tuple(
            f"{form} {other}"
            for form in weighed[left].forms
            for other in weighed[right].forms
            if first[form] & second[other]  # An entry has a single analysis.
        )
        clauses += len(phrases)
        if clauses > MAX_PAIRS:
            break
        if phrases:
            weight = PAIR_WEIGHT * (weighed[left].weight + weighed[right].weight) / 2
            pairs.append(WeighedPair(weight, phrases, gap))
    return pairs


def list_analyses(entries: int, marks: Mapping[str, int]) -> tuple[str, ...]:
    """Return the analyses of entries, with FORMER if some entries have no analysis mark."""
    present = [analysis for analysis in ANALYSES if marks.get(analysis)]
    return (FORMER, *present) if sum(marks.values()) < entries else tuple(present)


def compute_rarity(entries: int, holders: int) -> float:
    """Return the weight of a term: the inverse document frequency of BM25."""
    return math.log(1 + (entries - holders + 0.5) / (holders + 0.5))
