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

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

from rag_assets.search.statements import (
    ParsedPassage,
    ParsedStatement,
    Word,
    align_words,
    compute_word_share,
    get_opposites_by_stem,
    iter_stems_of_value,
    list_opposite_pairs,
    parse_bounds,
    parse_passages,
    parse_statement,
)
from rag_assets.search.words import (
    ARTICLES,
    CLAUSE_LANGUAGES,
    CONJUNCTIONS,
    DETERMINERS,
    EXCEPTIVES,
    JOINS,
    LACKING,
    UNIVERSALS,
    UNSPACED,
    get_counterparts,
    get_word_list,
    list_negative_stems,
    parse_word_values,
)

_MIN_COMPARABLE_SHARE: Final = 0.5
"""Minimum share of a claim's words that a sentence must contain to be compared with the claim."""
_MIN_DENIED_STATEMENT_SHARE: Final = 0.4
"""The same minimum for a sentence whose statement the claim denies."""
_MAX_SHARE_DISTANCE: Final = 0.15
"""Sentences are also compared if their share is at most this much below the best share."""
_MIN_CLAUSE_SHARE: Final = 0.75
"""Minimum share of a claim's words in a clause that is compared without its sentence."""
_MIN_OPPOSED_SHARE_IF_DENIED: Final = 0.6
"""Minimum share of opposed words among the words that the denied clauses have in common."""
_MIN_PREDICATE_SHARE: Final = 0.7
"""Minimum share of the words in a claim's clauses that the sentence also has, denied or not."""
_MIN_OPPOSED_SHARE_OF_CLAUSE: Final = 0.4
"""Minimum share of opposed words among all words in denied clauses."""
_NEVER: Final = frozenset({"not", "never", "nicht", "nie"})
_ONLY: Final = frozenset({"only", "nur"})
_MIN_ORDER_SIMILARITY: Final = 0.75
"""Minimum similarity of word order at which a widened scope is looked for."""
_MIN_REPLACEMENT_SIMILARITY: Final = 0.6
"""Minimum similarity of word order at which a replaced word is looked for."""
_MAX_LACKED_WORDS: Final = 2
"""Number of words after "without" that are searched for the missing thing."""
_MAX_WORDS: Final = 80
_MAX_REPLACED: Final = 3
_MIN_PREFIXED_LETTERS: Final = 4
_SURE_PREFIXES: Final = ("un", "dis")
_PREFIXES: Final = {"en": ("un", "in", "im", "ir", "il", "non", "dis"), "de": ("un",)}
_WORD_ORDER_LANGUAGES: Final = frozenset({"en", "fr", "es", "it", "pt"})
"""Languages in which word order determines who does what."""
_BEFORE_ANAPHOR: Final = 2
_OUTSIDE_WORD_LIST: Final = (
    "larger bigger greater higher longer heavier over above beyond exceeding after"
)
_OUTSIDE_WORDS: Final = frozenset(_OUTSIDE_WORD_LIST.split())
"""Words for values outside a bound."""
_INSIDE_WORDS: Final = frozenset({"within", "under", "below", "up", "most", "maximum"})
"""Words for values within a bound."""
_DENIES: Final = frozenset({True})


def find_contradictions(claim: str, passages: tuple[str, ...], language: str) -> Iterator[str]:
    """Yield the words of a claim that contradict the passages it cites."""
    if language in CLAUSE_LANGUAGES or language in UNSPACED:
        yield from _find_contradictions(claim, passages, language)


# An answer is checked several times.
@lru_cache(maxsize=256)
def _find_contradictions(claim: str, passages: tuple[str, ...], language: str) -> tuple[str, ...]:
    statement = parse_statement(claim, language)
    if not statement.content or len(statement.words) > _MAX_WORDS:
        return ()
    parsed = parse_passages(passages, language)
    bounds = tuple(_iter_contrary_bounds(statement, claim, parsed))
    rules: tuple[Callable[[ParsedStatement, ParsedStatement], str | None], ...]
    rules = (_find_denial, _find_word_for_lacking_thing, _find_word_with_opposite, _find_swap)
    comparable = _list_comparable_statements(statement, parsed)
    for rule in rules:
        if rule is _find_denial and _is_similar_text_negated(statement, parsed):
            continue
        denied = (
            _list_statements_with_negated_word(statement, comparable, parsed)
            if rule is _find_denial
            else []
        )
        contrary = _find_first_if_in_all(
            rule(statement, sentence) for sentence in denied or comparable
        )
        if contrary is not None:
            return (*bounds, contrary)
    for contrary_in in (
        partial(_find_replaced_word, passage=parsed),
        _find_counterpart,
        _find_crossed_word,
    ):
        contrary = _find_first_if_in_all(
            contrary_in(statement, sentence) for sentence in comparable
        )
        if contrary is not None:
            return (*bounds, contrary)
    return bounds


