"""Citations: check whether the cited passages support each sentence of an answer.

Only a model could decide whether a passage truly entails a sentence. The checks here cost nothing,
and no text can deceive them. They require that:

- the citation exists;
- the cited passage contains words of the sentence;
- it contains every address, port, telephone number and card number of the sentence;
- it contains the sentence's numbers, dates, units and names, in whatever form they are written;
- no sentence of the passage contradicts the sentence.

A sentence in another language than its passage shares no words with it. For such a sentence only
numbers and names are compared, and the rest is unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, Protocol

from rag_assets.ingest.parsing.languages import detect_text_language
from rag_assets.search.contradictions import find_contradictions
from rag_assets.search.figures import Figures, find_claimed_figures
from rag_assets.search.names import NamedWords, find_missing_full_names, find_missing_names
from rag_assets.search.sentences import (
    Addresses,
    AnswerPart,
    Digits,
    blank_markers,
    find_list_marker,
    keep_known_markers,
    list_cited_numbers,
    split_answer,
)
from rag_assets.search.words import extract_content_words
from rag_assets.storage.index.terms import choose_analysis

CitationVerdict = Literal["supported", "unchecked", "unsupported", "uncited", "unknown", "no claim"]

_MARK: Final = re.compile(r"[ \t]?\[unsupported\]", re.IGNORECASE)
_HEADING = re.compile(r"#{1,6}\s")
_OPEN_LINK = re.compile(r"[\[\]<]")
_MIN_SHARED = 0.2
"""Minimum share of a sentence's words that the cited passages must contain."""
_MIN_SHARED_IF_SINGLE = 0.5
"""The same minimum for a sentence that shares only a single word."""
_SHARED_IN_ONE_LANGUAGE = 0.5
"""Share of common words above which a sentence counts as written in its passage's language."""
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{2,}")
_MAX_PASSES = 8
UNSUPPORTED_MARK: Final = "[unsupported]"
"""Text that replaces the citations of a claim with figures that no cited passage has."""


