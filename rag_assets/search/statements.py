"""Statements: sentences and clauses of claims and passages, parsed to be compared.

A word of a statement has its stem, and the clause and segment it stands in. Statements are compared
by the words that they share, and by words that exclude each other.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain, groupby
from typing import Final, TypeAlias

from rag_assets.search.sentences import (
    blank_addresses,
    blank_markers,
    normalize_characters,
    split_answer,
)
from rag_assets.search.words import (
    BOUNDS,
    CONTRASTS,
    EXCEPTIVES,
    IRREGULAR,
    NECESSITY,
    QUANTIFIERS,
    RELATIVES,
    UNSPACED,
    find_stemmer,
    get_word_list,
    list_negative_stems,
    list_opposites,
    parse_word_values,
)
from rag_assets.storage.index.common_words import COMMON_WORDS

_TOKEN: Final = re.compile(
    r"\d+(?:[:.,]\d+)+|[^\W_]+(?:[_.\-/][^\W_]+)*(?:['’](?:t|s)(?!\w))?|[,;:()–—、，；。]"
)
_UNSPACED_SIGN: Final = re.compile(r"[a-z0-9]+|[^\W_]|[,;:()–—、，；。]")
_CONTRACTED: Final = re.compile(r"(?:n['’]t|['’]s)$")
_HAVE_TO: Final = re.compile(r"\b(?:has|have|had) to\b")
_MIN_LETTERS: Final = 4
"""Minimum letters of a content word, in languages without a list of stop words."""
_MAX_CACHED_SENTENCES: Final = 4_096
"""Maximum number of parsed passage sentences in the cache, at about 200 bytes per word."""
_MAX_CACHED_CHARACTERS: Final = 400
"""Maximum characters of a cached sentence, since a fence may be as long as its passage."""
_NEIGHBOUR_WORDS: Final = 2
_TRAILING_NEGATION_LANGUAGES: Final = frozenset({"de", "nl", "sv", "da", "no"})
"""Languages in which a negation may come after the word that it negates."""
_ABILITY_WORDS: Final = frozenset({"can", "could", "might"})
"""Words for an ability, which a necessity may imply."""
_ENABLING_STEMS: Final = frozenset({"abl", "allow", "permit"})
"""Stems of verbs that enable somebody to do something."""
_SUBJECT_VERBS: Final = frozenset({"buy", "import", "upload", "send", "lend"})
"""Converse verbs, one from each group. Which verb of a group fits depends on the subject, not on
the object."""
Alignment: TypeAlias = tuple[float, Sequence[tuple[int, int, int, int]]]
_Side: TypeAlias = tuple[bool, frozenset[str], frozenset[str]]
# All patterns run in linear time: repetitions are bounded, or can start in one place only.
_NUMBER: Final = r"(?<!\d)\d{1,20}(?:[.,]\d{1,20}){0,20}"
_VALUE: Final = rf"(?P<value>{_NUMBER}|[^\W\d_]{{1,20}})"
_VALUE_BEFORE: Final = rf"(?P<value>{_NUMBER}|(?<![^\W\d_])[^\W\d_]{{1,20}})"
_SIDES: Final = {
    phrase: name.partition("_")[0] for name, phrases in BOUNDS.items() for phrase in phrases
}
_BOUNDS_BEFORE: Final = "|".join((*BOUNDS["low"], *BOUNDS["high"]))
_BOUNDS_AFTER: Final = "|".join((*BOUNDS["low_after"], *BOUNDS["high_after"]))
_BOUNDED: Final = (
    re.compile(rf"(?<!\w)(?P<bound>{_BOUNDS_BEFORE})\s?(?:[€$£]\s?)?{_VALUE}"),
    re.compile(rf"{_VALUE_BEFORE}\s?(?:[^\W\d_]{{1,20}}\s?)?(?P<bound>{_BOUNDS_AFTER})(?!\w)"),
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a clause.

    Attributes:
        clause: index of its clause within the sentence.
        part: index of its segment; commas and words such as "but" separate segments.
        has_meaning: False for a stop word.
    """

    written: str
    stem: str
    clause: int
    part: int
    has_meaning: bool