def _find_first_if_in_all(words: Iterable[str | None]) -> str | None:
    """Return the first of these words; None if any of them is None."""
    first = None
    for word in words:
        if not word:
            return None
        first = first or word
    return first


def _list_comparable_statements(
    claim: ParsedStatement, passage: ParsedPassage
) -> list[ParsedStatement]:
    """Return the clauses or sentences of a passage that a claim may repeat."""
    for min_share, statements in (
        (_MIN_CLAUSE_SHARE, passage.parts),
        (_MIN_COMPARABLE_SHARE, passage.sentence_index),
    ):
        if scored := [*statements.find_similar(claim, min_share)]:
            best = max(share for _, share in scored)
            return [statement for statement, share in scored if share >= best - _MAX_SHARE_DISTANCE]
    return []


def _is_similar_text_negated(claim: ParsedStatement, passage: ParsedPassage) -> bool:
    """Return whether both a claim and a similar segment of its passage contain a negation."""
    return bool(claim.negated_clauses) and any(
        part.negated_clauses for part, _ in passage.parts.find_similar(claim, _MIN_COMPARABLE_SHARE)
    )


def _list_statements_with_negated_word(
    claim: ParsedStatement, statements: Sequence[ParsedStatement], passage: ParsedPassage
) -> list[ParsedStatement]:
    """Return the statements that contain a word to which a negation of the claim applies.

    The result is empty if any statement has the opposite of a word of the claim: then the opposites
    are compared instead.
    """
    if any(list_opposite_pairs(claim, statement) for statement in statements):
        return []
    near = [statement for statement in statements if claim.focus & statement.content]
    return near or [
        similar
        for similar, _ in passage.sentence_index.find_similar(claim, _MIN_DENIED_STATEMENT_SHARE)
        if claim.focus & similar.content
    ]


def _find_denial(claim: ParsedStatement, statement: ParsedStatement) -> str | None:
    """Return the negation if one of two statements denies what the other states; otherwise None."""
    if (
        not (claim.negated_clauses or statement.negated_clauses)
        or claim.is_unclear
        or statement.is_unclear
    ):
        return None
    if list_opposite_pairs(claim, statement) or _find_word_with_negating_prefix(claim, statement):
        return None
    common = claim.content & statement.content
    focus = claim.focus | statement.focus
    about = common if claim.language in UNSPACED else focus & common
    is_turned = claim.find_inverting_words(common) ^ statement.find_inverting_words(common)
    if not about or is_turned or _are_on_opposite_sides_of_bound(claim, statement, focus):
        return None
    polarities = {
        stem: (claim.find_polarities(stem), statement.find_polarities(stem)) for stem in common
    }
    contrary = {stem for stem, (first, second) in polarities.items() if not first & second}
    agreed = {stem for stem, pair in polarities.items() if pair == (_DENIES, _DENIES)}
    denied = claim.denied_content | statement.denied_content
    stated = {
        word.stem
        for word in claim.words
        if word.has_meaning and word.clause in claim.find_clauses(contrary)
    }
    if len(contrary | (stated & common)) < _MIN_PREDICATE_SHARE * len(stated):
        return None
    is_most = len(contrary) >= max(
        _MIN_OPPOSED_SHARE_IF_DENIED * len(common & denied),
        _MIN_OPPOSED_SHARE_OF_CLAUSE * len(denied),
    )
    if len(contrary) <= len(agreed) or not (is_most or denied <= common):
        return None
    negators = get_word_list("negators", claim.language)
    denying = claim if claim.negated_clauses else statement
    return next((word.written for word in denying.words if word.written in negators), None)


def _find_word_for_lacking_thing(claim: ParsedStatement, statement: ParsedStatement) -> str | None:
    """Return a word of a claim for something that its passage says is lacking; otherwise None."""
    lacking = [at for at, word in enumerate(statement.words) if word.written in LACKING]
    denies = claim.negated_clauses or statement.negated_clauses or claim.restrictors
    if not lacking or denies or list_negative_stems(claim.language) & statement.stems:
        return None
    behind = [word for at in lacking for word in statement.words[at + 1 :][:_MAX_LACKED_WORDS]]
    lacked = {word.stem for word in behind if word.has_meaning}
    return next((word.written for word in claim.words if word.stem in lacked), None)


