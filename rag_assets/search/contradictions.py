"""Contradictions between a claim and the passage sentence that it nearly repeats.

Only claims that share most words with a sentence or clause of the passage are judged, since other
wordings cannot be compared without a model. A claim contradicts such a sentence if it:

- denies what the sentence states, or states what the sentence denies;
- has the opposite of one of its words;
- bounds a number on the other side;
- swaps two of its words; or
- replaces one of its words with a word of another sentence.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import chain, groupby
from typing import Final, TypeAlias

from rag_assets.search.addresses import blank_addresses
from rag_assets.search.citation_markers import blank_markers
from rag_assets.search.figure_words import word_values
from rag_assets.search.numbers import plain_text
from rag_assets.search.opposite_words import (
    ARTICLES,
    CLAUSES,
    CONJUNCTIONS,
    CONTRASTS,
    DETERMINERS,
    EXCEPTIVES,
    HIGH,
    HIGH_AFTER,
    IRREGULAR,
    JOINS,
    LACKING,
    LOW,
    LOW_AFTER,
    NECESSITY,
    QUANTIFIERS,
    RELATIVES,
    UNIVERSALS,
    UNSPACED,
    counterparts_of,
    necessity_of,
    opposites_of,
    stemmer_of,
    stems_that_deny,
    words_of,
)
from rag_assets.search.sentences import pieces_of
from rag_assets.storage.index.common_words import COMMON_WORDS

_TOKEN: Final = re.compile(
    r"\d+(?:[:.,]\d+)+|[^\W_]+(?:[_.\-/][^\W_]+)*(?:['’](?:t|s)(?!\w))?|[,;:()–—、，；。]"
)
_UNSPACED_SIGN: Final = re.compile(r"[a-z0-9]+|[^\W_]|[,;:()–—、，；。]")
_CONTRACTED: Final = re.compile(r"(?:n['’]t|['’]s)$")
_HAVE_TO: Final = re.compile(r"\b(?:has|have|had) to\b")
_LEAST_LETTERS: Final = 4
"""Minimum letters of a content word, in languages without a list of stop words."""
_COMPARABLE: Final = 0.5
"""Minimum share of a claim's words that a sentence must contain to be compared with the claim."""
_DENIED_APART: Final = 0.4
"""The same minimum for a sentence whose statement the claim denies."""
_NEAR: Final = 0.15
"""A sentence may also be the one the claim repeats if its share is within this distance of the
best."""
_WHOLE: Final = 0.75
"""Minimum share of a claim's words in a clause that is compared without its sentence."""
_DENIED: Final = 0.6
"""Minimum share of opposed words among the words that the denied clauses have in common."""
_SAME_PREDICATE: Final = 0.7
"""Minimum share of the words in a claim's clauses that the sentence also has, denied or not."""
_OF_CLAUSE: Final = 0.4
"""Minimum share of opposed words among all words in denied clauses."""
_NEVER: Final = frozenset({"not", "never", "nicht", "nie"})
_ONLY: Final = frozenset({"only", "nur"})
_SAME_ORDER: Final = 0.75
"""Minimum similarity of word order at which a widened scope is looked for."""
_ALIKE: Final = 0.6
"""Minimum similarity of word order at which a replaced word is looked for."""
_MOST_CACHED: Final = 4_096
"""Maximum number of parsed passage sentences in the cache, at about 200 bytes per word."""
_LONGEST_CACHED: Final = 400
"""Maximum characters of a cached sentence, since a fence may be as long as its passage."""
_BESIDE: Final = 2
_MOST_WORDS: Final = 80
_MOST_REPLACED: Final = 3
_LEAST_PREFIXED: Final = 4
_SURE_PREFIXES: Final = ("un", "dis")
_PREFIXES: Final = {"en": ("un", "in", "im", "ir", "il", "non", "dis"), "de": ("un",)}
_EXCHANGED: Final = frozenset({"en", "fr", "es", "it", "pt"})
"""Languages in which word order determines who does what."""
_BEFORE_ANAPHOR: Final = 2
_DENY_BEHIND: Final = frozenset({"de", "nl", "sv", "da", "no"})
"""Languages in which a negation may come after the word that it negates."""
_BEYOND_WORDS: Final = (
    "larger bigger greater higher longer heavier over above beyond exceeding after"
)
_BEYOND: Final = frozenset(_BEYOND_WORDS.split())
"""Words for values outside a bound."""
_WITHIN: Final = frozenset({"within", "under", "below", "up", "most", "maximum"})
"""Words for values within a bound."""
_ABLE: Final = frozenset({"can", "could", "might"})
"""Words for an ability, which a necessity may imply."""
_ENABLED: Final = frozenset({"abl", "allow", "permit"})
"""Stems of verbs that enable somebody to do something."""
_SUBJECTS: Final = frozenset({"buy", "import", "upload", "send", "lend"})
"""Converse verbs, one from each group. Which verb of a group fits depends on the subject, not on
the object."""


