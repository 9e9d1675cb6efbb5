"""The units and facts of one file, and the index of its names, read without other files.

The index of names is stored as one text with one line per name. A letter states how the name is
used, line numbers follow the letter, and a receiver may follow a line number:

    total|d15|c19:rates,24|m31

| letter | the name |
|---|---|
| d | is defined here |
| i | is extended or implemented |
| c | is called, or instantiated |
| p | is imported |
| t | is used as a type, an annotation or a constant |
| m | is mentioned; its use is unknown |
| n | is mentioned in a comment |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from rag_assets.ingest.chunking.model import Fact

Role: TypeAlias = Literal[
    "class",
    "method",
    "relation",
    "function",
    "type",
    "group",
    "route",
    "schema",
    "key",
    "section",
    "operation",
    "export",
    "definition",
    "derived",
    "rest",
]
"""The role of a unit, according to its own text:

- class: the head of a class, interface, trait or enum: its comment, its declaration, and the lines
  before its first method.
- method: a method.
- relation: a method that returns a relation of a model.
- function: a function.
- type: a struct, protocol, view or type alias.
- export: an exported value.
- definition: any other named definition.
- group: a statement that groups routes.
- route: a route statement outside any group.
- schema: a statement that creates, alters, renames or drops a table.
- key: a top-level key of a configuration file or a manifest.
- section: a section of a text.
- operation: one operation of an API description.
- derived: a document derived from several files.
- rest: text that no other unit covers.
"""


@dataclass(frozen=True, slots=True)
class Unit:
    r"""A range of a file's text with one role, such as a function or a section.

    Attributes:
        start, end: character offsets, half open, including the comment that belongs to it.
        symbol: its qualified name as its language writes it (`App\\Models\\Invoice::lines`,
            `billing.models.Invoice.total`); "" if it has no name.
        signature: its declaration on one line, without its body; "" if absent.
        alone: whether it stays a separate chunk, however small; other units are joined with their
            neighbours.
        cuts: offsets at which statements inside it end, and at which a long unit is cut.
    """

    start: int
    end: int
    role: Role
    symbol: str = ""
    signature: str = ""
    alone: bool = True
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeText:
    """The units and facts of one file.

    Attributes:
        units: the units, in order, without overlaps; they cover everything except white space.
        facts: the facts, in the order of their evidence.
        notes: descriptions of the parts that could not be read, without quotes from the file.
    """

    units: tuple[Unit, ...]
    facts: tuple[Fact, ...]
    notes: tuple[str, ...] = ()

    def add_facts(self, facts: Iterable[Fact]) -> CodeText:
        """Return this text with further facts."""
        return replace(self, facts=sort_facts([*self.facts, *facts]))


def sort_facts(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return facts in the order of their evidence."""
    return tuple(sorted(facts, key=lambda fact: (fact.start, fact.end)))


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts of one file with its path, as input for documents derived from many files.

    Attributes:
        language: the language of the file, as in media types.
    """

    path: str
    language: str
    facts: tuple[Fact, ...]


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
        receiver: the last name before the occurrence; "" if absent.
    """

    kind: UseKind
    line: int
    receiver: str = ""


class NameUses(NamedTuple):
    """The occurrences of a name in a file.

    Attributes:
        uses: the occurrences, the most informative first: definitions first, mentions last.
    """

    uses: tuple[NameUse, ...]
    omitted: int = 0


def list_names(index: str) -> list[str]:
    """Return the names in an index of names."""
    return [line.partition("|")[0] for line in index.split("\n") if line]


def parse_uses(packed: str) -> NameUses:
    """Return the occurrences of a name from its line in an index, without the name."""
    uses: list[NameUse] = []
    omitted = 0
    for group in packed.split("|"):
        kind = _KINDS.get(group[:1])
        if kind is None:
            continue
        listed_places, _, more = group[1:].partition("+")
        omitted += int(more) if more else 0
        for place in listed_places.split(","):
            line, _, receiver = place.partition(":")
            uses.append(NameUse(kind, int(line), receiver))
    return NameUses(tuple(uses), omitted)
