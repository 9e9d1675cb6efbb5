"""The index of the names in one file; symbols.model describes its format.

The index does not resolve names. It contains every word of a file that may be a name, with the
lines that `grep -w` would show. Words in comments are included only if they look like names. Where
a tag query reads the file, the index also states how each name is used, and its receiver.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Final

from rag_assets.systems.code_memory.languages.tags import DEFAULT_WORD, TagLanguage, Tags
from rag_assets.systems.code_memory.symbols.model import LETTERS

_MAX_LINES: Final = 40
"""Maximum number of listed lines for one name and kind; further lines are only counted."""
_MAX_MENTIONS: Final = 8
"""Maximum number of listed lines for a name that is only mentioned."""
_MAX_NAMES: Final = 20_000
"""Maximum number of names in the index of a file; further names are dropped."""
_MAX_LINE_CHARACTERS: Final = 2_000
"""Maximum characters of a line; the words in a longer line are skipped."""
_MAX_NAME_CHARACTERS: Final = 120
"""Maximum characters of a name; a longer name is dropped."""
_NAME_IN_COMMENT: Final = re.compile(r"_|[a-z0-9][A-Z]|^[A-Z]")
"""Matches a word in a comment that looks like a name."""
_KEYWORDS: Final = """
abstract and as async await begin bool boolean break case catch char class const continue def
default defer delete do double elif else elsif end enum export extends extern false final
finally float fn for foreach from func function go goto if impl implements import in include
instanceof int integer interface is let long match mod module mut namespace new nil none not
null of or override package pass private protected pub public raise readonly require rescue
return self short sizeof static string struct sub super switch template then this throw throws
trait true try type typedef typeof undef union unless unsigned until use using val var virtual
void volatile when where while with yield None True False
"""
_MENTION: Final = ("m", "")
_COMMENT: Final = ("n", "")
_NO_NAMES: Final = frozenset(_KEYWORDS.split())


def index_names(
    text: str, tags: Tags, language: TagLanguage | None, *, defined: Iterable[tuple[str, int]] = ()
) -> str:
    """Return the index of the names in a text.

    Args:
        tags: the result of the tag query on the text.
        language: the file's language; None if no query reads it.
        defined: names of definitions with their lines, from the language's own reader.
    """
    places_by_name: dict[str, dict[int, tuple[str, str]]] = {}
    definitions = [
        (definition.name.rpartition("::")[2], definition.line) for definition in tags.definitions
    ]
    for name, line in dict.fromkeys((*definitions, *defined)):
        if _is_indexable(name):
            places_by_name.setdefault(name, {}).setdefault(line, ("d", ""))
    for reference in tags.references:
        if _is_indexable(reference.name):
            at = places_by_name.setdefault(reference.name, {})
            letter = LETTERS[reference.kind]
            known = at.get(reference.line)
            if known is None or (
                known[0] != "d" and _get_rank_of_use(letter) < _get_rank_of_use(known[0])
            ):
                at[reference.line] = letter, reference.receiver
    pattern = DEFAULT_WORD if language is None else language.word
    _add_words(places_by_name, text, _join_spans(tags.comments), pattern)
    # If there are too many names, those that are only mentioned are dropped first.
    kept_names = nsmallest(
        _MAX_NAMES, places_by_name, key=lambda name: (_get_best_rank(places_by_name[name]), name)
    )
    return "\n".join(
        f"{name}|{_pack_occurrences(places_by_name[name])}" for name in sorted(kept_names)
    )


def _get_best_rank(places: Mapping[int, tuple[str, str]]) -> int:
    return min(_get_rank_of_use(letter) for letter, _ in places.values())


def _get_rank_of_use(letter: str) -> int:
    return "dicptmn".index(letter)


def _is_indexable(name: str) -> bool:
    return 0 < len(name) <= _MAX_NAME_CHARACTERS and not any(mark in name for mark in "|\n")


def _pack_occurrences(places: Mapping[int, tuple[str, str]]) -> str:
    """Return the occurrences of a name in the format of the index."""
    if len(places) == 1:
        [(line, (letter, receiver))] = places.items()
        return f"{letter}{line}:{receiver}" if receiver else f"{letter}{line}"
    groups: dict[str, list[str]] = {}
    for line in sorted(places):
        letter, receiver = places[line]
        groups.setdefault(letter, []).append(f"{line}:{receiver}" if receiver else str(line))
    parts = []
    for letter in sorted(groups, key=_get_rank_of_use):
        kept_places = groups[letter][: _MAX_MENTIONS if letter in "mn" else _MAX_LINES]
        more = len(groups[letter]) - len(kept_places)
        parts.append(f"{letter}{','.join(kept_places)}{f'+{more}' if more else ''}")
    return "|".join(parts)


def _add_words(
    places_by_name: dict[str, dict[int, tuple[str, str]]],
    text: str,
    comments: Sequence[tuple[int, int]],
    pattern: re.Pattern[str],
) -> None:
    """Add the words of a text to the index; a word that has an entry for its line is skipped.

    Args:
        places_by_name: entries of the index by name and line; extended here.
        comments: spans of the comments, ascending.
        pattern: matches a word.
    """
    at = span = 0
    for number, line in enumerate(text.split("\n"), start=1):
        start, at = at, at + len(line) + 1
        while span < len(comments) and comments[span][1] <= start:
            span += 1
        if len(line) > _MAX_LINE_CHARACTERS:
            continue
        if span < len(comments) and comments[span][0] < at:
            last = span
            while last < len(comments) and comments[last][0] < at:
                last += 1
            words, noted = _split_words(line, start, comments[span:last], pattern)
        else:
            words, noted = {*pattern.findall(line)}, set()
        for letters, place in ((words - _NO_NAMES, _MENTION), (noted - words, _COMMENT)):
            for word in letters:
                places = places_by_name.get(word)
                if places is None:
                    places_by_name[word] = {number: place}
                elif number not in places:
                    places[number] = place


def _split_words(
    line: str, start: int, comments: Sequence[tuple[int, int]], pattern: re.Pattern[str]
) -> tuple[set[str], set[str]]:
    """Return the words of a line outside comments, and the names in its comments."""
    words: set[str] = set()
    noted: set[str] = set()
    for match in pattern.finditer(line):
        at = start + match.start()
        if not any(first <= at < last for first, last in comments):
            words.add(match[0])
        elif _NAME_IN_COMMENT.search(match[0]) is not None:
            noted.add(match[0])
    return words, noted


def _join_spans(comments: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in ascending order, without spans that lie within others."""
    spans: list[tuple[int, int]] = []
    for start, end in sorted(comments):
        if not spans or end > spans[-1][1]:
            spans.append((start, end))
    return spans