@dataclass(frozen=True)
class ParsedStatement:
    """A sentence or a clause, split into words."""

    words: tuple[Word, ...]
    language: str

    def __hash__(self) -> int:
        """Return the hash of the words; it is computed only once because it is used often."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.words)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of the content words, and of all other words that have opposites."""
        return frozenset(word.stem for word in self.words)

    @cached_property
    def content(self) -> frozenset[str]:
        """Return the stems of the content words."""
        return frozenset(word.stem for word in self.words if word.has_meaning)

    @cached_property
    def stems_with_opposites(self) -> Sequence[str]:
        """Return the stems of the words that have opposites."""
        return sorted(self.stems & get_opposites_by_stem(self.language).keys())

    @cached_property
    def pairs(self) -> dict[ParsedStatement, Sequence[tuple[str, str]]]:
        """Return a cache of list_opposite_pairs, by the statement that is compared."""
        return {}

    @cached_property
    def alignments(self) -> dict[ParsedStatement, Alignment]:
        """Return a cache of align_words, by the statement that is compared."""
        return {}

    @cached_property
    def negated_clauses(self) -> frozenset[int]:
        """Return the indexes of the negated clauses."""
        negators = get_word_list("negators", self.language)
        counts = Counter(word.clause for word in self.words if word.written in negators)
        begins = {word.clause: word.written for word in reversed(self.words)}
        return frozenset(
            clause
            for clause, count in counts.items()
            # In French, ne ... pas is one negation.
            if (count % 2 or self.language == "fr") and not (clause and begins[clause] in RELATIVES)
        )

    @cached_property
    def denied_content(self) -> frozenset[str]:
        """Return the stems of the content words in negated clauses."""
        words = (word for word in self.words if word.clause in self.negated_clauses)
        return frozenset(word.stem for word in words if word.has_meaning)

    @cached_property
    def restrictors(self) -> frozenset[str]:
        """Return the restrictors of the statement, such as "only" and "unless"."""
        return get_word_list("restrictors", self.language) & {word.written for word in self.words}

    @cached_property
    def is_unclear(self) -> bool:
        """Return whether a negation stands in a relative clause, whose end cannot be recognized."""
        negators = get_word_list("negators", self.language)
        begins = {word.clause: word.written for word in reversed(self.words)}
        within = {clause for clause, word in begins.items() if clause and word in RELATIVES}
        return any(word.written in negators and word.clause in within for word in self.words)

    def find_clauses(self, stems: Container[str]) -> frozenset[int]:
        """Return the indexes of the clauses that contain at least one of the stems."""
        return frozenset(word.clause for word in self.words if word.stem in stems)

    def list_other_words(self, stems: Container[str]) -> Sequence[Word]:
        """Return the words without these stems; empty if no word has one of these stems."""
        others = [word for word in self.words if word.stem not in stems]
        return others if len(others) < len(self.words) else ()

    def find_inverting_words(self, stems: frozenset[str]) -> frozenset[str]:
        """Return the words that may invert a negation, in clauses with one of the stems."""
        clauses = self.find_clauses(stems)
        words = [word for word in self.words if word.clause in clauses]
        restrictors = get_word_list("restrictors", self.language) & {word.written for word in words}
        return restrictors | (list_negative_stems(self.language) & {word.stem for word in words})

    @cached_property
    def parts(self) -> tuple[ParsedStatement, ...]:
        """Return the segments between commas and contrasts; without any, the statement itself."""
        parts = [tuple(part) for _, part in groupby(self.words, key=lambda word: word.part)]
        return tuple(ParsedStatement(part, self.language) for part in parts)

    @cached_property
    def makes_exception(self) -> bool:
        """Return whether the statement makes an exception, for which the opposite holds."""
        return any(word.written in EXCEPTIVES for word in self.words)

    @cached_property
    def focus(self) -> frozenset[str]:
        """Return the stems of the words that negations apply to.

        This is the content word after a negation; in some languages, the one before it as well.
        """
        negators = get_word_list("negators", self.language)
        words: list[str] = []
        for at, word in enumerate(self.words):
            if word.written in negators:
                words += [after.stem for after in self.words[at:] if after.has_meaning][:1]
                if self.language in _TRAILING_NEGATION_LANGUAGES:
                    words += [before.stem for before in self.words[:at] if before.has_meaning][-1:]
        return frozenset(words)

    def find_polarities(self, stem: str) -> frozenset[bool]:
        """Return whether the clauses that contain a stem are negated: True, False or both."""
        return frozenset(
            word.clause in self.negated_clauses for word in self.words if word.stem == stem
        )