@dataclass(frozen=True, slots=True)
class _Word:
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
class _Statement:
    """A sentence or a clause."""

    words: tuple[_Word, ...]
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
    def listed(self) -> Sequence[str]:
        """Return the stems of the words that have opposites."""
        return sorted(self.stems & _sides_by_stem(self.language).keys())

    @cached_property
    def pairs(self) -> dict[_Statement, Sequence[tuple[str, str]]]:
        """Return the cached results of _pairs_of_opposites, by the other statement."""
        return {}

    @cached_property
    def alignments(self) -> dict[_Statement, _Alignment]:
        """Return the cached results of _align, by the other statement."""
        return {}

    @cached_property
    def denied(self) -> frozenset[int]:
        """Return the indexes of the negated clauses."""
        negators = words_of("negators", self.language)
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
        words = (word for word in self.words if word.clause in self.denied)
        return frozenset(word.stem for word in words if word.has_meaning)

    @cached_property
    def restrictors(self) -> frozenset[str]:
        """Return the words next to which a negated phrase may mean the same as its opposite."""
        return words_of("restrictors", self.language) & {word.written for word in self.words}

    @cached_property
    def is_unclear(self) -> bool:
        """Return whether a negation stands in a relative clause, whose end cannot be recognized."""
        negators = words_of("negators", self.language)
        begins = {word.clause: word.written for word in reversed(self.words)}
        within = {clause for clause, word in begins.items() if clause and word in RELATIVES}
        return any(word.written in negators and word.clause in within for word in self.words)

    def clauses_with(self, stems: Container[str]) -> frozenset[int]:
        """Return the indexes of the clauses that contain at least one of the stems."""
        return frozenset(word.clause for word in self.words if word.stem in stems)

    def words_beside(self, stems: Container[str]) -> Sequence[_Word]:
        """Return the words whose stems are not given; empty if no word has a given stem."""
        others = [word for word in self.words if word.stem not in stems]
        return others if len(others) < len(self.words) else ()

    def turning_beside(self, stems: frozenset[str]) -> frozenset[str]:
        """Return the words that may invert a negation, from clauses with one of the stems."""
        clauses = self.clauses_with(stems)
        words = [word for word in self.words if word.clause in clauses]
        restrictors = words_of("restrictors", self.language) & {word.written for word in words}
        return restrictors | (stems_that_deny(self.language) & {word.stem for word in words})

    @cached_property
    def parts(self) -> tuple[_Statement, ...]:
        """Return the segments between commas and contrasts; the statement itself if it is one."""
        parts = [tuple(part) for _, part in groupby(self.words, key=lambda word: word.part)]
        return tuple(_Statement(part, self.language) for part in parts)

    @cached_property
    def excepts(self) -> bool:
        """Return whether the statement makes an exception, for which the opposite holds."""
        return any(word.written in EXCEPTIVES for word in self.words)

    @cached_property
    def focus(self) -> frozenset[str]:
        """Return the stems that negations apply to: the next or, in some languages, the last."""
        negators = words_of("negators", self.language)
        found: list[str] = []
        for at, word in enumerate(self.words):
            if word.written in negators:
                found += [after.stem for after in self.words[at:] if after.has_meaning][:1]
                if self.language in _DENY_BEHIND:
                    found += [before.stem for before in self.words[:at] if before.has_meaning][-1:]
        return frozenset(found)

    def polarity(self, stem: str) -> frozenset[bool]:
        """Return whether the clauses that contain a word are negated: True, False, or both."""
        return frozenset(word.clause in self.denied for word in self.words if word.stem == stem)