def _find_word_with_opposite(claim: ParsedStatement, statement: ParsedStatement) -> str | None:
    """Return a word of a claim if the passage has its opposite instead; otherwise None."""
    if bool(claim.negated_clauses) != bool(statement.negated_clauses):
        return None
    pairs = frozenset(list_opposite_pairs(claim, statement))
    if claim.makes_exception != statement.makes_exception and not any(
        map(EXCEPTIVES.intersection, pairs)
    ):
        return None
    if not pairs:
        return _find_word_with_negating_prefix(claim, statement)
    if len(pairs) % 2 == 0:
        # Two opposites cancel out, as in "accepted with it" and "refused without it".
        return None
    mine = {stem for stem, _ in pairs}
    if _are_on_opposite_sides_of_bound(
        claim, statement, frozenset(stem for pair in pairs for stem in pair)
    ):
        return None
    return next(word.written for word in claim.words if word.stem in mine)


def _are_on_opposite_sides_of_bound(
    claim: ParsedStatement, statement: ParsedStatement, stems: Container[str]
) -> bool:
    """Return whether one text describes values outside a bound, and the other values within it.

    For example, larger files are rejected, but files up to a certain size are accepted.
    """
    mine, theirs = (
        {word.written for part in text.parts for word in part.list_other_words(stems)}
        for text in (claim, statement)
    )
    return any(
        mine & first and theirs & second and not (mine & second or theirs & first)
        for first, second in ((_OUTSIDE_WORDS, _INSIDE_WORDS), (_INSIDE_WORDS, _OUTSIDE_WORDS))
    )


def _find_word_with_negating_prefix(
    claim: ParsedStatement, statement: ParsedStatement
) -> str | None:
    """Return a word that only one of two texts has with a negating prefix; otherwise None."""
    for first, second in ((claim, statement), (statement, claim)):
        for word in first.words:
            for prefix in _PREFIXES.get(claim.language, ()):
                stem = word.stem.removeprefix(prefix)
                min_letters = _MIN_PREFIXED_LETTERS - (prefix in _SURE_PREFIXES)
                is_prefixed = stem != word.stem and len(stem) >= min_letters
                if is_prefixed and stem in second.stems - first.stems:
                    return word.written
    return None


