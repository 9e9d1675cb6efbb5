"""Uses of names: the index of one file, which lists how each name is used.

The index is a single text, stored as it is, with one line per name. A letter states how the name is
used; line numbers follow the letter, and a receiver follows a line number:

    total|d15|c19:rates,24|m31

| letter | the name | |---|---| | d | is defined here | | i | is extended or implemented | | c | is
called, or instantiated | | p | is imported | | t | is used as a type, an annotation or a constant |
| m | is mentioned; its use is unknown | | n | is mentioned in a comment |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

UseKind: TypeAlias = Literal[
    "definition", "implementation", "call", "import", "type", "mention", "comment"
]

USES: Final = "uses"
"""Kind of the fact whose value `names` is the index of a file."""

LETTERS: Final[Mapping[UseKind, str]] = {
    "definition": "d",
    "implementation": "i",
    "call": "c",
    "import": "p",
    "type": "t",
    "mention": "m",
    "comment": "n",
}
_KINDS: Final[Mapping[str, UseKind]] = {letter: kind for kind, letter in LETTERS.items()}


class NameUse(NamedTuple):
    """One occurrence of a name in a file.

    Attributes:
        kind: how the name is used at this occurrence.
        line: the line, counted from 1.
        receiver: the last name in front of it; "" if absent.
    """

    kind: UseKind
    line: int
    receiver: str = ""


class NameUses(NamedTuple):
    """The occurrences of a name in a file.

    Attributes:
        uses: definitions first, then the other uses, the most informative first; mentions last.
        omitted: number of occurrences that are counted but not listed.
    """

    uses: tuple[NameUse, ...]
    omitted: int = 0


def names_of(index: str) -> list[str]:
    """Return the names in an index."""
    return [line.partition("|")[0] for line in index.split("\n") if line]


def uses_of(packed: str) -> NameUses:
    """Return the occurrences of a name.

    Args:
        packed: the name's line in an index, after the name and its separator.
    """
    found: list[NameUse] = []
    omitted = 0
    for group in packed.split("|"):
        kind = _KINDS.get(group[:1])
        if kind is None:
            continue
        listed, _, more = group[1:].partition("+")
        omitted += int(more) if more else 0
        for place in listed.split(","):
            line, _, receiver = place.partition(":")
            found.append(NameUse(kind, int(line), receiver))
    return NameUses(tuple(found), omitted)