@dataclass(frozen=True, eq=False)
class _Index:
    """Unique statements by their words; few of them share enough words with a claim to compare."""

    statements: tuple[_Statement, ...]

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """Return the indexes of the statements that contain each stem."""
        found = defaultdict[str, list[int]](list)
        for at, statement in enumerate(self.statements):
            for stem in statement.stems:
                found[stem].append(at)
        return found

    def like(self, said: _Statement, least: float) -> Iterator[tuple[_Statement, float]]:
        """Yield the statements with at least a given share of a claim's words, and that share."""
        counts = Counter(at for stem in said.content for at in self.places.get(stem, ()))
        # An upper bound: at best, every word of the claim that has opposites and is missing in a
        # statement is not counted.
        plain = len(said.content.difference(said.listed))
        for at, count in sorted(counts.items()):
            if count / max(count, plain) < least:
                continue
            if (share := _share(said, self.statements[at])) >= least:
                yield self.statements[at], share


@dataclass(frozen=True, eq=False)
class _Passage:
    """The sentences of a passage, in order, with the indexes that checking a claim needs."""

    sentences: tuple[_Statement, ...]
    bounds: Mapping[str, Sequence[tuple[frozenset[str], _Statement]]]
    """By number, the sides on which sentences bound it, and these sentences."""

    @classmethod
    def of(cls, texts: Sequence[str], language: str) -> _Passage:
        """Parse the sentences of one or more passages."""
        sentences = []
        bounds = defaultdict[str, list[tuple[frozenset[str], _Statement]]](list)
        for text in chain.from_iterable(map(_sentences, texts)):
            is_short = len(text) <= _LONGEST_CACHED
            statement = (_cached_statement if is_short else _statement)(text, language)
            if statement.words:
                sentences.append(statement)
                for value, sides in _bounds(text, language).items():
                    bounds[value].append((frozenset(sides), statement))
        return cls(tuple(sentences), dict(bounds))

    @cached_property
    def whole(self) -> _Index:
        """Return the sentences, indexed by their words."""
        return _Index(tuple(dict.fromkeys(self.sentences)))

    @cached_property
    def parts(self) -> _Index:
        """Return the segments of the sentences, indexed by their words."""
        return _Index(tuple(dict.fromkeys(part for one in self.sentences for part in one.parts)))

    @cached_property
    def content(self) -> frozenset[str]:
        """Return the stems of all content words."""
        return frozenset[str]().union(*(sentence.content for sentence in self.sentences))

    @cached_property
    def by_part(self) -> Mapping[_Statement, int]:
        """Return, for each segment, the index of the first sentence that contains it."""
        found: dict[_Statement, int] = {}
        for at, sentence in enumerate(self.sentences):
            for part in sentence.parts:
                found.setdefault(part, at)
        return found

    @cached_property
    def by_statement(self) -> Mapping[_Statement, int]:
        """Return, by statement, the index of the first sentence that is it or contains it."""
        found = dict(self.by_part)
        for at, sentence in enumerate(self.sentences):
            found[sentence] = min(at, found.get(sentence, at))
        return found


def contradictions(claim: str, passages: tuple[str, ...], language: str) -> Iterator[str]:
    """Yield the words of a claim that contradict the passages it cites.

    Args:
        claim: a sentence without citation markers.
        passages: the passages that it cites, in its language.
        language: ISO 639-1 code; in a language without word lists, no word is found.
    """
    if language in CLAUSES or language in UNSPACED:
        yield from _contradictions(claim, passages, language)


# An answer is checked several times.
@lru_cache(maxsize=256)
def _contradictions(claim: str, passages: tuple[str, ...], language: str) -> tuple[str, ...]:
    said = _statement(claim, language)
    if not said.content or len(said.words) > _MOST_WORDS:
        return ()
    parsed = _passage(passages, language)
    bounds = tuple(_contrary_bounds(said, claim, parsed))
    rules: tuple[Callable[[_Statement, _Statement], str | None], ...]
    rules = (_denial, _lack, _opposite, _exchange)
    meant = _comparable(said, parsed)
    for rule in rules:
        if rule is _denial and _is_denied_elsewhere(said, parsed):
            continue
        denied = _with_focus(said, meant, parsed) if rule is _denial else []
        contrary = _found_in_all(rule(said, sentence) for sentence in denied or meant)
        if contrary is not None:
            return (*bounds, contrary)
    for contrary_in in (
        partial(_find_replaced_word, passage=parsed),
        _other_in_place,
        _find_crossed_word,
    ):
        contrary = _found_in_all(contrary_in(said, sentence) for sentence in meant)
        if contrary is not None:
            return (*bounds, contrary)
    return bounds