@dataclass(frozen=True, eq=False)
class StatementIndex:
    """Unique statements, indexed by word so that statements similar to a claim are found fast."""

    statements: tuple[ParsedStatement, ...]

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """Return the indexes of the statements that contain each stem."""
        positions = defaultdict[str, list[int]](list)
        for at, statement in enumerate(self.statements):
            for stem in statement.stems:
                positions[stem].append(at)
        return positions

    def find_similar(
        self, claim: ParsedStatement, min_share: float
    ) -> Iterator[tuple[ParsedStatement, float]]:
        """Yield the statements with at least a given share of a claim's words, and that share."""
        counts = Counter(at for stem in claim.content for at in self.places.get(stem, ()))
        # An upper bound: at best, every word of the claim that has opposites and is missing in a
        # statement is not counted.
        plain = len(claim.content.difference(claim.stems_with_opposites))
        for at, count in sorted(counts.items()):
            if count / max(count, plain) < min_share:
                continue
            if (share := compute_word_share(claim, self.statements[at])) >= min_share:
                yield self.statements[at], share


@dataclass(frozen=True, eq=False)
class ParsedPassage:
    """The sentences of a passage, in order, with the indexes that checking a claim needs."""

    sentences: tuple[ParsedStatement, ...]
    bounds: Mapping[str, Sequence[tuple[frozenset[str], ParsedStatement]]]
    """By number, the sides on which sentences bound it, and these sentences."""

    @classmethod
    def parse(cls, texts: Sequence[str], language: str) -> ParsedPassage:
        """Parse the sentences of one or more passages."""
        sentences = []
        bounds = defaultdict[str, list[tuple[frozenset[str], ParsedStatement]]](list)
        for text in chain.from_iterable(map(_split_sentences, texts)):
            is_short = len(text) <= _MAX_CACHED_CHARACTERS
            statement = (_parse_cached if is_short else parse_statement)(text, language)
            if statement.words:
                sentences.append(statement)
                for value, sides in parse_bounds(text, language).items():
                    bounds[value].append((frozenset(sides), statement))
        return cls(tuple(sentences), dict(bounds))

    @cached_property
    def sentence_index(self) -> StatementIndex:
        """Return the sentences, indexed by their words."""
        return StatementIndex(tuple(dict.fromkeys(self.sentences)))

    @cached_property
    def parts(self) -> StatementIndex:
        """Return the segments of the sentences, indexed by their words."""
        return StatementIndex(
            tuple(dict.fromkeys(part for sentence in self.sentences for part in sentence.parts))
        )

    @cached_property
    def content(self) -> frozenset[str]:
        """Return the stems of all content words."""
        return frozenset[str]().union(*(sentence.content for sentence in self.sentences))

    @cached_property
    def by_part(self) -> Mapping[ParsedStatement, int]:
        """Return the index of the first sentence that contains each segment."""
        indexes: dict[ParsedStatement, int] = {}
        for at, sentence in enumerate(self.sentences):
            for part in sentence.parts:
                indexes.setdefault(part, at)
        return indexes

    @cached_property
    def by_statement(self) -> Mapping[ParsedStatement, int]:
        """Return the index of the first sentence that equals or contains each statement."""
        indexes = dict(self.by_part)
        for at, sentence in enumerate(self.sentences):
            indexes[sentence] = min(at, indexes.get(sentence, at))
        return indexes


def compute_word_share(claim: ParsedStatement, statement: ParsedStatement) -> float:
    """Return the share of a claim's content words that a statement contains, 0 to 1.

    A word of the claim is ignored if the statement contains its opposite.
    """
    shared = claim.content & statement.stems
    contrary = {first for first, _ in list_opposite_pairs(claim, statement)}
    claimed = claim.content - (contrary - shared)
    return len(shared) / max(1, len(claimed))


def list_opposite_pairs(
    claim: ParsedStatement, statement: ParsedStatement
) -> Sequence[tuple[str, str]]:
    """Return pairs of opposite stems: one of the claim, and one of the statement."""
    if (pairs := claim.pairs.get(statement)) is None:
        pairs = claim.pairs[statement] = tuple(_find_opposites(claim, statement))
    return pairs