class CitablePassage(Protocol):
    """A passage that can be cited; see Hit."""

    @property
    def number(self) -> int:
        """Return the number by which the passage is cited."""

    @property
    def text(self) -> str:
        """Return the passage's text."""

    @property
    def title(self) -> str | None:
        """Return the title of the passage's document."""

    @property
    def heading_path(self) -> tuple[str, ...]:
        """Return the headings above the passage."""


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of an answer.

    Attributes:
        start, end: character offsets in the answer, half open; the markers after the sentence
            are included.
        shared: share of the sentence's words that the cited passages contain, 0 to 1.
        verdict: the result of the checks. "uncited": the sentence cites nothing. "unknown": it
            cites only numbers that do not exist. "unsupported": the cited passages have too few of
            its words, lack its addresses or figures, or contradict it. "unchecked": it is in
            another language than the cited passages, which have its figures and names. "no claim":
            it is a heading, a question or the introduction of a list, and contains no link.
        missing: numbers, dates, units and names that the cited passages lack, and words that they
            contradict; empty if the sentence has any other fault.
    """

    start: int
    end: int
    text: str
    cites: tuple[int, ...]
    shared: float
    verdict: CitationVerdict
    missing: tuple[str, ...] = ()


def verify_citations(answer: str, hits: Sequence[CitablePassage]) -> tuple[CheckedSentence, ...]:
    """Check each sentence of an answer with [n] markers against the passages.

    A marker belongs to the sentence that contains it or directly precedes it. A marker at the start
    of a line belongs to the following sentence.
    """
    return _check_sentences(answer, _collect_evidence(hits))


def enforce_citations(answer: str, hits: Sequence[CitablePassage], *, mark: bool = False) -> str:
    """Return the answer without unsupported claims and without markers of unknown passages.

    Text that makes no claim stays if it shares words with a passage and adds no address. Text that
    stays is not changed, except that its markers become `[1]` or `[1, 3]`. An answer without any
    supported claim becomes empty. With `mark`, a claim stays if its only fault is figures that its
    cited passages lack; `[unsupported]` replaces its markers.
    """
    evidence = _collect_evidence(hits)
    # Only this project may write the mark: a model must not keep a claim by writing it.
    answer = _MARK.sub("", answer)
    if mark:
        answer = _mark_unsupported(answer, evidence)
    for _ in range(_MAX_PASSES):
        enforced = _remove_unsupported(answer, evidence)
        # What remains may parse differently than before, such as a fence that lost its other end.
        if enforced == answer:
            return enforced
        answer = enforced
    return ""


def _remove_unsupported(answer: str, evidence: Mapping[int, _Evidence]) -> str:
    everything = _merge_evidence(tuple(evidence.values()))
    sentences = _check_sentences(answer, evidence)
    kept_verdicts = ("supported", "unchecked")
    if not any(s.verdict in kept_verdicts or UNSUPPORTED_MARK in s.text for s in sentences):
        return ""
    parts = list(split_answer(answer))
    stays = [
        sentence.verdict in kept_verdicts
        or (
            UNSUPPORTED_MARK in sentence.text
            and everything.has_addresses(Addresses.parse(sentence.text))
        )
        or (sentence.verdict == "no claim" and everything.fits_passages(sentence.text, part))
        for sentence, part in zip(sentences, parts, strict=True)
    ]
    _drop_heads_without_rows(parts, stays)
    return "".join(_iter_kept_texts(answer, parts, stays, evidence.keys())).strip()


def _mark_unsupported(answer: str, evidence: Mapping[int, _Evidence]) -> str:
    """Replace citations with `[unsupported]` if the cited passages lack figures of the claim."""
    parts = []
    for sentence in _check_sentences(answer, evidence):
        text = answer[sentence.start : sentence.end]
        if sentence.missing:
            bare = keep_known_markers(text, ()).rstrip()
            end = re.search(r"(?:[.!?…。！？]+|\|)?\Z", bare)
            at = end.start() if end else len(bare)
            blank = text[len(text.rstrip()) :]
            text = f"{bare[:at].rstrip()} {UNSUPPORTED_MARK}{bare[at:]}{blank}"
        parts.append(text)
    return "".join(parts)


def _drop_heads_without_rows(parts: Sequence[AnswerPart], stays: list[bool]) -> None:
    rows = False
    for at in reversed(range(len(parts))):
        role = parts[at].role
        if role == "head":
            stays[at] = stays[at] and rows
        rows = role == "row" and (rows or stays[at])


def _iter_kept_texts(
    answer: str, parts: Sequence[AnswerPart], stays: Sequence[bool], known: Container[int]
) -> Iterator[str]:
    """Yield the text of each kept part, and the bullet or line break of each removed part."""
    sign = ""
    ended = True
    for part, stay in zip(parts, stays, strict=True):
        text = answer[part.start : part.end]
        if stay:
            yield sign + keep_known_markers(text, known)
            sign, ended = "", text.endswith("\n")
        elif text.endswith("\n"):
            # Text from two separate lines must not become one sentence.
            if not ended:
                yield "\n"
            sign, ended = "", True
        elif not part.start or answer[part.start - 1] in "\r\n":
            sign = find_list_marker(text)


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The words, addresses, figures and names that passages contain, as evidence for claims."""

    words: frozenset[str] = frozenset()
    analyses: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    digits: Digits = field(default_factory=Digits)
    figures: Figures = field(default_factory=Figures)
    named: NamedWords = field(default_factory=lambda: NamedWords(""))

    @property
    def language(self) -> str | None:
        """Return the language of the passages; None if uncertain."""
        return _find_language(self.named.text)

    @classmethod
    def merge(cls, parts: Sequence[_Evidence]) -> _Evidence:
        """Combine the evidence of several passages."""
        return cls(
            frozenset[str]().union(*(part.words for part in parts)),
            frozenset[str]().union(*(part.analyses for part in parts)),
            frozenset[str]().union(*(part.addresses for part in parts)),
            Digits.merge([part.digits for part in parts]),
            Figures.merge([part.figures for part in parts]),
            NamedWords.merge([part.named for part in parts]),
        )

    def list_claim_words(self, claim: str) -> frozenset[str]:
        """Return a claim's stemmed words.

        If the passages are in several languages, the claim is stemmed in the language in which it
        shares most words with them.
        """
        forms = [_compute_stems(claim, analysis) for analysis in sorted(self.analyses)]
        return max(forms, key=self.compute_covered_share, default=frozenset())

    def compute_covered_share(self, words: frozenset[str]) -> float:
        """Return the share of these words that the passages contain."""
        return len(words & self.words) / max(1, len(words))

    def fits_passages(self, text: str, part: AnswerPart) -> bool:
        """Return whether a part of an answer that makes no claim fits the passages.

        It must share words with the passages and add no address. A text without words passes unless
        it opens a link. The head of a table may have other words.
        """
        words = self.list_claim_words(text)
        if not words:
            # Rejects, for example, the first half of an image whose second half was removed.
            return _OPEN_LINK.search(text) is None
        return (part.role == "head" or bool(words & self.words)) and self.has_addresses(
            Addresses.parse(text)
        )

    def has_addresses(self, named: Addresses) -> bool:
        """Return whether the passages contain all of these addresses and numbers."""
        known = named.links | named.names <= self.addresses
        return known and self.digits.contain(named.numbers)


def _collect_evidence(hits: Sequence[CitablePassage]) -> dict[int, _Evidence]:
    return {
        hit.number: _collect_text_evidence(
            "\n".join([hit.title or "", *hit.heading_path, getattr(hit, "context", ""), hit.text]),
            getattr(hit, "uri", ""),
        )
        for hit in hits
    }


# An answer is checked several times: as the model wrote it, as it is shown, and for its citations.
@lru_cache(maxsize=64)
def _collect_text_evidence(text: str, context: str) -> _Evidence:
    addresses = Addresses.parse(text).known
    named_words = NamedWords(text, context)
    analysis = choose_analysis(text, _find_language(text))
    words = _compute_stems(text, analysis)
    return _Evidence(
        words,
        frozenset({analysis}),
        addresses,
        Digits.parse(text),
        Figures.parse(text),
        named_words,
    )