def _found_in_all(words: Iterable[str | None]) -> str | None:
    """Return the first of the words, one per statement; None if any statement has no word."""
    first = None
    for word in words:
        if not word:
            return None
        first = first or word
    return first


def _comparable(said: _Statement, passage: _Passage) -> list[_Statement]:
    """Return the clauses or sentences of a passage that a claim may repeat."""
    for least, statements in ((_WHOLE, passage.parts), (_COMPARABLE, passage.whole)):
        if found := [*statements.like(said, least)]:
            best = max(share for _, share in found)
            return [one for one, share in found if share >= best - _NEAR]
    return []


def _is_denied_elsewhere(said: _Statement, passage: _Passage) -> bool:
    """Return whether both a claim and a comparable segment of its passage contain a negation."""
    return bool(said.denied) and any(
        part.denied for part, _ in passage.parts.like(said, _COMPARABLE)
    )


def _with_focus(
    said: _Statement, meant: Sequence[_Statement], passage: _Passage
) -> list[_Statement]:
    """Return the statements about the words that a claim denies; empty if opposite words decide."""
    if any(_pairs_of_opposites(said, one) for one in meant):
        return []
    near = [one for one in meant if said.focus & one.content]
    return near or [
        one for one, _ in passage.whole.like(said, _DENIED_APART) if said.focus & one.content
    ]


def _share(said: _Statement, statement: _Statement) -> float:
    """Return the share of a claim's words that a statement contains; opposites are not counted."""
    shared = said.content & statement.stems
    contrary = {first for first, _ in _pairs_of_opposites(said, statement)}
    claimed = said.content - (contrary - shared)
    return len(shared) / max(1, len(claimed))


def _denial(said: _Statement, statement: _Statement) -> str | None:
    """Return the negation if one of two statements denies what the other states; otherwise None."""
    if not (said.denied or statement.denied) or said.is_unclear or statement.is_unclear:
        return None
    if _pairs_of_opposites(said, statement) or _has_prefixed(said, statement):
        return None
    common = said.content & statement.content
    focus = said.focus | statement.focus
    about = common if said.language in UNSPACED else focus & common
    is_turned = said.turning_beside(common) ^ statement.turning_beside(common)
    if not about or is_turned or _are_apart(said, statement, focus):
        return None
    polarities = {stem: (said.polarity(stem), statement.polarity(stem)) for stem in common}
    contrary = {stem for stem, (first, second) in polarities.items() if not first & second}
    agreed = {stem for stem, both in polarities.items() if both == (_DENIES, _DENIES)}
    denied = said.denied_content | statement.denied_content
    stated = {
        word.stem
        for word in said.words
        if word.has_meaning and word.clause in said.clauses_with(contrary)
    }
    if len(contrary | (stated & common)) < _SAME_PREDICATE * len(stated):
        return None
    is_most = len(contrary) >= max(_DENIED * len(common & denied), _OF_CLAUSE * len(denied))
    if len(contrary) <= len(agreed) or not (is_most or denied <= common):
        return None
    negators = words_of("negators", said.language)
    denying = said if said.denied else statement
    return next((word.written for word in denying.words if word.written in negators), None)


def _lack(said: _Statement, statement: _Statement) -> str | None:
    """Return a word of a claim for something that its passage says is lacking."""
    lacking = [at for at, word in enumerate(statement.words) if word.written in LACKING]
    denies = said.denied or statement.denied or said.restrictors
    if not lacking or denies or stems_that_deny(said.language) & statement.stems:
        return None
    behind = [word for at in lacking for word in statement.words[at + 1 :][:_BESIDE]]
    lacked = {word.stem for word in behind if word.has_meaning}
    return next((word.written for word in said.words if word.stem in lacked), None)