def _find_opposites(
    claim: ParsedStatement, statement: ParsedStatement
) -> Iterator[tuple[str, str]]:
    listed = get_opposites_by_stem(claim.language)
    for stem in claim.stems_with_opposites:
        for are_converses, side, others in listed[stem]:
            theirs = statement.stems & others
            if not theirs or claim.stems & others or statement.stems & side:
                continue
            pair = stem, min(theirs)
            are_verbs = bool(_SUBJECT_VERBS & (side | others))
            if _is_necessary_ability(claim, statement, pair):
                continue
            if not are_converses or _have_common_neighbour(
                claim, statement, pair, are_verbs=are_verbs
            ):
                yield pair


def _is_necessary_ability(
    claim: ParsedStatement, statement: ParsedStatement, pair: tuple[str, str]
) -> bool:
    """Return whether the "can" of one text and the "must" of the other are compatible.

    They are if "can" names what the necessity requires, or a way to fulfil it: the ticket must be
    shown, and it can be shown on a phone.
    """
    mine, theirs = pair
    if NECESSITY not in pair or not _ABILITY_WORDS.intersection(pair):
        return False
    if mine == NECESSITY:
        return bool(_ENABLING_STEMS & _list_neighbours(claim, mine)[1])
    return bool(
        _ENABLING_STEMS & _list_neighbours(statement, theirs)[1] or claim.content - statement.stems
    )


def _have_common_neighbour(
    claim: ParsedStatement, other: ParsedStatement, pair: tuple[str, str], *, are_verbs: bool
) -> bool:
    """Return whether the same words follow two words, and also precede them if they are verbs."""
    (before, after), (their_before, their_after) = (
        _list_neighbours(claim, pair[0]),
        _list_neighbours(other, pair[1]),
    )
    if before & their_before and after & their_after:
        return True
    if after and their_after:
        return bool(after & their_after) and not are_verbs
    return bool(before & their_before) and not (after or their_after)


def _list_neighbours(
    statement: ParsedStatement, stem: str
) -> tuple[frozenset[str], frozenset[str]]:
    at = next(number for number, word in enumerate(statement.words) if word.stem == stem)
    before = [word.stem for word in statement.words[:at] if word.has_meaning]
    after = [word.stem for word in statement.words[at + 1 :] if word.has_meaning]
    return frozenset(before[-_NEIGHBOUR_WORDS:]), frozenset(after[:_NEIGHBOUR_WORDS])


def align_words(claim: ParsedStatement, statement: ParsedStatement) -> Alignment:
    """Return which share of a claim's words a statement has in order, and the replacements.

    A replacement is the start and end of words in the claim, then the start and end of the words in
    the statement that they replace.
    """
    if (known := claim.alignments.get(statement)) is None:
        mine = [word.stem for word in claim.words]
        theirs = [word.stem for word in statement.words]
        matcher = difflib.SequenceMatcher(None, mine, theirs, autojunk=False)
        common = sum(block.size for block in matcher.get_matching_blocks())
        replaced = tuple(code[1:] for code in matcher.get_opcodes() if code[0] == "replace")
        known = claim.alignments[statement] = (common / max(1, len(mine)), replaced)
    return known


@cache
def get_opposites_by_stem(language: str) -> Mapping[str, Sequence[_Side]]:
    """Return the groups of opposites that contain each stem.

    Returns:
        For each group: whether its sides are converses, such as buy and sell; the stem's own side,
            which contains its synonyms; and the stems of all other sides.
    """
    opposites: dict[str, list[_Side]] = {}
    for are_converses, sides in list_opposites(language):
        for side in sides:
            others = frozenset[str]().union(*(other for other in sides if other is not side)) - side
            for stem in side:
                opposites.setdefault(stem, []).append((are_converses, side, others))
    return opposites


@lru_cache(maxsize=32)
def parse_passages(texts: tuple[str, ...], language: str) -> ParsedPassage:
    """Return the parsed sentences of passages; cached, since every claim needs them."""
    return ParsedPassage.parse(texts, language)


def parse_statement(sentence: str, language: str) -> ParsedStatement:
    """Parse the words of a sentence."""
    return ParsedStatement(_parse_words(sentence, language), language)