@lru_cache(maxsize=32)
def _merge_evidence(passages: tuple[_Evidence, ...]) -> _Evidence:
    if len(passages) == 1:
        return passages[0]
    return _Evidence.merge(passages) if passages else _Evidence()


def _check_sentences(answer: str, evidence: Mapping[int, _Evidence]) -> tuple[CheckedSentence, ...]:
    everything = _merge_evidence(tuple(evidence.values()))
    language = _find_language(blank_markers(answer))
    return tuple(
        _judge_sentence(answer, part, evidence, everything, language)
        for part in split_answer(answer)
    )


def _judge_sentence(
    answer: str,
    part: AnswerPart,
    evidence: Mapping[int, _Evidence],
    everything: _Evidence,
    language: str | None,
) -> CheckedSentence:
    text = answer[part.start : part.end]
    cites = list_cited_numbers(text)
    addresses = Addresses.parse(text)
    claim = blank_markers(text)
    evidence_of_sentence = _merge_evidence(tuple(evidence[n] for n in cites if n in evidence))
    claimed = evidence_of_sentence.list_claim_words(claim)
    shared = evidence_of_sentence.compute_covered_share(claimed)
    verdict: CitationVerdict
    missing: tuple[str, ...] = ()
    if not cites:
        verdict = "uncited" if addresses.links or _is_claim(text, part) else "no claim"
    elif not any(n in evidence for n in cites):
        verdict = "unknown"
    else:
        verdict = "unsupported"
        language = _find_language(claim) or language
        is_foreign = shared < _SHARED_IN_ONE_LANGUAGE and _is_in_other_language(
            claim, language, evidence_of_sentence
        )
        if evidence_of_sentence.has_addresses(addresses) and (
            is_foreign or _shares_enough_words(claimed, evidence_of_sentence)
        ):
            rule = _iter_missing_across_languages if is_foreign else _iter_missing_figures_and_names
            missing = tuple(rule(claim, part, evidence_of_sentence, everything))
            if not missing and not is_foreign and part.role != "fence":
                spoken = (
                    evidence_of_sentence.language
                    or language
                    or _find_guessed_language(evidence_of_sentence.named.text)
                    or ""
                )
                texts = tuple(
                    part.text
                    for part in evidence_of_sentence.named.parts or (evidence_of_sentence.named,)
                )
                missing = tuple(find_contradictions(claim, texts, spoken))
            if not missing:
                verdict = "unchecked" if is_foreign else "supported"
    return CheckedSentence(
        part.start, part.end, text.strip(), cites, round(shared, 3), verdict, missing
    )


def _shares_enough_words(claimed: frozenset[str], evidence: _Evidence) -> bool:
    """Return whether a claim shares enough words with the passages that it cites."""
    shared = len(claimed & evidence.words)
    # A single shared word may be chance in English. A true German claim may share only one, since
    # its other words are parts of compounds.
    is_chance = shared == 1 and evidence.language == "en"
    return shared >= (_MIN_SHARED_IF_SINGLE if is_chance else _MIN_SHARED) * max(1, len(claimed))


def _is_in_other_language(claim: str, language: str | None, evidence: _Evidence) -> bool:
    """Return whether a claim is in another language than the passages that it cites."""
    scripts = NamedWords(claim).scripts
    if scripts and evidence.named.scripts and not scripts & evidence.named.scripts:
        return True
    return language not in (None, evidence.language or language)


def _iter_missing_figures_and_names(
    claim: str, part: AnswerPart, evidence: _Evidence, everything: _Evidence
) -> Iterator[str]:
    """Yield the figures and names of a claim that the passages it cites do not have."""
    yield from _iter_missing_figures(claim, evidence)
    if part.role != "fence":
        yield from find_missing_names(claim, evidence.named, everything.named)


def _iter_missing_across_languages(
    claim: str, part: AnswerPart, evidence: _Evidence, everything: _Evidence
) -> Iterator[str]:
    """Yield a claim's figures and full names that passages in another language do not have."""
    yield from _iter_missing_figures(claim, evidence)
    if part.role != "fence":
        yield from find_missing_full_names(claim, evidence.named)


def _iter_missing_figures(claim: str, evidence: _Evidence) -> Iterator[str]:
    for figure in find_claimed_figures(claim):
        if not evidence.figures.contain(figure):
            yield figure.written.strip()


def _compute_stems(text: str, analysis: str) -> frozenset[str]:
    """Return the stems of a text's words; for scripts without spaces, pairs of characters."""
    runs = (run[0] for run in _UNSPACED.finditer(text))
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    return extract_content_words(text, analysis) | pairs


@lru_cache(maxsize=64)
def _find_guessed_language(text: str) -> str | None:
    return detect_text_language(text, is_guess=True)


@lru_cache(maxsize=256)
def _find_language(text: str) -> str | None:
    return detect_text_language(text)


def _is_claim(text: str, part: AnswerPart) -> bool:
    """Return whether a part of an answer makes a claim; even a short part such as "No." does."""
    bare = text.strip()
    introduces = bare.endswith((":", "?")) or _HEADING.match(bare) is not None
    return part.role != "head" and not introduces and any(map(str.isalnum, bare))