def _opposite(said: _Statement, statement: _Statement) -> str | None:
    """Return a word of a claim whose opposite stands in the passage instead."""
    if bool(said.denied) != bool(statement.denied):
        return None
    pairs = frozenset(_pairs_of_opposites(said, statement))
    if said.excepts != statement.excepts and not any(map(EXCEPTIVES.intersection, pairs)):
        return None
    if not pairs:
        return _has_prefixed(said, statement)
    if len(pairs) % 2 == 0:
        # Two opposites cancel out, as in "accepted with it" and "refused without it".
        return None
    mine = {stem for stem, _ in pairs}
    if _are_apart(said, statement, frozenset(stem for pair in pairs for stem in pair)):
        return None
    return next(word.written for word in said.words if word.stem in mine)


def _are_apart(said: _Statement, statement: _Statement, stems: Container[str]) -> bool:
    """Return whether one text is about values outside a bound and the other about values within it.

    For example, larger files are rejected, but files up to a certain size are accepted.

    Args:
        said, statement: the texts.
        stems: stems of the words that one text denies, or that are opposites.
    """
    mine, theirs = (
        {word.written for part in one.parts for word in part.words_beside(stems)}
        for one in (said, statement)
    )
    return any(
        mine & one and theirs & other and not (mine & other or theirs & one)
        for one, other in ((_BEYOND, _WITHIN), (_WITHIN, _BEYOND))
    )


def _pairs_of_opposites(said: _Statement, statement: _Statement) -> Sequence[tuple[str, str]]:
    """Return the pairs of a claim's stem and a passage's stem that exclude each other."""
    if (pairs := said.pairs.get(statement)) is None:
        pairs = said.pairs[statement] = tuple(_opposite_stems(said, statement))
    return pairs


def _opposite_stems(said: _Statement, statement: _Statement) -> Iterator[tuple[str, str]]:
    listed = _sides_by_stem(said.language)
    for stem in said.listed:
        for are_converses, side, others in listed[stem]:
            theirs = statement.stems & others
            if not theirs or said.stems & others or statement.stems & side:
                continue
            pair = stem, min(theirs)
            are_verbs = bool(_SUBJECTS & (side | others))
            if _is_necessary_ability(said, statement, pair):
                continue
            if not are_converses or _have_common_neighbour(
                said, statement, pair, are_verbs=are_verbs
            ):
                yield pair


def _is_necessary_ability(said: _Statement, statement: _Statement, pair: tuple[str, str]) -> bool:
    """Return whether the "can" of one text and the "must" of the other are compatible.

    They are if "can" names what the necessity requires, or a way to fulfil it: the ticket must be
    shown, and it can be shown on a phone.
    """
    mine, theirs = pair
    if NECESSITY not in pair or not _ABLE.intersection(pair):
        return False
    if mine == NECESSITY:
        return bool(_ENABLED & _neighbours(said, mine)[1])
    return bool(_ENABLED & _neighbours(statement, theirs)[1] or said.content - statement.stems)


def _have_common_neighbour(
    said: _Statement, other: _Statement, pair: tuple[str, str], *, are_verbs: bool
) -> bool:
    """Return whether two words precede the same words; verbs must also follow the same words."""
    (before, after), (their_before, their_after) = (
        _neighbours(said, pair[0]),
        _neighbours(other, pair[1]),
    )
    if before & their_before and after & their_after:
        return True
    if after and their_after:
        return bool(after & their_after) and not are_verbs
    return bool(before & their_before) and not (after or their_after)


def _neighbours(statement: _Statement, stem: str) -> tuple[frozenset[str], frozenset[str]]:
    at = next(number for number, word in enumerate(statement.words) if word.stem == stem)
    before = [word.stem for word in statement.words[:at] if word.has_meaning]
    after = [word.stem for word in statement.words[at + 1 :] if word.has_meaning]
    return frozenset(before[-_BESIDE:]), frozenset(after[:_BESIDE])


def _has_prefixed(said: _Statement, statement: _Statement) -> str | None:
    """Return a word that has a negating prefix in only one of two texts."""
    for first, second in ((said, statement), (statement, said)):
        for word in first.words:
            for prefix in _PREFIXES.get(said.language, ()):
                rest = word.stem.removeprefix(prefix)
                least = _LEAST_PREFIXED - (prefix in _SURE_PREFIXES)
                is_prefixed = rest != word.stem and len(rest) >= least
                if is_prefixed and rest in second.stems - first.stems:
                    return word.written
    return None