# Many claims cite the same passages.
_parse_cached = lru_cache(maxsize=_MAX_CACHED_SENTENCES)(parse_statement)


def _parse_words(text: str, language: str) -> tuple[Word, ...]:
    folded = normalize_characters(blank_addresses(text))
    if language in UNSPACED:
        return tuple(_iter_unspaced_words(folded, language))
    return tuple(_iter_spaced_words(folded, language))


def _iter_spaced_words(text: str, language: str) -> Iterator[Word]:
    stemmer, starts = find_stemmer(language), get_word_list("clauses", language)
    unmeant = get_word_list("negators", language) | starts | QUANTIFIERS
    necessary = get_word_list("necessary", language)
    clause, part, is_begun = 0, 0, False
    text = _HAVE_TO.sub("must", text.replace("’", "'")) if language == "en" else text
    for token in _TOKEN.findall(text):
        if not token[0].isalnum() or token in starts:
            part += is_begun and (not token[0].isalnum() or token in CONTRASTS)
            clause, is_begun = clause + is_begun, False
            if not token[0].isalnum():
                continue
        word = _CONTRACTED.sub("", token)
        if token.endswith("n't") and language == "en":
            yield Word("not", "not", clause, part, has_meaning=False)
        is_begun = True
        if word in necessary:
            yield Word(word, NECESSITY, clause, part, has_meaning=True)
            continue
        is_common = word in COMMON_WORDS if language == "en" else len(word) < _MIN_LETTERS
        has_meaning = not is_common and word not in unmeant
        yield Word(
            word, stemmer.stemWord(IRREGULAR.get(word, word)), clause, part, has_meaning=has_meaning
        )


def _iter_unspaced_words(text: str, language: str) -> Iterator[Word]:
    """Yield the words of a text that are in the word lists, and its other characters one by one."""
    negators = get_word_list("negators", language)
    clause = 0
    for token in _compile_unspaced_pattern(language).findall(text):
        if not token[0].isalnum():
            clause += 1
            continue
        yield Word(token, token, clause, clause, has_meaning=token not in negators)


@cache
def _compile_unspaced_pattern(language: str) -> re.Pattern[str]:
    """Compile a pattern that matches a word in a language's lists, or else one character."""
    listed = {word for _, sides in list_opposites(language) for side in sides for word in side}
    listed |= get_word_list("negators", language) | get_word_list("restrictors", language)
    longest = sorted(listed, key=len, reverse=True)
    return re.compile("|".join([*map(re.escape, longest), _UNSPACED_SIGN.pattern]))


@lru_cache(maxsize=_MAX_CACHED_SENTENCES)
def parse_bounds(text: str, language: str) -> Mapping[str, set[str]]:
    """Return the sides ("low", "high") on which a sentence bounds each number.

    A negation swaps the sides.
    """
    folded, bounds = normalize_characters(text), dict[str, set[str]]()
    remaining_text = folded
    for pattern in _BOUNDED:
        for bound in pattern.finditer(folded):
            values = parse_word_values(bound["value"])
            written = f"{min(values):g}" if values else bound["value"]
            if written[0].isdigit():
                bounds.setdefault(written, set()).add(_SIDES[bound["bound"]])
        remaining_text = pattern.sub(r"\g<value>", remaining_text)
    statement, turned = (
        ParsedStatement(_parse_words(remaining_text, language), language),
        {"low": "high", "high": "low"},
    )
    for value, sides in bounds.items():
        if any(
            True in statement.find_polarities(stem)
            for stem in iter_stems_of_value(statement, value)
        ):
            bounds[value] = {turned[side] for side in sides}
    return bounds


def iter_stems_of_value(statement: ParsedStatement, value: str) -> Iterator[str]:
    """Yield the stems of the words of a statement that stand for a number."""
    for word in statement.words:
        if word.written == value or value in {
            f"{word_value:g}" for word_value in parse_word_values(word.written)
        }:
            yield word.stem


@lru_cache(maxsize=64)
def _split_sentences(passage: str) -> tuple[str, ...]:
    """Return the sentences of a passage without citation markers; the last results are cached."""
    return tuple(blank_markers(passage[part.start : part.end]) for part in split_answer(passage))