def _find_swap(claim: ParsedStatement, statement: ParsedStatement) -> str | None:
    """Return the first of two words that are swapped in a claim but not in a sentence; or None."""
    if claim.language not in _WORD_ORDER_LANGUAGES:
        return None
    mine, theirs = (
        [word.written for word in text.words if word.written not in ARTICLES]
        for text in (claim, statement)
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


def _find_replaced_word(
    claim: ParsedStatement, statement: ParsedStatement, passage: ParsedPassage
) -> str | None:
    """Return a word of a claim that replaces a word of a sentence of the passage, or None.

    The replacing word must occur elsewhere in the passage.
    """
    if claim.language in UNSPACED:
        return None
    share, replacements = align_words(claim, statement)
    if share < _MIN_REPLACEMENT_SIMILARITY:
        return None
    listed = get_opposites_by_stem(claim.language).keys()
    for a1, a2, b1, b2 in replacements:
        ours, others = claim.words[a1:a2], statement.words[b1:b2]
        if max(len(ours), len(others)) > _MAX_REPLACED:
            continue
        if (number := _find_other_number(ours, others)) is not None and not (
            {word.stem for word in ours} & statement.stems
        ):
            return number
        new = {word.stem for word in ours if word.has_meaning} - statement.content - listed
        old = {word.stem for word in others if word.has_meaning} - claim.content
        if (
            not new
            or not old
            or not new <= passage.content
            or _are_other_list_items(new, statement, passage)
        ):
            continue
        before = {statement.words[b1 - 1].written if b1 else "", others[0].written}
        if before & DETERMINERS and new & _list_words_before(statement, passage):
            continue
        return ours[0].written
    return None


def _find_counterpart(claim: ParsedStatement, statement: ParsedStatement) -> str | None:
    """Return a word of a claim that differs in scope or role from the word that it replaces.

    Examples: "all" of something replaces some kinds of it; `not` replaces `only`; "landlord"
    replaces its counterpart "tenant". None without such a word.
    """
    if claim.language in UNSPACED:
        return None
    share, replacements = align_words(claim, statement)
    if share < _MIN_ORDER_SIMILARITY:
        return None
    counterparts = get_counterparts(claim.language)
    for a1, a2, b1, b2 in replacements:
        mine_here, theirs_here = claim.words[a1:a2], statement.words[b1:b2]
        ours, others = ({word.written for word in words} for words in (mine_here, theirs_here))
        if ours <= _NEVER and others <= _ONLY:
            return mine_here[0].written
        counterpart = counterparts.get(mine_here[0].stem, frozenset())
        is_counterpart = theirs_here[0].stem in counterpart - claim.stems
        is_elsewhere = mine_here[0].stem in statement.stems
        if len(ours) == len(others) == 1 and is_counterpart and not is_elsewhere:
            return mine_here[0].written
        is_universal = ours & UNIVERSALS and ours <= UNIVERSALS | DETERMINERS | ARTICLES
        kinds = [word for word in theirs_here if word.written not in DETERMINERS]
        new = {word.stem for word in kinds if word.has_meaning} - claim.content
        are_kinds = bool(new) and not (others & CONJUNCTIONS or any(map(parse_word_values, others)))
        if is_universal and are_kinds:
            return next(word.written for word in mine_here if word.written in UNIVERSALS)
    return None


def _find_crossed_word(claim: ParsedStatement, statement: ParsedStatement) -> str | None:
    """Return a word of a claim if a sentence uses its opposite for the same object; or None.

    Example: attendance is optional in lectures and mandatory in the laboratory; the claim says that
    it is optional in the laboratory.
    """
    listed = get_opposites_by_stem(claim.language)
    for stem in claim.stems_with_opposites:
        for _, side, others in listed[stem]:
            if not (statement.stems & side and statement.stems & others) or claim.stems & others:
                continue
            with_it, with_opposite = (statement.find_clauses(stems) for stems in (side, others))
            if with_it & with_opposite or statement.negated_clauses or claim.negated_clauses:
                continue
            of_it, of_opposite = (
                {w.stem for w in statement.words if w.has_meaning and w.clause in clauses}
                for clauses in (with_it, with_opposite)
            )
            mine = claim.content - side
            if mine & (of_opposite - of_it) and not mine & (of_it - of_opposite):
                return next(word.written for word in claim.words if word.stem == stem)
    return None


def _find_other_number(ours: Sequence[Word], others: Sequence[Word]) -> str | None:
    """Return a number word that replaces a different number; None without such a word."""
    if len(ours) != 1 or len(others) != 1 or ours[0].written in ARTICLES:
        return None
    mine, theirs = (parse_word_values(word.written) for word in (ours[0], others[0]))
    return ours[0].written if mine and theirs and not mine & theirs else None


def _are_other_list_items(
    new: frozenset[str] | set[str], statement: ParsedStatement, passage: ParsedPassage
) -> bool:
    """Return whether new words are other items of the list that a segment belongs to.

    They then stand in another segment of the same sentence without common content words.
    """
    if (at := passage.by_part.get(statement)) is None:
        return False
    beside = [part for part in passage.sentences[at].parts if part.content & new]
    return any(not part.content & statement.content for part in beside)


def _list_words_before(statement: ParsedStatement, passage: ParsedPassage) -> frozenset[str]:
    """Return the words in earlier sentences that "the" or a pronoun in a statement may refer to."""
    at = passage.by_statement.get(statement, 0)
    sentences = passage.sentences
    sentences_before = [*sentences[:1], *sentences[max(0, at - _BEFORE_ANAPHOR) : at]] if at else []
    return frozenset[str]().union(*(sentence.content for sentence in sentences_before))


def _iter_contrary_bounds(
    claim: ParsedStatement, claim_text: str, passage: ParsedPassage
) -> Iterator[str]:
    """Yield the numbers for which a claim and similar sentences state opposite bounds.

    For example, the claim says "at least 3" and the sentence "at most 3".
    """
    for value, sides in parse_bounds(claim_text, claim.language).items():
        stated = {
            side
            for others, sentence in passage.bounds.get(value, ())
            if any(
                compute_word_share(claim, part) >= _MIN_COMPARABLE_SHARE
                and any(iter_stems_of_value(part, value))
                for part in sentence.parts
            )
            for side in others
        }
        if stated and not sides & stated:
            yield value