def _exchange(said: _Statement, statement: _Statement) -> str | None:
    """Return the first of two words whose positions a claim swaps, compared with a sentence."""
    if said.language not in _EXCHANGED:
        return None
    mine, theirs = (
        [word.written for word in one.words if word.written not in ARTICLES]
        for one in (said, statement)
    )
    size, counts = len(mine), Counter(mine)
    for start in range(len(theirs) - size + 1):
        window = theirs[start : start + size]
        is_near = counts.keys() >= {*window[:1], *window[-1:]} and window != mine
        if is_near and Counter(window) == counts:
            return _find_swapped_word(mine, window)
    return None


def _find_swapped_word(mine: Sequence[str], theirs: Sequence[str]) -> str | None:
    begin, end = 0, len(mine)
    while mine[begin] == theirs[begin]:
        begin += 1
    while mine[end - 1] == theirs[end - 1]:
        end -= 1
    mine, theirs = mine[begin:end], theirs[begin:end]
    size = len(mine)
    for first in range(1, size):
        if mine[:first] != theirs[size - first :]:
            continue
        for last in range(1, size - first):
            between = mine[first : size - last]
            is_exchanged = mine[size - last :] == theirs[:last] and between == theirs[last:-first]
            if is_exchanged and not JOINS.issuperset(between):
                return mine[0]
    return None


_Alignment: TypeAlias = tuple[float, Sequence[tuple[int, int, int, int]]]


def _align(said: _Statement, statement: _Statement) -> _Alignment:
    """Return the share of a claim's words that a statement has in order, and the replacements.

    A replacement is the start and end of words in the claim, then the start and end of the words in
    the statement that they replace.
    """
    if (known := said.alignments.get(statement)) is None:
        mine = [word.stem for word in said.words]
        theirs = [word.stem for word in statement.words]
        matcher = difflib.SequenceMatcher(None, mine, theirs, autojunk=False)
        common = sum(block.size for block in matcher.get_matching_blocks())
        replaced = tuple(code[1:] for code in matcher.get_opcodes() if code[0] == "replace")
        known = said.alignments[statement] = (common / max(1, len(mine)), replaced)
    return known


def _find_replaced_word(said: _Statement, statement: _Statement, passage: _Passage) -> str | None:
    """Return a word of a claim that replaces another and is from elsewhere in the passage."""
    if said.language in UNSPACED:
        return None
    share, replacements = _align(said, statement)
    if share < _ALIKE:
        return None
    listed = _sides_by_stem(said.language).keys()
    for a1, a2, b1, b2 in replacements:
        ours, others = said.words[a1:a2], statement.words[b1:b2]
        if max(len(ours), len(others)) > _MOST_REPLACED:
            continue
        if (number := _other_number(ours, others)) is not None and not (
            {word.stem for word in ours} & statement.stems
        ):
            return number
        new = {word.stem for word in ours if word.has_meaning} - statement.content - listed
        old = {word.stem for word in others if word.has_meaning} - said.content
        if not new or not old or not new <= passage.content or _is_listed(new, statement, passage):
            continue
        before = {statement.words[b1 - 1].written if b1 else "", others[0].written}
        if before & DETERMINERS and new & _named_before(statement, passage):
            continue
        return ours[0].written
    return None


def _other_in_place(said: _Statement, statement: _Statement) -> str | None:
    """Return a word of a claim that differs in scope or role from the word that it replaces.

    Examples: "all" of something replaces some kinds of it; `not` replaces `only`; a role replaces
    its counterpart, such as the landlord the tenant.
    """
    if said.language in UNSPACED:
        return None
    share, replacements = _align(said, statement)
    if share < _SAME_ORDER:
        return None
    counterparts = counterparts_of(said.language)
    for a1, a2, b1, b2 in replacements:
        mine_here, theirs_here = said.words[a1:a2], statement.words[b1:b2]
        ours, others = ({word.written for word in words} for words in (mine_here, theirs_here))
        if ours <= _NEVER and others <= _ONLY:
            return mine_here[0].written
        counterpart = counterparts.get(mine_here[0].stem, frozenset())
        is_counterpart = theirs_here[0].stem in counterpart - said.stems
        is_elsewhere = mine_here[0].stem in statement.stems
        if len(ours) == len(others) == 1 and is_counterpart and not is_elsewhere:
            return mine_here[0].written
        is_universal = ours & UNIVERSALS and ours <= UNIVERSALS | DETERMINERS | ARTICLES
        kinds = [word for word in theirs_here if word.written not in DETERMINERS]
        new = {word.stem for word in kinds if word.has_meaning} - said.content
        are_kinds = bool(new) and not (others & CONJUNCTIONS or any(map(word_values, others)))
        if is_universal and are_kinds:
            return next(word.written for word in mine_here if word.written in UNIVERSALS)
    return None


