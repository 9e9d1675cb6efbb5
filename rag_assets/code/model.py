"""The units and facts of one file: what is read from it before any other file is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

NO_VALUES: Mapping[str, Any] = MappingProxyType({})

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
"""What a unit is by its own text:

- class: the head of a class, interface, trait or enum: its comment, its declaration, and what
  stands before its first method.
- method: a method; relation: a method that returns a relation of a model.
- function, type, export, definition: a function; a struct, protocol, view or type alias; an
  exported value; any other definition of a name.
- group: a statement that groups routes; route: a statement of routes outside of any group.
- schema: a statement that makes, alters, renames or drops a table.
- key: a top-level key of a configuration or a manifest.
- section: a section of a text; operation: one operation of a described interface.
- derived: a document that follows from several files.
- rest: what no other unit covers.
"""

EVIDENCE: Final = "\n\nStated by these lines:\n"
"""Ends the part of a derived text that is embedded; after it are lines of files, which move."""


@dataclass(frozen=True, slots=True)
class Unit:
    r"""A run of a file's text that is one thing to a reader.

    Attributes:
        start, end: character offsets, half open; a comment that belongs to it is within.
        role: what it is by its own text.
        symbol: its qualified name as its language writes it (`App\\Models\\Invoice::lines`,
            `billing.models.Invoice.total`); "" for what has no name.
        signature: its declaration in one line without its body; "" for what has none.
        alone: whether it stays a chunk of its own, however small; others are joined with their
            neighbours.
        cuts: offsets within it after which a statement ends: where it is cut if it is too long.
    """

    start: int
    end: int
    role: Role
    symbol: str = ""
    signature: str = ""
    alone: bool = True
    cuts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that one file states by itself.

    Attributes:
        kind: what it says; each kind is described where it is made.
        start, end: character offsets of the evidence, half open.
        symbol: the qualified name of the innermost definition that it stands in; "" at top level.
        values: what it says, as JSON values by name.
        line_start, line_end: of the evidence, counted from 1; 0 until they are counted.
        evidence: the beginning of the evidence, credentials masked, in one line.
    """

    kind: str
    start: int
    end: int
    symbol: str = ""
    values: Mapping[str, Any] = field(default_factory=lambda: NO_VALUES, hash=False)
    line_start: int = 0
    line_end: int = 0
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class CodeText:
    """What one file says.

    Attributes:
        units: in order, not overlapping; they cover everything that is not white space.
        facts: in the order of their evidence.
        language: of the whole file, as media types name it: php, typescript.
        notes: what could not be read and why; they quote nothing of the file.
    """

    units: tuple[Unit, ...]
    facts: tuple[Fact, ...]
    language: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts of one file with its place, for what follows from many files.

    Attributes:
        path: POSIX path within the repository.
        language: see CodeText.
        facts: see CodeText; offsets are within this file.
    """

    path: str
    language: str
    facts: tuple[Fact, ...]
