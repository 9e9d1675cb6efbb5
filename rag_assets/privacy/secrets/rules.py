"""The project's own rules for credentials, and their application in one pass over a text.

A rule has anchors: short literals that occur near credentials of its kind. One Aho-Corasick
automaton finds the anchors of all rules in a single pass. A text without anchors thus costs one
pass, whatever the number of rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rag_assets.privacy.secrets.spans import SecretSpan

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

_SURROGATE = re.compile("[\ud800-\udfff]")


class Anchor(NamedTuple):
    """A place in a text where a rule's anchor matches: start and end offset, half open."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of credential."""

    anchors: tuple[str, ...]
    """Literals in lower case, which match in any case; if empty, the rule scans every text
    itself."""
    find: Callable[[str, Sequence[Anchor]], Iterator[SecretSpan]]
    """Takes the text and the offsets of anchors, in order; yields findings. Its time must be linear
    in the length of the text, even for repetitive text."""


def build_rule(
    pattern: re.Pattern[str], accept: Callable[[re.Match[str]], SecretSpan | None], *anchors: str
) -> Rule:
    """Return a rule that tries a pattern at anchors; `accept` returns the credential in a match."""
    return Rule(anchors, partial(_find_matches, pattern, accept))


def _find_matches(
    pattern: re.Pattern[str],
    accept: Callable[[re.Match[str]], SecretSpan | None],
    text: str,
    anchors: Sequence[Anchor],
) -> Iterator[SecretSpan]:
    for anchor in anchors:
        match = pattern.match(text, anchor.start)
        span = accept(match) if match is not None else None
        if span is not None:
            yield span


class RuleSet:
    """Rules, with one automaton for all their anchors."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._unanchored = [rule for rule in rules if not rule.anchors]
        self._owners = [number for number, rule in enumerate(rules) for _ in rule.anchors]
        self._automaton: AhoCorasick | None = None

    def load(self) -> None:
        """Build the automaton now instead of with the first text."""
        if self._automaton is None:
            from ahocorasick_rs import AhoCorasick

            self._automaton = AhoCorasick([a for rule in self._rules for a in rule.anchors])

    def scan(self, text: str) -> Iterator[SecretSpan]:
        """Yield the credentials that the rules find; spans are unordered and may overlap."""
        self.load()
        assert self._automaton is not None  # noqa: S101 - load() just built it
        places: dict[int, list[tuple[int, int]]] = {}
        hits = self._automaton.find_matches_as_indexes(to_lower_case(text), overlapping=True)
        for number, start, end in hits:
            places.setdefault(self._owners[number], []).append((start, end))
        for owner, anchors in places.items():
            yield from self._rules[owner].find(text, [Anchor(*place) for place in sorted(anchors)])
        for rule in self._unanchored:
            yield from rule.find(text, ())


def to_lower_case(text: str) -> str:
    """Return the text in lower case, with the same length."""
    text = _SURROGATE.sub("?", text)
    small = text.lower()
    # Only one character becomes two in lower case: a capital I with a dot.
    return small if len(small) == len(text) else text.replace("\u0130", "I").lower()