def _find_crossed_word(said: _Statement, statement: _Statement) -> str | None:
    """Return a word of a claim whose opposite its sentence applies to the same thing.

    Example: attendance is optional in lectures and mandatory in the laboratory; the claim says that
    it is optional in the laboratory.
    """
    listed = _sides_by_stem(said.language)
    for stem in said.listed:
        for _, side, others in listed[stem]:
            if not (statement.stems & side and statement.stems & others) or said.stems & others:
                continue
            with_it, with_opposite = (statement.clauses_with(one) for one in (side, others))
            if with_it & with_opposite or statement.denied or said.denied:
                continue
            of_it, of_opposite = (
                {w.stem for w in statement.words if w.has_meaning and w.clause in clauses}
                for clauses in (with_it, with_opposite)
            )
            mine = said.content - side
            if mine & (of_opposite - of_it) and not mine & (of_it - of_opposite):
                return next(word.written for word in said.words if word.stem == stem)
    return None


def _other_number(ours: Sequence[_Word], others: Sequence[_Word]) -> str | None:
    """Return a number word that replaces a different number."""
    if len(ours) != 1 or len(others) != 1 or ours[0].written in ARTICLES:
        return None
    mine, theirs = (word_values(word.written) for word in (ours[0], others[0]))
    return ours[0].written if mine and theirs and not mine & theirs else None


def _is_listed(new: frozenset[str] | set[str], statement: _Statement, passage: _Passage) -> bool:
    """Return whether words are further items of a list that a segment of a sentence starts."""
    if (at := passage.by_part.get(statement)) is None:
        return False
    beside = [part for part in passage.sentences[at].parts if part.content & new]
    return any(not part.content & statement.content for part in beside)


_Side: TypeAlias = tuple[bool, frozenset[str], frozenset[str]]


@cache
def _sides_by_stem(language: str) -> Mapping[str, Sequence[_Side]]:
    """Return, for each word with opposites, its synonyms and the words that exclude it."""
    found: dict[str, list[_Side]] = {}
    for are_converses, sides in opposites_of(language):
        for side in sides:
            others = frozenset[str]().union(*(other for other in sides if other is not side)) - side
            for stem in side:
                found.setdefault(stem, []).append((are_converses, side, others))
    return found


def _named_before(statement: _Statement, passage: _Passage) -> frozenset[str]:
    """Return the words that a definite article or a pronoun in a statement may refer to."""
    at = passage.by_statement.get(statement, 0)
    sentences = passage.sentences
    meant = [*sentences[:1], *sentences[max(0, at - _BEFORE_ANAPHOR) : at]] if at else []
    return frozenset[str]().union(*(sentence.content for sentence in meant))


@lru_cache(maxsize=32)
def _passage(texts: tuple[str, ...], language: str) -> _Passage:
    """Return the parsed sentences of passages; cached, since every claim needs them."""
    return _Passage.of(texts, language)


def _statement(sentence: str, language: str) -> _Statement:
    return _Statement(_words(sentence, language), language)


@lru_cache(maxsize=_MOST_CACHED)
def _cached_statement(sentence: str, language: str) -> _Statement:
    """Return a parsed sentence; cached, since many claims cite the same passages."""
    return _statement(sentence, language)


def _words(text: str, language: str) -> tuple[_Word, ...]:
    folded = plain_text(blank_addresses(text))
    if language in UNSPACED:
        return tuple(_unspaced_words(folded, language))
    return tuple(_spaced_words(folded, language))


def _spaced_words(text: str, language: str) -> Iterator[_Word]:
    stemmer, starts = stemmer_of(language), words_of("clauses", language)
    unmeant = words_of("negators", language) | starts | QUANTIFIERS
    necessary = necessity_of(language)
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
            yield _Word("not", "not", clause, part, has_meaning=False)
        is_begun = True
        if word in necessary:
            yield _Word(word, NECESSITY, clause, part, has_meaning=True)
            continue
        is_common = word in COMMON_WORDS if language == "en" else len(word) < _LEAST_LETTERS
        has_meaning = not is_common and word not in unmeant
        yield _Word(
            word, stemmer.stemWord(IRREGULAR.get(word, word)), clause, part, has_meaning=has_meaning
        )


def _unspaced_words(text: str, language: str) -> Iterator[_Word]:
    """Yield the words of a text that are in the word lists, and its other characters one by one."""
    negators = words_of("negators", language)
    clause = 0
    for token in _unspaced_pattern(language).findall(text):
        if not token[0].isalnum():
            clause += 1
            continue
        yield _Word(token, token, clause, clause, has_meaning=token not in negators)


@cache
def _unspaced_pattern(language: str) -> re.Pattern[str]:
    """Return a pattern for the words in a language's lists, longest first, or one character."""
    listed = {word for _, sides in opposites_of(language) for side in sides for word in side}
    listed |= words_of("negators", language) | words_of("restrictors", language)
    longest = sorted(listed, key=len, reverse=True)
    return re.compile("|".join([*map(re.escape, longest), _UNSPACED_SIGN.pattern]))


_DENIES: Final = frozenset({True})
# All patterns run in linear time: repetitions are bounded, or can start in one place only.
_NUMBER: Final = r"(?<!\d)\d{1,20}(?:[.,]\d{1,20}){0,20}"
_VALUE: Final = rf"(?P<value>{_NUMBER}|[^\W\d_]{{1,20}})"
_VALUE_BEFORE: Final = rf"(?P<value>{_NUMBER}|(?<![^\W\d_])[^\W\d_]{{1,20}})"
_SIDES: Final = {
    **dict.fromkeys((*HIGH.split("|"), *HIGH_AFTER.split("|")), "high"),
    **dict.fromkeys((*LOW.split("|"), *LOW_AFTER.split("|")), "low"),
}
_BOUNDED: Final = (
    re.compile(rf"(?<!\w)(?P<bound>{LOW}|{HIGH})\s?(?:[€$£]\s?)?{_VALUE}"),
    re.compile(
        rf"{_VALUE_BEFORE}\s?(?:[^\W\d_]{{1,20}}\s?)?(?P<bound>{LOW_AFTER}|{HIGH_AFTER})(?!\w)"
    ),
)


def _contrary_bounds(said: _Statement, claim: str, passage: _Passage) -> Iterator[str]:
    """Yield the numbers that a claim bounds on the opposite side from similar sentences.

    For example, the claim says "at least 3" and the sentence "at most 3".
    """
    for value, sides in _bounds(claim, said.language).items():
        stated = {
            side
            for others, sentence in passage.bounds.get(value, ())
            if any(
                _share(said, part) >= _COMPARABLE and any(_stems_of_value(part, value))
                for part in sentence.parts
            )
            for side in others
        }
        if stated and not sides & stated:
            yield value


@lru_cache(maxsize=_MOST_CACHED)
def _bounds(text: str, language: str) -> Mapping[str, set[str]]:
    """Return the sides on which a sentence bounds each of its numbers; negation swaps sides."""
    folded, found = plain_text(text), dict[str, set[str]]()
    rest = folded
    for pattern in _BOUNDED:
        for bound in pattern.finditer(folded):
            values = word_values(bound["value"])
            written = f"{min(values):g}" if values else bound["value"]
            if written[0].isdigit():
                found.setdefault(written, set()).add(_SIDES[bound["bound"]])
        rest = pattern.sub(r"\g<value>", rest)
    statement, turned = _Statement(_words(rest, language), language), {"low": "high", "high": "low"}
    for value, sides in found.items():
        if any(True in statement.polarity(stem) for stem in _stems_of_value(statement, value)):
            found[value] = {turned[side] for side in sides}
    return found


def _stems_of_value(statement: _Statement, value: str) -> Iterator[str]:
    for word in statement.words:
        if word.written == value or value in {f"{one:g}" for one in word_values(word.written)}:
            yield word.stem


@lru_cache(maxsize=64)
def _sentences(passage: str) -> tuple[str, ...]:
    """Return the sentences of a passage without markers; cached like the parsed sentences."""
    return tuple(blank_markers(passage[one.start : one.end]) for one in pieces_of(passage))
